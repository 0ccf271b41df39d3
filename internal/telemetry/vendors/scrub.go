package vendors

import (
	"regexp"
	"strings"
)

// hidden replaces secrets in reports.
const hidden = "(not shown)"

// credentials matches credentials that are not known, by their form: in a URL, or in a header.
var credentials = regexp.MustCompile(`(?i)(://)[^/@\s"]+(@)|\b((?:basic|bearer|digest)\s+)[a-z0-9+/=._~:-]{4,}`)

// minSecret is the length in bytes from which a secret is removed. Shorter ones occur by chance.
const minSecret = 4

// newScrubber makes a function that replaces secrets in a text.
func newScrubber(secrets []string) func(string) string {
	var pairs []string
	for _, secret := range secrets {
		if len(secret) >= minSecret {
			pairs = append(pairs, secret, hidden)
		}
	}
	known := strings.NewReplacer(pairs...)
	return func(text string) string {
		return credentials.ReplaceAllString(known.Replace(text), "${1}${3}"+hidden+"${2}")
	}
}
