package exceptions

import (
	"regexp"
	"strings"
)

// hidden stands for what a report must not have.
const hidden = "(not shown)"

// credentials are what may stand in a text, in a URL or as a header, that we do not know.
var credentials = regexp.MustCompile(`(?i)(://)[^/@\s"]+(@)|\b((?:basic|bearer|digest)\s+)[a-z0-9+/=._~:-]{4,}`)

// minSecret is how long a secret must be to be looked for, in bytes: a shorter one would be found everywhere.
const minSecret = 4

// newScrubber makes a function that takes secrets out of a text.
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
