package rdb

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// keys are the functions of a library that make the names of keys, by their names: those of one
// line that return ns .. X, with each parameter once in X.
type keys map[string]key

type key struct {
	parameters []string
	expression string
}

var (
	luaKey    = regexp.MustCompile(`^local function (\w+)\(([\w, ]*)\) return (ns \.\. .*) end\n$`)
	luaToken  = regexp.MustCompile(`'[^']*'|[A-Za-z_]\w*`)
	luaSimple = regexp.MustCompile(`^(?:[\w.]+|'[^']*')$`)
)

// newKey reads a definition, if it is one of a key.
func newKey(definition string) (k key, ok bool) {
	parts := luaKey.FindStringSubmatch(definition)
	if parts == nil {
		return k, false
	}
	k = key{luaName.FindAllString(parts[2], -1), parts[3]}
	used := luaToken.FindAllString(k.expression, -1)
	for _, parameter := range k.parameters {
		first := slices.Index(used, parameter)
		if first < 0 || slices.Contains(used[first+1:], parameter) {
			return k, false
		}
	}
	return k, true
}

// inlineKeys writes what makes a key where its function is called, and leaves out the functions
// that nothing needs any more. Making a function at each run costs Redis more than the call does.
func inlineKeys(definitions []*definition, entry string) (rest []*definition, inlined string) {
	made := keys{}
	for _, d := range definitions {
		if k, ok := newKey(d.text); ok {
			made[d.names[0]] = k
		}
	}
	if len(made) == 0 {
		return definitions, entry
	}
	names := strings.Join(slices.Collect(maps.Keys(made)), "|")
	calls := regexp.MustCompile(`(?:^|[^.\w])(` + names + `)\(`)
	inlined = made.inline(entry, calls)
	named := namesOf(inlined)
	for _, d := range definitions {
		if _, isKey := made[d.names[0]]; !isKey {
			d.text = made.inline(d.text, calls)
			d.uses = namesOf(d.text)
			maps.Copy(named, d.uses)
		}
	}
	return slices.DeleteFunc(definitions, func(d *definition) bool {
		_, isKey := made[d.names[0]]
		return isKey && !named[d.names[0]]
	}), inlined
}

// inline replaces the calls in a text, and those in their arguments.
func (k keys) inline(text string, calls *regexp.Regexp) string {
	var out strings.Builder
	for {
		at := calls.FindStringSubmatchIndex(text)
		if at == nil {
			out.WriteString(text)
			return out.String()
		}
		arguments, length := argumentsOf(text[at[1]:])
		for i := range arguments {
			arguments[i] = k.inline(arguments[i], calls)
		}
		out.WriteString(text[:at[2]])
		out.WriteString(k[text[at[2]:at[3]]].with(arguments))
		text = text[at[1]+length:]
	}
}

// with is the key's expression with arguments in place of the parameters.
func (k key) with(arguments []string) string {
	return "(" + luaToken.ReplaceAllStringFunc(k.expression, func(token string) string {
		i := slices.Index(k.parameters, token)
		switch {
		case i < 0:
			return token
		case i >= len(arguments):
			return "nil"
		case luaSimple.MatchString(arguments[i]):
			return arguments[i]
		}
		return "(" + arguments[i] + ")"
	}) + ")"
}

// argumentsOf reads the arguments of a call up to its closing parenthesis, and how long they are
// with it.
func argumentsOf(text string) (arguments []string, length int) {
	depth, begun, quoted := 0, 0, false
	for i, c := range text {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(' || c == '{' || c == '[':
			depth++
		case depth == 0 && (c == ',' || c == ')'):
			if argument := strings.TrimSpace(text[begun:i]); argument != "" {
				arguments = append(arguments, argument)
			}
			if begun = i + 1; c == ')' {
				return arguments, begun
			}
		case c == ')' || c == '}' || c == ']':
			depth--
		}
	}
	panic("a call without its closing parenthesis: " + text)
}
