package rdb

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// inlinedKeys are the key functions of a library, by name: functions of one line that return ns ..
// X, with each parameter once in X.
type inlinedKeys map[string]inlinedKey

type inlinedKey struct {
	parameters []string
	expression string
}

var oneLine = regexp.MustCompile(`^local function (\w+)\(([\w, ]*)\) return (ns \.\. .*) end\n$`)

// newInlinedKey reads a definition, if it is one of a key.
func newInlinedKey(definition string) (k inlinedKey, ok bool) {
	parts := oneLine.FindStringSubmatch(definition)
	if parts == nil {
		return k, false
	}
	k = inlinedKey{namesIn(parts[2]), parts[3]}
	uses := map[string]int{}
	for _, name := range namesAt(k.expression) {
		uses[name]++
	}
	return k, !slices.ContainsFunc(k.parameters, func(name string) bool { return uses[name] != 1 })
}

// inlineKeys replaces calls of key functions by the key's expression, and drops the functions that
// are no longer needed. Making a function at each run costs Redis more than the call does.
func inlineKeys(definitions []*luaDefinition, entry string) (rest []*luaDefinition, inlined string) {
	made := inlinedKeys{}
	for _, d := range definitions {
		if k, ok := newInlinedKey(d.text); ok {
			made[d.names[0]] = k
		}
	}
	inlined = made.inline(entry)
	named := namesOf(inlined)
	for _, d := range definitions {
		if _, isKey := made[d.names[0]]; !isKey {
			d.text = made.inline(d.text)
			d.uses = namesOf(d.text)
			maps.Copy(named, d.uses)
		}
	}
	return slices.DeleteFunc(definitions, func(d *luaDefinition) bool {
		_, isKey := made[d.names[0]]
		return isKey && !named[d.names[0]]
	}), inlined
}

// inline replaces the calls in a text, and those in their arguments.
func (k inlinedKeys) inline(text string) string {
	return replaceCalls(text, func(name, after string) (string, int, bool) {
		key, ok := k[name]
		if !ok {
			return "", 0, false
		}
		arguments, length := argumentsOf(after)
		for i := range arguments {
			arguments[i] = k.inline(arguments[i])
		}
		return key.with(arguments), length, true
	})
}

// with is the key's expression with arguments in place of the parameters.
func (k inlinedKey) with(arguments []string) string {
	out, done := strings.Builder{}, 0
	for at, name := range namesAt(k.expression) {
		i := slices.Index(k.parameters, name)
		if i < 0 {
			continue
		}
		out.WriteString(k.expression[done:at])
		if i < len(arguments) {
			out.WriteString("(" + arguments[i] + ")")
		} else {
			out.WriteString("nil")
		}
		done = at + len(name)
	}
	return "(" + out.String() + k.expression[done:] + ")"
}
