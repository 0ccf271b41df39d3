package condition

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	plainNumber  = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	duration     = regexp.MustCompile(`^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$`)
	durationLike = regexp.MustCompile(`^[+-]?([0-9.]+[A-Za-z]+)+$`)
	clockTime    = regexp.MustCompile(`^([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?$`)
)

const arithmetic = "+-*%"

// startsNumber reports whether a word is to be a number, a duration or a clock time.
func startsNumber(word string) bool {
	word = strings.TrimLeft(word, arithmetic+".")
	return word == "" || '0' <= word[0] && word[0] <= '9'
}

// parseNumber reads a number or a duration, as a json.Number, or a clock time. It gives a reason if
// the word is none of them.
func parseNumber(word string) (v any, reason string) {
	switch {
	case strings.Trim(word, arithmetic) == "":
		return nil, fmt.Sprintf("there is no %s: conditions do not calculate", word)
	case plainNumber.MatchString(word):
		return asJSON(word), ""
	case duration.MatchString(word):
		return parseDuration(word)
	case strings.Contains(word, ":"):
		return parseClock(word)
	case durationLike.MatchString(word):
		return nil, fmt.Sprintf("%s is no duration, which is written as 1d2h3m4s, with units in this order", word)
	case strings.HasPrefix(word, ".") || strings.HasSuffix(word, "."):
		return nil, fmt.Sprintf("%s is no number: write digits on both sides of the point, as in 0.5", word)
	default:
		return nil, fmt.Sprintf("%s is no number, such as 5, -5, 0.25 or 1e6; conditions do not calculate", word)
	}
}

// asJSON returns a number in the form that JSON allows: without a plus sign and leading zeros.
func asJSON(number string) json.Number {
	digits, negative := strings.CutPrefix(strings.TrimPrefix(number, "+"), "-")
	digits = strings.TrimLeft(digits, "0")
	if digits == "" || digits[0] < '0' || digits[0] > '9' {
		digits = "0" + digits
	}
	if negative {
		digits = "-" + digits
	}
	return json.Number(digits)
}

// unitSeconds are the seconds of the units of a duration, in order.
var unitSeconds = [...]int64{24 * 60 * 60, 60 * 60, 60, 1}

// maxDuration is the longest time.Duration in whole seconds, about 292 years.
const maxDuration = math.MaxInt64 / int64(time.Second)

func parseDuration(word string) (v any, reason string) {
	seconds := int64(0)
	for i, part := range duration.FindStringSubmatch(word)[1:] {
		if part == "" {
			continue
		}
		n, err := strconv.ParseInt(part[:len(part)-1], 10, 64)
		if err != nil || n > (maxDuration-seconds)/unitSeconds[i] {
			return nil, fmt.Sprintf("%s is too long: a duration has at most %dd", word, maxDuration/unitSeconds[0])
		}
		seconds += n * unitSeconds[i]
	}
	return json.Number(strconv.FormatInt(seconds, 10)), ""
}

func parseClock(word string) (v any, reason string) {
	parts := clockTime.FindStringSubmatch(word)
	if parts == nil {
		return nil, fmt.Sprintf("%s is no clock time, such as 18:30 or 18:30:15", word)
	}
	number := func(i int) int { n, _ := strconv.Atoi(parts[i]); return n }
	hour, minute, second := number(1), number(2), number(3)
	if hour > 23 || minute > 59 || second > 59 {
		return nil, fmt.Sprintf("%s is no clock time: they go from 0:00 to 23:59:59", word)
	}
	return Clock((hour*60+minute)*60 + second), ""
}
