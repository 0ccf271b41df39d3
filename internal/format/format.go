// Package format writes figures in few characters, on a terminal as in a browser.
package format

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Unknown stands for a number that is not known.
const Unknown = "-"

// Count writes an integer with commas, so that its size is seen.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return sign + strings.Join(append([]string{digits}, groups...), ",")
}

// Plural counts things: "1 event", "1,204 events".
func Plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	switch {
	case strings.HasSuffix(thing, "ch"):
		thing += "e"
	case strings.HasSuffix(thing, "ry"):
		thing = strings.TrimSuffix(thing, "y") + "ie"
	}
	return Count(n) + " " + thing + "s"
}

// Rate writes a number per second, with the digits that matter.
func Rate(perSecond *float64) string {
	switch {
	case perSecond == nil:
		return Unknown
	case *perSecond == 0:
		return "0"
	case *perSecond < 10:
		return strconv.FormatFloat(*perSecond, 'f', 2, 64)
	case *perSecond < 100:
		return strconv.FormatFloat(*perSecond, 'f', 1, 64)
	default:
		return Count(int64(*perSecond + 0.5))
	}
}

// Age writes seconds in at most 6 characters.
func Age(seconds *float64) string {
	if seconds == nil {
		return Unknown
	}
	switch s := *seconds; {
	case s < 60:
		return strconv.FormatFloat(s, 'f', 1, 64) + "s"
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", int(s)/60, int(s)%60)
	case s < 24*3600:
		return fmt.Sprintf("%dh%02dm", int(s)/3600, int(s)%3600/60)
	default:
		return Count(int64(s/(24*3600))) + "d"
	}
}

// Share writes a share of 1 in percent.
func Share(of1 *float64) string {
	switch {
	case of1 == nil:
		return Unknown
	case *of1 > 0 && *of1 < 0.01:
		return "<1%"
	default:
		return strconv.Itoa(int(*of1*100)) + "%"
	}
}

// Megabytes writes bytes.
func Megabytes(bytes int64) string {
	return Count(bytes/1_000_000) + "." + strconv.FormatInt(bytes%1_000_000/100_000, 10) + " MB"
}

// Brief writes a setting such as 2s or 1m30s.
func Brief(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
