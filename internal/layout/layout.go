// Package layout is the table of the keys in Redis.
//
// Each key is one [Row] of [Groups]: its name, type, fields, owner, expiry, and words for readers.
// go generate writes from it the functions that make keys, in Go (keys.go) and Lua (keys.lua), and
// the tables of the pages. Doctor and `rtm copy` read it as they run.
package layout

//go:generate go run ./gen ../..

import (
	"regexp"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Group is keys that one Lua library makes, and one table of a page lists.
type Group struct {
	Name string
	// Lua is the library with their functions, a path from internal/; empty if no script makes them.
	Lua string
	// Head is the start of the library.
	Head string
	// Page is the page with their table, a path from the root of the repository.
	Page string
	Rows []Row
}

// Row is a key, or all keys that differ only in their parameters.
type Row struct {
	// Name is the name of its function: Topic, in Lua topic_key.
	Name string
	// Key is the key without its namespace, with its parameters in braces: see params.
	Key  string
	Kind rdb.Kind
	// Whose says in which partition it is.
	Whose Whose
	// Each, if it is given, is whose the keys are with each value of the first parameter. There are no
	// others.
	Each map[string]Whose
	// Founding is whether it is of the founding layout, and else the bus's own.
	Founding bool
	// Zero is the row whose key it has if its last parameter is 0; empty for none.
	Zero string
	// Words describe its contents, in Markdown.
	Words string
	// Expires says when it expires, in Markdown; empty for never.
	Expires string
	// Fields are the fixed fields of a hash.
	Fields []Field
	// Exact is whether a hash has no other fields: doctor reports them.
	Exact bool
}

// Field is a field of a hash.
type Field struct{ Name, Words string }

// FieldNames are the names of its fields.
func (r Row) FieldNames() (names []string) {
	for _, f := range r.Fields {
		names = append(names, f.Name)
	}
	return names
}

// Rows are the rows of all groups.
var Rows = func() (all []Row) {
	for _, g := range Groups {
		all = append(all, g.Rows...)
	}
	return all
}()

// Prefix returns the part before the first parameter in the keys of a row. It panics if no row has
// the name, which is a programming error.
func Prefix(name string) string {
	i := slices.IndexFunc(Rows, func(r Row) bool { return r.Name == name })
	if i < 0 {
		panic("no row of the layout is called " + name)
	}
	return Rows[i].Parts()[0].Text
}

// Param is a parameter of keys.
type Param struct {
	// Type is its type in Go, Name its name where the word in the key is none.
	Type, Name string
	// is reports whether a text may be in its place; nil if any may.
	is func(text string) bool
}

// params are the parameters of keys, by the word in braces.
var params = map[string]Param{
	"name": {Type: "bus.TopicName"}, "token": {Type: "bus.Token"}, "client": {Type: "bus.ClientName", Name: "name"},
	"bid": {Type: "bus.BatchID", is: bus.IsUID}, "replay": {Type: "bus.ReplayID", is: bus.IsUID},
	"q": {Type: "bus.Queue", is: isQueue}, "kind": {Type: "bus.JobName"}, "lane": {Type: "string"},
	"worker":    {Type: "bus.WorkerID", is: func(text string) bool { return text != "" && bus.IsURLSafe(text) }},
	"partition": {Type: "rdb.Number", is: rdb.IsNumber}, "n": {Type: "int"}, "slice": {Type: "int"}, "slot": {Type: "int64"},
	"type": {Type: "string", Name: "name"}, "job": {Type: "string"}, "data": {Type: "string"}, "status": {Type: "string"},
	"machine": {Type: "machines.Name"}, "label": {Type: "machines.LabelName"}, "state": {Type: "machines.StateName"},
	"ring": {Type: "string"}, "id": {Type: "string"},
}

func isQueue(text string) bool {
	return text == string(bus.QueueRelay) || slices.Contains(bus.Queues[:], bus.Queue(text))
}

// Part is a part of a row's key: a text or, if Param has a type, a parameter with that name.
type Part struct {
	Text  string
	Param Param
}

var partOfKey = regexp.MustCompile(`\{(\w+)\}|[^{]+`)

// Parts are the parts of a row's key. It panics if a parameter is none of params, which is a
// programming error.
func (r Row) Parts() (parts []Part) {
	for _, m := range partOfKey.FindAllStringSubmatch(r.Key, -1) {
		if m[1] == "" {
			parts = append(parts, Part{Text: m[0]})
			continue
		}
		param, ok := params[m[1]]
		if !ok {
			panic("no parameter is called " + m[1])
		}
		name := m[1]
		if param.Name != "" {
			name = param.Name
		}
		parts = append(parts, Part{name, param})
	}
	return parts
}
