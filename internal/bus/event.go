package bus

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// EventType says what happened to a thing.
type EventType string

// The event types.
const (
	Create EventType = "create"
	Update EventType = "update"
	Delete EventType = "delete"
	Noop   EventType = "noop"
)

// MaxURLLen is the maximum number of characters of an event's URL or a callback.
const MaxURLLen = 1024

// Event says what happened to one thing, and when. Its data, one JSON value of the publisher's, is
// not part of Event: it is packed as it is read.
type Event struct {
	Topic TopicName
	Type  EventType
	// URL is the https URL of the thing.
	URL string
	// Timestamp is the publisher's, in ms since the Unix epoch. It is delivered as it is; nothing is
	// scheduled by it.
	Timestamp int64
}

// Validate returns an [Invalid] that points at the first wrong field.
func (e *Event) Validate() error {
	switch e.Type {
	case Create, Update, Delete, Noop:
	case "":
		return Invalidf("/type", "is required: one of create, update, delete, noop")
	default:
		return Invalidf("/type", "must be one of create, update, delete, noop")
	}
	if !isPlainHTTPS(e.URL) {
		if _, err := ParseHTTPS(e.URL); err != nil {
			return At("/url", err)
		}
	}
	return nil
}

// isPlainHTTPS reports whether text is an https URL of at most [MaxURLLen] characters without
// port, user and escapes, as most are. It takes a tenth of the time of ParseHTTPS, which
// decides about the others.
func isPlainHTTPS(text string) bool {
	rest, ok := strings.CutPrefix(text, "https://")
	host, path, _ := strings.Cut(rest, "/")
	return ok && host != "" && len(text) <= MaxURLLen && isPlain(host, ".-") && isPlain(path, ".-_~/?=&+,;:@")
}

// isPlain reports whether text has only letters, digits and the characters of more.
func isPlain(text, more string) bool {
	for i := range len(text) {
		c := text[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return true
}

// IsURLSafe reports whether text has only the characters of a UID.
func IsURLSafe(text string) bool { return isPlain(text, "-_") }

// ParseHTTPS parses an absolute https URL as in RFC 3986, of at most [MaxURLLen] characters.
// The error is an [Invalid].
func ParseHTTPS(text string) (*url.URL, error) {
	if text == "" {
		return nil, Invalidf("", "is required: an https URL")
	}
	if utf8.RuneCountInString(text) > MaxURLLen {
		return nil, Invalidf("", "must be at most %d characters", MaxURLLen)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, Invalidf("", "must not contain spaces, control or non-ASCII characters; percent-encode them")
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, Invalidf("", "must be an https URL; this one does not parse")
	}
	if u.Scheme != "https" || u.Hostname() == "" {
		return nil, Invalidf("", "must be an https URL with a host")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, Invalidf("", "must have a port from 1 to 65535, or none")
		}
	}
	return u, nil
}
