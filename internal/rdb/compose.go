package rdb

import (
	"regexp"
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
func compose(library, entry string) string {
	definitions := definitionsOf(library)
	needed := make([]bool, len(definitions))
	named := map[string]bool{}
	addNames(named, entry)
	for found := true; found; {
		found = false
		for i, d := range definitions {
			if !needed[i] && d.isNamed(named) {
				needed[i], found = true, true
				addNames(named, d.text)
			}
		}
	}
	var source strings.Builder
	for i, d := range definitions {
		if needed[i] {
			source.WriteString(d.text)
		}
	}
	return source.String() + entry
}

// definition is one of a library.
type definition struct {
	text  string
	names []string
	all   bool // whether all of the names make it needed, not any one
}

func (d definition) isNamed(named map[string]bool) bool {
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
func definitionsOf(library string) (definitions []definition) {
	for line := range strings.Lines(library) {
		switch {
		case strings.HasPrefix(line, "--") || strings.TrimSpace(line) == "":
		case isContinuation(line):
			definitions[len(definitions)-1].text += line
		default:
			definitions = append(definitions, newDefinition(line))
		}
	}
	return definitions
}

func isContinuation(line string) bool {
	return line[0] == ' ' || line[0] == '}' || strings.TrimSpace(line) == "end"
}

func newDefinition(line string) definition {
	if f := luaFunction.FindStringSubmatch(line); f != nil {
		return definition{line, f[1:], true}
	}
	if l := luaLocals.FindStringSubmatch(line); l != nil {
		return definition{line, luaName.FindAllString(l[1]+l[2], -1), false}
	}
	return definition{line, luaName.FindAllString(line, 1), false}
}

func addNames(named map[string]bool, text string) {
	text = luaComment.ReplaceAllString(text, "")
	for _, name := range luaName.FindAllString(text, -1) {
		named[name] = true
	}
}
