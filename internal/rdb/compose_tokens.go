package rdb

import (
	"iter"
	"strings"
)

// namesAt yields the names in a Lua text, and where they are; not those in comments and strings.
func namesAt(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for at := 0; at < len(text); {
			length := tokenLength(text[at:])
			if token := text[at : at+length]; isLetter(token[0]) && !yield(at, token) {
				return
			}
			at += length
		}
	}
}

// namesIn returns the names in a Lua text.
func namesIn(text string) (names []string) {
	for _, name := range namesAt(text) {
		names = append(names, name)
	}
	return names
}

// tokenLength is how long the token is that a Lua text begins with: a name or number, a string, a
// comment of a line, or any other character.
func tokenLength(text string) (length int) {
	switch first := text[0]; {
	case isWord(first):
		for length = 1; length < len(text) && isWord(text[length]); length++ {
		}
		return length
	case first == '\'' || first == '"':
		for length = 1; length < len(text) && text[length] != first; length++ {
			if text[length] == '\\' {
				length++
			}
		}
		return min(length+1, len(text))
	case strings.HasPrefix(text, "--"):
		line, _, _ := strings.Cut(text, "\n")
		return len(line)
	}
	return 1
}

func isLetter(c byte) bool { return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' }

func isWord(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }

// replaceCalls replaces calls of functions in a Lua text, except of functions in tables. Replace
// gets a function's name and the text after it, from the parenthesis on. It returns a replacement
// for the name and the next length bytes; ok is false if the call stays.
func replaceCalls(text string, replace func(name, after string) (with string, length int, ok bool)) string {
	var out strings.Builder
	done := 0
	for at, name := range namesAt(text) {
		after := text[at+len(name):]
		if at < done || !strings.HasPrefix(after, "(") || at > 0 && text[at-1] == '.' {
			continue
		}
		if with, length, ok := replace(name, after); ok {
			out.WriteString(text[done:at])
			out.WriteString(with)
			done = at + len(name) + length
		}
	}
	out.WriteString(text[done:])
	return out.String()
}

// argumentsOf reads the arguments of a call from its parenthesis on, and how long that is with
// both parentheses.
func argumentsOf(text string) (arguments []string, length int) {
	depth, begun := 0, 1
	for at := 0; at < len(text); at += tokenLength(text[at:]) {
		switch text[at] {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth--
		}
		if depth == 0 || depth == 1 && text[at] == ',' {
			if argument := strings.TrimSpace(text[begun:at]); argument != "" {
				arguments = append(arguments, argument)
			}
			begun = at + 1
		}
		if depth == 0 {
			return arguments, begun
		}
	}
	panic("a call without its closing parenthesis: " + text)
}
