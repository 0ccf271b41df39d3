package definition

import (
	"regexp"
	"strings"
)

// placeholder is {dotted.path}.
var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// maxReplaced bounds the strings together that have placeholders replaced, in bytes: one may stand
// for several others.
const maxReplaced = 4 * MaxBytes

// replacer replaces placeholders.
type replacer struct {
	*Document
	// done says of a value whether that is done, or is under way.
	done map[*Value]bool
	// size is the total size of the replaced strings, in bytes.
	size int
}

// ReplacePlaceholders replaces the placeholders in all strings by the values at their paths. The
// document must have a root.
func (d *Document) ReplacePlaceholders() {
	r := &replacer{Document: d, done: map[*Value]bool{}}
	r.below(d.Root)
}

func (r *replacer) below(v *Value) {
	for _, e := range v.Entries {
		r.below(e.Value)
	}
	for _, item := range v.Items {
		r.below(item)
	}
	if v.Kind == String {
		r.replace(v)
	}
}

// replace replaces the placeholders of a string.
func (r *replacer) replace(v *Value) {
	if _, seen := r.done[v]; seen || !strings.Contains(v.Text, "{") {
		return
	}
	r.done[v] = false
	var b strings.Builder
	end := 0
	found := placeholder.FindAllStringIndex(v.Text, -1)
	for _, at := range found {
		b.WriteString(v.Text[end:at[0]])
		end = at[1]
		with := r.lookup(v, v.Text[at[0]+1:at[1]-1], at[0])
		if r.size += len(with); r.size > maxReplaced {
			if r.size-len(with) <= maxReplaced {
				r.Refuse(v.Place, "strings have more than %d bytes once placeholders are replaced: shorten them", maxReplaced)
			}
			v.Broken = true
			break
		}
		b.WriteString(with)
	}
	v.Text, v.replaced = b.String()+v.Text[end:], len(found) > 0
	r.done[v] = true
}

// lookup returns the text that replaces a placeholder, which stands in a string at an offset. It
// reports a wrong placeholder and marks the string as broken.
func (r *replacer) lookup(in *Value, path string, offset int) string {
	at := r.Root
	for name := range strings.SplitSeq(path, ".") {
		if at = at.At(name); at == nil {
			break
		}
	}
	if at != nil && at.Kind == String {
		r.replace(at)
	}
	done, seen := false, false
	if at != nil {
		done, seen = r.done[at]
	}
	switch {
	case at == nil:
		r.Refuse(r.Within(in, offset), "there is nothing at {%s}: a placeholder is a path from the top, as in {placeholders.name}, and braces have no escape", path)
	case seen && !done:
		r.Refuse(r.Within(in, offset), "{%s} stands for what it is in: remove one of the placeholders of the circle", path)
	case at.Kind != String && at.Kind != Number:
		r.Refuse(r.Within(in, offset), "{%s} is %s: a placeholder stands for a string or a number", path, at.Kind)
	case !at.Broken:
		return at.Text
	}
	in.Broken = true
	return ""
}
