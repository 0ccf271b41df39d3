package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"routemaster/client"
)

// rubyYAML writes subscriptions as version 3.2.3 of the Ruby client does, to the byte, because
// scripts read it: as Ruby's own YAML library writes a list of hashes with symbols as keys.
func rubyYAML(subscriptions []client.SubscriptionStatus) string {
	if len(subscriptions) == 0 {
		return "--- []\n"
	}
	var b strings.Builder
	b.WriteString("---\n")
	for _, s := range subscriptions {
		uuid := ""
		if s.UUID != "" {
			uuid = " " + rubyScalar(s.UUID)
		}
		fmt.Fprintf(&b, "- :subscriber: %s\n  :uuid:%s\n  :callback: %s\n  :max_events: %d\n  :timeout: %d\n  :topics:",
			rubyScalar(s.Subscriber), uuid, rubyScalar(s.Callback), s.Max, s.Timeout.Milliseconds())
		if len(s.Topics) == 0 {
			b.WriteString(" []")
		}
		for _, topic := range s.Topics {
			b.WriteString("\n  - " + rubyScalar(topic))
		}
		fmt.Fprintf(&b, "\n  :events:\n    :sent: %d\n    :queued: %d\n    :oldest:", s.Sent, s.Queued)
		if !s.Oldest.IsZero() {
			fmt.Fprintf(&b, " %d", s.Oldest.UnixMilli())
		}
		b.WriteString("\n")
	}
	return b.String()
}

var (
	// rubyPlain matches strings whose characters need no quotes: names, tokens and URLs.
	rubyPlain = regexp.MustCompile(`\A[A-Za-z0-9_][!-~]*\z`)
	// rubyOther matches texts that Ruby would not read as a string: a boolean, nil, an integer in one
	// of its bases, minutes and seconds, a time.
	rubyOther = regexp.MustCompile(`\A(?:(?i:null|true|false|yes|no|on|off)|` +
		`0[0-7]*[89].*|0b[01_,]+|0[0-7_,]+|0x[0-9a-fA-F_,]+|0|[1-9](?:[0-9]|[,_][0-9])*|` +
		`[0-9][0-9_]*(?::[0-5]?[0-9]){1,2}(?:\.[0-9_]*)?|(?:[0-9][0-9_,]*)\.[0-9]*(?:[eE][-+][0-9]+)?|` +
		`\d{4}-\d{1,2}-\d{1,2}[Tt]\d{1,2}:\d\d:\d\d(?:\.\d*)?(?:Z|[-+]\d{1,2}:?(?:\d\d)?)?)\z`)
	rubyDate = regexp.MustCompile(`\A\d{4}-\d{1,2}-\d{1,2}\z`)
)

// rubyScalar writes a string as Ruby does: plain, unless it would be read as something else.
func rubyScalar(text string) string {
	switch {
	case text == "":
		return "''"
	case text == "y" || text == "n" || !rubyPlain.MatchString(text):
		return strconv.QuoteToGraphic(text)
	case rubyOther.MatchString(text) || isDate(text) || strings.HasSuffix(text, ":"):
		return "'" + text + "'"
	}
	return text
}

// isDate reports whether text is a valid date.
func isDate(text string) bool {
	_, err := time.Parse("2006-1-2", text)
	return err == nil && rubyDate.MatchString(text)
}
