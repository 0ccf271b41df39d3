package condition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind classifies a token for the parser.
type tokenKind int

const (
	endToken      tokenKind = iota // of the source
	badToken                       // the source cannot be read from here
	openToken                      // (
	closeToken                     // )
	operatorToken                  // of a comparison
	keywordToken
	literalToken
	pathToken // or a word of a phrase
)

type token struct {
	kind tokenKind
	Position
	text    string
	value   any          // of a literal
	path    Path         // of a path
	failure *SyntaxError // of a bad token
}

var (
	keywords  = []string{"and", "or", "not", "is", "has", "was", "since", "in"}
	literals  = map[string]any{"true": true, "false": false, "null": nil}
	operators = []string{"=", "/=", "<", ">", "<=", ">="}
	// foreignOperators maps operators of other languages to the ones to write here.
	foreignOperators = map[string]string{
		"==": "=", "===": "=", "!=": "/=", "!==": "/=", "<>": "/=", "=<": "<=", "=>": ">=",
		"&&": "and", "&": "and", "||": "or", "|": "or", "!": "not",
	}
)

const (
	maxSource     = 16 << 10 // bytes
	operatorRunes = "=/<>!&|"
	endsWord      = operatorRunes + `()#"'`
)

var start = Position{Offset: 0, Line: 1, Column: 1}

// lexer splits a source into tokens. It stands at a position.
type lexer struct {
	source string
	Position
}

// tokens splits a source into tokens. The last one is an end, or bad; it stands behind the one
// before it.
func tokens(source string) (all []token) {
	l := lexer{source, start}
	end := l.Position
	for {
		l.skip()
		if l.Offset == len(source) {
			return append(all, token{kind: endToken, Position: end})
		}
		next := l.next()
		if all = append(all, next); next.kind == badToken {
			return all
		}
		end = l.Position
	}
}

func (l *lexer) rest() string { return l.source[l.Offset:] }

// advance goes over a text, which stands at the position.
func (l *lexer) advance(text string) {
	l.Offset += len(text)
	if lines := strings.Count(text, "\n"); lines > 0 {
		l.Line += lines
		l.Column = 1
		text = text[strings.LastIndexByte(text, '\n')+1:]
	}
	l.Column += utf8.RuneCountInString(text)
}

// skip goes over spaces and comments.
func (l *lexer) skip() {
	for {
		rest := l.rest()
		space := rest[:len(rest)-len(strings.TrimLeftFunc(rest, unicode.IsSpace))]
		l.advance(space)
		if rest = l.rest(); !strings.HasPrefix(rest, "#") {
			return
		}
		comment, _, _ := strings.Cut(rest, "\n")
		l.advance(comment)
	}
}

// next reads a token.
func (l *lexer) next() token {
	at, rest := l.Position, l.rest()
	text, failure := "", (*SyntaxError)(nil)
	switch first := rest[:1]; {
	case first == "(" || first == ")":
		text = first
	case first == "'":
		failure = l.refuse(at, first, `a string stands in double quotes: "gold"`)
	case first == `"`:
		text, failure = l.quoted(rest)
	case strings.Contains(operatorRunes, first):
		text = rest[:len(rest)-len(strings.TrimLeft(rest, operatorRunes))]
	default:
		text = prefixUntil(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(endsWord, r) })
	}
	t := token{kind: badToken, Position: at, text: text, failure: failure}
	if failure == nil {
		l.advance(text)
		l.classify(&t)
	}
	return t
}

func prefixUntil(text string, ends func(rune) bool) string {
	if i := strings.IndexFunc(text, ends); i >= 0 {
		return text[:i]
	}
	return text
}

// quoted is the string, with its quotes, that a text begins with.
func (l *lexer) quoted(text string) (string, *SyntaxError) {
	for i := 1; i < len(text) && text[i] != '\n'; i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[:i+1], nil
		}
	}
	return "", l.refuse(l.Position, `"`, "the string does not end on its line: close it with a double quote")
}

func (l *lexer) refuse(at Position, span, reason string) *SyntaxError {
	return &SyntaxError{at, len(span), l.source, reason}
}

// classify completes a token by its text. It stays bad if there is a failure.
func (l *lexer) classify(t *token) {
	lower := strings.ToLower(t.text)
	value, isLiteral := literals[lower]
	isKeyword := slices.Contains(keywords, lower)
	kind, reason := pathToken, ""
	switch first := t.text[:1]; {
	case first == "(":
		kind = openToken
	case first == ")":
		kind = closeToken
	case first == `"`:
		kind, reason = literalToken, unquote(t.text, &t.value)
	case strings.Contains(operatorRunes, first):
		kind, reason = operatorToken, noOperator(t.text)
	case (isLiteral || isKeyword) && lower != t.text:
		reason = "keywords are in lower case: write " + lower
	case isLiteral:
		kind, t.value = literalToken, value
	case isKeyword:
		kind = keywordToken
	case startsNumber(t.text):
		kind = literalToken
		t.value, reason = parseNumber(t.text)
	default:
		t.path, t.failure = parsePath(t.text, t.Position, l.source)
	}
	if reason != "" {
		t.failure = l.refuse(t.Position, t.text, reason)
	}
	if t.failure == nil {
		t.kind = kind
	}
}

func unquote(text string, value *any) (reason string) {
	if json.Unmarshal([]byte(text), value) != nil {
		return `the string has an escape or a control character that JSON does not allow: write \" \\ \n \t or \u00e9`
	}
	return ""
}

// noOperator returns the reason why a text is no operator.
func noOperator(text string) (reason string) {
	switch ours := foreignOperators[text]; {
	case slices.Contains(operators, text):
		return ""
	case ours != "":
		return fmt.Sprintf("there is no %s: write %s", text, ours)
	default:
		return fmt.Sprintf("there is no %s: comparisons are %s", text, strings.Join(operators, " "))
	}
}
