package layout

import (
	"maps"
	"slices"
	"strings"

	"routemaster/internal/rdb"
)

// Family is keys that begin alike, or one key.
type Family struct {
	// Prefix is the common prefix of the keys; their parameters follow. For a single key it is the
	// key.
	Prefix string
	Kind   rdb.Kind
	Whose  Whose
	// Row is the name of their row.
	Row string
	// Single is whether it is one key.
	Single bool
	// Fields are the fields of a hash that has no others, and else empty.
	Fields []string
	// rest is the part after the prefix.
	rest []Part
}

// Families are all keys of the table, by prefix, the longest first: some prefixes begin with
// another family's.
var Families = func() (all []Family) {
	for _, r := range Rows {
		if r.Zero == "" { // else the other row's family has its keys
			all = append(all, r.families()...)
		}
	}
	slices.SortStableFunc(all, func(a, b Family) int { return len(b.Prefix) - len(a.Prefix) })
	return all
}()

func (r Row) families() (all []Family) {
	parts := r.Parts()
	f := Family{Prefix: parts[0].Text, Kind: r.Kind, Whose: r.Whose, Row: r.Name, rest: parts[1:]}
	if r.Exact {
		f.Fields = r.FieldNames()
	}
	if r.Each == nil {
		f.Single = len(f.rest) == 0
		return []Family{f}
	}
	for _, value := range slices.Sorted(maps.Keys(r.Each)) {
		one := f
		one.Prefix, one.Whose, one.rest = f.Prefix+value, r.Each[value], f.rest[1:]
		if one.Single = len(one.rest) == 0; !one.Single {
			one.Prefix += one.rest[0].Text
			one.rest = one.rest[1:]
		}
		all = append(all, one)
	}
	return all
}

// FamilyOf returns the family of a key without its namespace, and the rest after the family's
// prefix. The kind is empty if the table does not know the key.
func FamilyOf(key string) (f Family, rest string) {
	if f, ok := Singles[key]; ok {
		return f, ""
	}
	for _, f := range Families {
		if rest, ok := f.Cut(key); ok {
			return f, rest
		}
	}
	return Family{}, ""
}

// Cut returns the rest of a key after the prefix; not ok if the key is of another family.
func (f Family) Cut(key string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(key, f.Prefix)
	if f.Single {
		return rest, ok && rest == ""
	}
	return rest, ok && fits(f.rest, rest)
}

// Singles are the keys without parameters.
var Singles = func() map[string]Family {
	all := map[string]Family{}
	for _, f := range Families {
		if f.Single {
			all[f.Prefix] = f
		}
	}
	return all
}()

// fits reports whether a text may follow a prefix.
func fits(parts []Part, text string) bool {
	switch len(parts) {
	case 0:
		return true
	case 1:
		return parts[0].fits(text)
	}
	first, rest, found := strings.Cut(text, parts[1].Text)
	return found && parts[0].fits(first) && fits(parts[2:], rest)
}

func (p Part) fits(text string) bool { return p.Param.is == nil || p.Param.is(text) }
