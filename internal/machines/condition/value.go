package condition

import (
	"fmt"
	"strings"
	"time"
)

// Clock is a time of day, in seconds since midnight.
type Clock int

// ClockOf is the time of day of a time in its location.
func ClockOf(t time.Time) Clock {
	hour, minute, second := t.Clock()
	return Clock((hour*60+minute)*60 + second)
}

// String has hours, minutes and seconds, as in 18:30:00.
func (c Clock) String() string {
	return fmt.Sprintf("%02d:%02d:%02d", c/3600, c/60%60, c%60)
}

// Some results of [Kind].
const (
	Number = "a number"
	List   = "a list"
	Object = "an object"
)

// Kind names the kind of a value in errors, with its article.
func Kind(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case Clock:
		return "a clock time"
	case time.Time:
		return "a timestamp"
	case []any:
		return List
	case map[string]any:
		return Object
	default:
		return Number
	}
}

// Truth reports whether a value counts as true.
func Truth(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	number, ok := decimalOf(value)
	return !ok || number.sign() != 0
}

// Equal compares any two values: numbers by value, with true as 1 and false as 0, timestamps by
// instant, lists and objects by their elements. Other values of different kinds are not equal.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case []any:
		y, ok := b.([]any)
		return ok && equalLists(x, y)
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && equalObjects(x, y)
	}
	sign, ok := Order(a, b)
	return ok && sign == 0
}

func equalLists(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func equalObjects(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if other, ok := b[key]; !ok || !Equal(value, other) {
			return false
		}
	}
	return true
}

// Order is negative, 0 or positive as a value is less than, equal to or greater than another. It
// reports false if there is no order between them.
func Order(a, b any) (sign int, ok bool) {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return strings.Compare(x, y), ok
	case Clock:
		y, ok := b.(Clock)
		return int(x - y), ok
	case time.Time:
		y, ok := b.(time.Time)
		return x.Compare(y), ok
	}
	x, ok := decimalOf(a)
	if !ok {
		return 0, false
	}
	y, ok := decimalOf(b)
	return x.compare(y), ok
}

// Contains reports whether a value is an element of a list, a key of an object, or a part of a
// string. It reports false as ok if the two do not fit.
func Contains(value, container any) (found, ok bool) {
	switch in := container.(type) {
	case []any:
		for _, element := range in {
			if Equal(value, element) {
				return true, true
			}
		}
		return false, true
	case map[string]any:
		key, ok := value.(string)
		_, found = in[key]
		return found, ok
	case string:
		part, ok := value.(string)
		return strings.Contains(in, part), ok
	default:
		return false, false
	}
}
