package definition

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/machines/condition"
)

// object is a map whose keys are known.
type object struct {
	*loader
	*Value
	// what the object is, as in "a gate".
	what string
}

// object reads a value as a map whose keys are among the given ones; nil if it is no map. It
// reports problems.
func (l *loader) object(v *Value, what string, keys ...string) *object {
	o := l.mapping(v, what+" is a map with "+strings.Join(keys, ", "))
	if o == nil {
		return nil
	}
	o.what = what
	for _, e := range v.Entries {
		if !slices.Contains(keys, e.Key.Text) {
			l.Refuse(e.Key.Place, "%s has no key %q: it can have %s", what, e.Key.Text, strings.Join(keys, ", "))
		}
	}
	return o
}

// mapping reads a value as a map; nil if it is none, which is reported together with should.
func (l *loader) mapping(v *Value, should string) *object {
	if !l.is(v, Map, should) {
		return nil
	}
	return &object{loader: l, Value: v}
}

// is reports whether a value, which may be nil, is of a kind. If it is not, is reports that
// together with should.
func (l *loader) is(v *Value, want Kind, should string) bool {
	if v == nil || v.Broken {
		return false
	}
	if v.Kind != want {
		l.Refuse(v.Place, "%s; this is %s", should, v.Kind)
	}
	return v.Kind == want
}

// get returns the value at a key; nil if it is missing or null.
func (o *object) get(key string) *Value {
	if v := o.At(key); v != nil && v.Kind != Null {
		return v
	}
	return nil
}

// need is get for a required key. If the key is missing, the hint is appended to the problem.
func (o *object) need(key string, hint ...string) *Value {
	v := o.get(key)
	switch {
	case v == nil && o.At(key) != nil && !o.At(key).Broken:
		o.Refuse(o.At(key).Place, "%s needs %s, which is null here", o.what, key)
	case v == nil && o.At(key) == nil:
		o.Refuse(o.Place, "%s needs %s%s", o.what, key, strings.Join(hint, ""))
	}
	return v
}

// text reads a string that is not empty. A value that is nil, or was reported, gives false.
func (l *loader) text(v *Value, what string) (string, bool) {
	if !l.is(v, String, what+" must be a string") {
		return "", false
	}
	if v.Text == "" {
		l.Refuse(v.Place, "%s must not be empty", what)
	}
	return v.Text, v.Text != ""
}

// list reads a list.
func (l *loader) list(v *Value, what string) []*Value {
	if l.is(v, List, what+" must be a list") {
		return v.Items
	}
	return nil
}

// integer reads an integer from 1 to limit; without one it returns fallback.
func (l *loader) integer(v *Value, what string, fallback, limit int) int {
	if v == nil || v.Broken {
		return fallback
	}
	n, err := strconv.Atoi(v.Text)
	if v.Kind != Number || err != nil || n < 1 || n > limit {
		l.Refuse(v.Place, "%s must be an integer from 1 to %d", what, limit)
	}
	return n
}

// minDuration is the least that a duration may be set to.
const minDuration = 10 * time.Millisecond

// duration reads a duration such as 10s, up to limit; without one it returns fallback.
func (l *loader) duration(v *Value, what string, fallback, limit time.Duration) time.Duration {
	if v == nil || v.Broken {
		return fallback
	}
	d, err := time.ParseDuration(v.Text)
	if v.Kind != String || err != nil || d < minDuration || d > limit {
		l.Refuse(v.Place, "%s must be a duration such as 10s, 5m or 1h, from %s to %s", what, brief(minDuration), brief(limit))
	}
	return d
}

// brief writes a duration without the units that are zero.
func brief(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// path reads a path into the metadata or an event's data, such as user.id.
func (l *loader) path(v *Value, what string) []string {
	if _, ok := l.text(v, what); !ok {
		return nil
	}
	return l.pathBehind(v, what, 0)
}

// pathBehind reads the path that follows the first bytes of a string.
func (l *loader) pathBehind(v *Value, what string, start int) []string {
	path, err := condition.ParsePath(v.Text[start:])
	if err != nil {
		l.refuseSyntax(v, what, start, err)
	}
	return path.Names
}

// refuseSyntax reports an error of package condition in the rest of a scalar, after its first
// bytes.
func (l *loader) refuseSyntax(v *Value, what string, start int, err error) {
	wrong, ok := errors.AsType[*condition.SyntaxError](err)
	if !ok {
		l.Refuse(v.Place, "%s: %s", what, err)
		return
	}
	l.Refuse(l.Within(v, start+wrong.Offset), "%s: %s", what, wrong.Reason)
}
