package layout

import (
	"maps"
	"slices"
	"strings"

	"routemaster/internal/rdb"
)

// Family is keys that begin alike, or one key.
type Family struct {
	// Prefix is what they begin with: what they are of follows. Of one key it is the key.
	Prefix string
	Kind   rdb.Kind
	Whose  Whose
	// Row is the name of their row.
	Row string
	// Single is whether it is one key.
	Single bool
	// Fields are the fields of a hash that has no others, and else empty.
	Fields []string
	// rest is what follows the prefix.
	rest []Part
}

// Families are all keys of the table, by what they begin with, the longest first: some begin with
// what all keys of another begin with.
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

// FamilyOf returns the family of a key without its namespace, and what follows the prefix of that.
// The kind is empty if the table does not know the key.
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

// Cut returns what follows the prefix in a key of the family; not ok if the key is of another.
func (f Family) Cut(key string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(key, f.Prefix)
	if f.Single {
		return rest, ok && rest == ""
	}
	return rest, ok && fits(f.rest, rest)
}

// Singles are the keys of which there is one.
var Singles = func() map[string]Family {
	all := map[string]Family{}
	for _, f := range Families {
		if f.Single {
			all[f.Prefix] = f
		}
	}
	return all
}()

// fits reports whether a text may be what follows a prefix.
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
