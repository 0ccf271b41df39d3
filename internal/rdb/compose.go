package rdb

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// compose returns the source of a script: its entry, and what the entry needs of a library. Redis
// makes each function of a script anew at every run, which costs about as much as a cheap command;
// so what a run cannot reach is left out.
//
// A library only defines. Every definition begins at the left margin, and what else is of it is
// indented, but for its last line: local function f, local X, Y = …, function T.f, or T.x = …. The
// entry needs a definition when its text, or that of another definition it needs, has the names:
// f; X or Y; both T and f; T. That a name means something else there, such as a local variable, is
// not seen: the script then has more than it needs.
//
// A maker is a function that begins with local self = {}. It makes functions when they are first
// needed, which is seldom. So what only one maker needs is made inside it.
func compose(library, entry string) string {
	needed := reached(definitionsOf(library), namesOf(entry))
	nest(needed, namesOf(entry))
	var source strings.Builder
	for _, d := range needed {
		if d.maker == nil {
			d.write(&source)
		}
	}
	return source.String() + entry
}

// reached returns the definitions that are needed by what has some names.
func reached(definitions []*definition, named map[string]bool) (needed []*definition) {
	for found := true; found; {
		found = false
		for _, d := range definitions {
			if !d.needed && d.isNamed(named) {
				d.needed, found = true, true
				maps.Copy(named, d.uses)
			}
		}
	}
	return slices.DeleteFunc(definitions, func(d *definition) bool { return !d.needed })
}

// nest has makers make the functions that nothing else needs. A function comes before those that
// use it, so the last are looked at first.
func nest(definitions []*definition, entry map[string]bool) {
	for _, d := range slices.Backward(definitions) {
		if !d.isFunction || d.isNamed(entry) {
			continue
		}
		makers := map[*definition]bool{}
		for _, user := range definitions {
			if user != d && d.isNamed(user.uses) {
				makers[user.innermost()] = true
			}
		}
		for maker := range makers {
			if len(makers) == 1 && maker != nil {
				d.maker = maker
				maker.nested = slices.Insert(maker.nested, 0, d)
			}
		}
	}
}

// definition is one of a library.
type definition struct {
	text  string
	names []string
	all   bool // whether all of the names make it needed, not any one
	// uses are the names in its text.
	uses   map[string]bool
	needed bool

	isFunction, isMaker bool
	maker               *definition   // in which it is made, if it is
	nested              []*definition // what it makes, in order
}

// innermost is the maker where what the definition uses may be made: itself, or its own.
func (d *definition) innermost() *definition {
	if d.isMaker {
		return d
	}
	return d.maker
}

func (d *definition) write(source *strings.Builder) {
	head, rest, _ := strings.Cut(d.text, "\n")
	source.WriteString(head + "\n")
	for _, nested := range d.nested {
		nested.write(source)
	}
	source.WriteString(rest)
}

func (d *definition) isNamed(named map[string]bool) bool {
	found := 0
	for _, name := range d.names {
		if named[name] {
			found++
		}
	}
	return found == len(d.names) || found > 0 && !d.all
}

var (
	luaComment  = regexp.MustCompile(`(?m)--[^'"\n]*$`) // one with quotes may be part of a string
	luaName     = regexp.MustCompile(`[A-Za-z_]\w*`)
	luaLocals   = regexp.MustCompile(`^local (?:function (\w+)|([\w, ]+))`)
	luaFunction = regexp.MustCompile(`^function (\w+)\.(\w+)`)
)

// definitionsOf splits a library, without the comments between its definitions.
func definitionsOf(library string) (definitions []*definition) {
	for line := range strings.Lines(library) {
		switch {
		case strings.HasPrefix(line, "--") || strings.TrimSpace(line) == "":
		case isContinuation(line):
			definitions[len(definitions)-1].text += line
		default:
			definitions = append(definitions, newDefinition(line))
		}
	}
	for _, d := range definitions {
		d.uses = namesOf(d.text)
		_, body, _ := strings.Cut(d.text, "\n")
		d.isMaker = d.isFunction && strings.HasPrefix(body, "  local self = {}")
	}
	return definitions
}

func isContinuation(line string) bool {
	return line[0] == ' ' || line[0] == '}' || strings.TrimSpace(line) == "end"
}

func newDefinition(line string) *definition {
	if f := luaFunction.FindStringSubmatch(line); f != nil {
		return &definition{text: line, names: f[1:], all: true}
	}
	if l := luaLocals.FindStringSubmatch(line); l != nil {
		return &definition{text: line, names: luaName.FindAllString(l[1]+l[2], -1), isFunction: l[1] != ""}
	}
	return &definition{text: line, names: luaName.FindAllString(line, 1)}
}

func namesOf(text string) map[string]bool {
	named := map[string]bool{}
	for _, name := range luaName.FindAllString(luaComment.ReplaceAllString(text, ""), -1) {
		named[name] = true
	}
	return named
}
