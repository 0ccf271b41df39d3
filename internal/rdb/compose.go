package rdb

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// ComposeScript returns the source of a script: its entry, and the definitions of a library that
// the entry needs. Redis makes each function of a script anew at every run, which costs about as
// much as a cheap command, so ComposeScript leaves out unreachable definitions. It goes by
// function: the files that a publish needs have 53 functions, of which it makes 30 (see
// TestHotScriptsMakeFewFunctions).
//
// A library only defines. Every definition begins at the left margin, and its further lines are
// indented, except the last one: local function f, local X, Y = …, function T.f, or T.x = …. The
// entry needs a definition when its text, or the text of another definition it needs, has the
// names: f; X or Y; both T and f; T. ComposeScript does not notice that a name means something else
// there, such as a local variable: the script then has more than it needs.
//
// A key is a function of one line that returns ns .. X. It is inlined where it is called.
//
// A maker is a function that begins with local self = {}. It makes functions when they are first
// needed, which is seldom. So one function makes all makers, and the functions that only they need,
// when the first of them is called.
func ComposeScript(library, entry string) string {
	needed, entry := inlineKeys(reached(luaDefinitionsOf(library), namesOf(entry)), entry)
	putOff(needed, namesOf(entry))
	var source, seldom, made strings.Builder
	makers := makersOf(needed)
	if len(makers) > 0 {
		source.WriteString("local makers\n")
	}
	toMaker := func(name, _ string) (string, int, bool) { return "makers()." + name, 0, slices.Contains(makers, name) }
	for _, d := range needed {
		if d.isSeldom {
			seldom.WriteString(d.text)
		} else {
			source.WriteString(replaceCalls(d.text, toMaker))
		}
	}
	if len(makers) > 0 {
		for _, name := range makers {
			made.WriteString(" " + name + " = " + name + ",")
		}
		source.WriteString("makers = function()\n" + seldom.String() + "local made = {" + made.String() + " }\n" +
			"makers = function() return made end\nreturn made\nend\n")
	}
	return source.String() + replaceCalls(entry, toMaker)
}

// reached returns the definitions that code with these names needs.
func reached(definitions []*luaDefinition, named map[string]bool) (needed []*luaDefinition) {
	for found := true; found; {
		found = false
		for _, d := range definitions {
			if !d.needed && d.isNamed(named) {
				d.needed, found = true, true
				d.uses = namesOf(d.text)
				maps.Copy(named, d.uses)
			}
		}
	}
	return slices.DeleteFunc(definitions, func(d *luaDefinition) bool { return !d.needed })
}

// putOff marks definitions to be made only when a maker is called: makers, and functions that no
// other code needs. A function comes before its callers, so putOff goes through the list backward.
func putOff(definitions []*luaDefinition, entry map[string]bool) {
	for _, d := range slices.Backward(definitions) {
		d.isSeldom = d.isMaker
		if !d.isFunction || d.isMaker || d.isNamed(entry) {
			continue
		}
		d.isSeldom = !slices.ContainsFunc(definitions, func(user *luaDefinition) bool {
			return user != d && !user.isSeldom && d.isNamed(user.uses)
		})
	}
}

// makersOf returns the names of the makers.
func makersOf(definitions []*luaDefinition) (names []string) {
	for _, d := range definitions {
		if d.isMaker {
			names = append(names, d.names...)
		}
	}
	return names
}

// luaDefinition is one of a library.
type luaDefinition struct {
	text  string
	names []string
	all   bool // whether all of the names make it needed, not any one
	// uses are the names in its text, if it is needed.
	uses   map[string]bool
	needed bool

	// A maker is a function too. Seldom definitions are made when a maker is called.
	isFunction, isMaker, isSeldom bool
}

func (d *luaDefinition) isNamed(named map[string]bool) bool {
	found := 0
	for _, name := range d.names {
		if named[name] {
			found++
		}
	}
	return found == len(d.names) || found > 0 && !d.all
}

var (
	locals  = regexp.MustCompile(`^local (?:function (\w+)|([\w, ]+))`)
	inTable = regexp.MustCompile(`^function (\w+)\.(\w+)`)
)

// luaDefinitionsOf splits a library, without the comments between its definitions.
func luaDefinitionsOf(library string) (definitions []*luaDefinition) {
	begun, ended, at := 0, 0, 0 // of one definition
	define := func() {
		if ended > begun {
			definitions = append(definitions, newLuaDefinition(library[begun:ended]))
		}
		begun = at
	}
	for line := range strings.Lines(library) {
		isEmpty := strings.HasPrefix(line, "--") || strings.TrimSpace(line) == ""
		if !isEmpty && !isContinuation(line) {
			define()
		}
		if at += len(line); !isEmpty {
			ended = at
		}
	}
	define()
	return definitions
}

func isContinuation(line string) bool {
	return line[0] == ' ' || line[0] == '}' || strings.TrimSpace(line) == "end"
}

func newLuaDefinition(text string) *luaDefinition {
	if f := inTable.FindStringSubmatch(text); f != nil {
		return &luaDefinition{text: text, names: f[1:], all: true}
	}
	if l := locals.FindStringSubmatch(text); l != nil {
		d := &luaDefinition{text: text, names: namesIn(l[1] + l[2]), isFunction: l[1] != ""}
		_, body, _ := strings.Cut(text, "\n")
		d.isMaker = d.isFunction && strings.HasPrefix(body, "  local self = {}")
		return d
	}
	return &luaDefinition{text: text, names: namesIn(text)[:1]}
}

func namesOf(text string) map[string]bool {
	named := map[string]bool{}
	for _, name := range namesAt(text) {
		named[name] = true
	}
	return named
}
