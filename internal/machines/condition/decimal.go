package condition

import (
	"encoding/json"
	"strconv"
	"strings"
)

// decimal is an exact number: 0.DIGITS × 10^point, without zeros at either end of the digits. Zero
// has no digits. It is as large as its text, whatever its exponent.
type decimal struct {
	negative bool
	digits   string
	point    int64
}

// maxExponent is where exponents end: larger ones count as this one.
const maxExponent = 1e18

// parseDecimal reads a JSON number, leniently. It reports false if the text is no number.
func parseDecimal(text string) (d decimal, ok bool) {
	mantissa, exponent := text, int64(0)
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var err error
		// An exponent out of range has the nearest value.
		if exponent, err = strconv.ParseInt(text[i+1:], 10, 64); exponent == 0 && err != nil {
			return decimal{}, false
		}
		mantissa, exponent = text[:i], max(-maxExponent, min(exponent, maxExponent))
	}
	mantissa, d.negative = strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return decimal{}, false
	}
	significant := strings.TrimLeft(digits, "0")
	if significant == "" {
		return decimal{}, true
	}
	d.point = exponent + int64(len(whole)-len(digits)+len(significant))
	d.digits = strings.TrimRight(significant, "0")
	return d, true
}

// compare is negative, 0 or positive as a number is less than, equal to or greater than another.
func (d decimal) compare(other decimal) int {
	switch {
	case d.sign() != other.sign():
		return d.sign() - other.sign()
	case d.negative:
		return other.magnitude(d)
	default:
		return d.magnitude(other)
	}
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	default:
		return 1
	}
}

// magnitude compares two numbers without their signs.
func (d decimal) magnitude(other decimal) int {
	switch {
	case d.point < other.point:
		return -1
	case d.point > other.point:
		return 1
	default:
		return strings.Compare(d.digits, other.digits)
	}
}

// decimalOf is the number that a value stands for: a number itself, or the 1 or 0 of a boolean.
func decimalOf(value any) (decimal, bool) {
	switch v := value.(type) {
	case json.Number:
		return parseDecimal(string(v))
	case float64:
		return parseDecimal(strconv.FormatFloat(v, 'g', -1, 64))
	case int:
		return parseDecimal(strconv.Itoa(v))
	case int64:
		return parseDecimal(strconv.FormatInt(v, 10))
	case uint64:
		return parseDecimal(strconv.FormatUint(v, 10))
	case bool:
		if v {
			return decimal{digits: "1", point: 1}, true
		}
		return decimal{}, true
	default:
		return decimal{}, false
	}
}
