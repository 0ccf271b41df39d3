package wire

import (
	"strconv"
	"strings"
)

// maxDigits is the maximum number of digits of an integer of 64 bits.
const maxDigits = 19

// ParseInteger parses a JSON number exactly, if it is an integer of 64 bits, however it is
// written: 7, 7.0 or 0.7e1.
func ParseInteger(text string) (n int64, ok bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	mantissa, exponent := text, 0
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		var err error
		if exponent, err = strconv.Atoi(text[at+1:]); err != nil {
			return 0, false
		}
		mantissa = text[:at]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimRight(whole+fraction, "0")
	if digits == "" || digits == "-" {
		return 0, true
	}
	zeros := len(whole) - len(digits) + exponent
	if zeros < 0 || zeros > maxDigits {
		return 0, false
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", zeros), 10, 64)
	return n, err == nil
}
