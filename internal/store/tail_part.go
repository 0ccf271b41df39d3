package store

import (
	"strconv"
	"strings"
)

// TailPart is the events that one commit has published.
type TailPart struct {
	// Events are the first, packed.
	Events []string
	// Total is the number of events published.
	Total int64
}

// parseTailPart reads a message of a publish: the number of events, a space, and the first of them,
// each with its length and a colon before it.
func parseTailPart(text string) (part TailPart, ok bool) {
	total, rest, _ := strings.Cut(text, " ")
	var err error
	if part.Total, err = strconv.ParseInt(total, 10, 64); err != nil {
		return part, false
	}
	for rest != "" {
		length, packed, _ := strings.Cut(rest, ":")
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > len(packed) {
			return part, false
		}
		part.Events, rest = append(part.Events, packed[:n]), packed[n:]
	}
	return part, int64(len(part.Events)) <= part.Total
}
