package condition

import (
	"fmt"
	"slices"
	"strings"
)

// Texts of syntax errors: the rule, and what to write instead.

func (p *parser) refuse(t *token, reason string) *SyntaxError {
	return &SyntaxError{t.Position, len(t.text), p.source, reason}
}

// unexpected refuses the next token, where something else should be.
func (p *parser) unexpected(wanted string) *SyntaxError {
	switch t := p.peek(); t.kind {
	case badToken:
		return t.failure
	case endToken:
		return p.refuse(t, fmt.Sprintf("the condition ends where %s should follow", wanted))
	default:
		return p.refuse(t, fmt.Sprintf("%s should be here, not %s", strings.TrimSuffix(wanted, ","), t.text))
	}
}

// afterTest refuses the next token, which stands behind a complete test.
func (p *parser) afterTest() *SyntaxError {
	t := p.peek()
	switch {
	case t.kind == badToken:
		return t.failure
	case t.kind == closeToken:
		return p.refuse(t, "no parenthesis is open here")
	case t.kind == operatorToken || slices.Contains([]string{"is", "has", "was"}, t.text):
		return p.refuse(t, "a test ends before this: join two by and, or put the first in parentheses")
	case t.text == "not":
		return p.refuse(t, "not stands before the whole test, as in not a = b, or behind a verb, as in a is not in b")
	case t.text == "in" || t.text == "defined":
		return p.refuse(t, "a verb is missing: write is "+t.text)
	case t.text == "passed" || t.text == "since":
		return p.refuse(t, "write it in full: has passed since")
	case slices.Contains(units, strings.ToLower(t.text)) && Kind(p.tokens[p.next-1].value) == Number:
		return p.refuse(t, "a duration is one word, with the units d, h, m and s: 3d, not 3 days")
	default:
		return p.refuse(t, "and or or is missing before this")
	}
}

// units are the words of durations that are not written as one word.
var units = []string{"d", "day", "days", "h", "hour", "hours", "m", "min", "minute", "minutes", "s", "second", "seconds", "week", "weeks"}

const phrases = "is defined, is in, or has passed since"

// synonyms are words that no phrase has, and the phrases to write for them.
var synonyms = map[string]string{
	"set": "is defined", "present": "is defined", "given": "is defined", "known": "is defined", "exists": "is defined",
	"unset": "is not defined", "missing": "is not defined", "absent": "is not defined", "undefined": "is not defined",
	"within": "is in", "inside": "is in", "among": "is in", "contained": "is in", "one": "is in",
	"defined": "is defined", "passed": "has passed since",
	"elapsed": "has passed since", "gone": "has passed since", "past": "has passed since", "over": "has passed since",
}

// noPhrase refuses the next token, which stands behind a verb, or behind a verb and not.
func (p *parser) noPhrase() *SyntaxError {
	t := p.peek()
	switch {
	case t.kind == literalToken && t.value == nil:
		return p.refuse(t, "a verb does not compare: write is defined, is not defined, or = null")
	case t.kind == literalToken || t.kind == openToken:
		return p.refuse(t, "a verb does not compare: write = or /= instead of it")
	case t.kind == pathToken && len(t.path.Names) > 1:
		return p.refuse(t, "a verb does not compare: write = or /= or is in")
	case t.kind == pathToken:
		return p.refuse(t, fmt.Sprintf("there is no %q: write %s", t.text, p.phraseFor(t.text)))
	default:
		return p.unexpected("a phrase (" + phrases + ")")
	}
}

// phraseFor returns the phrase to write in place of a word, which is the next token.
func (p *parser) phraseFor(word string) string {
	synonym := synonyms[strings.ToLower(word)]
	denied := p.tokens[p.next-1].text == "not" && strings.Contains(synonym, "not") // "is not missing"
	if synonym == "" || denied {
		return phrases
	}
	return synonym
}

// maxHint bounds, in bytes, how much of a condition is written out in a hint.
const maxHint = 200

// mixed says where parentheses can stand between operands that are joined by and as well as or.
func mixed(operands []string, connectives []*token) string {
	first, second := grouped(operands, connectives, "or"), grouped(operands, connectives, "and")
	if len(first) > maxHint {
		return "and and or need parentheses: put them around all that or joins, or around all that and joins"
	}
	return fmt.Sprintf("and and or need parentheses: write %s, or %s", first, second)
}

// grouped writes the operands out, with parentheses around operands joined by the same word.
func grouped(operands []string, connectives []*token, word string) string {
	groups, members := []string{}, []string{}
	for i, operand := range operands {
		members = append(members, normalize(operand))
		if i < len(connectives) && connectives[i].text == word {
			continue
		}
		group := strings.Join(members, " "+word+" ")
		if len(members) > 1 {
			group = "(" + group + ")"
		}
		if i < len(connectives) {
			group += " " + connectives[i].text
		}
		groups, members = append(groups, group), nil
	}
	return strings.Join(groups, " ")
}

// normalize gives a part of a condition in one line, with single spaces and without comments.
func normalize(part string) string {
	var b strings.Builder
	glued := true
	for _, t := range tokens(part) {
		if !glued && t.kind != closeToken && t.kind != endToken {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
		glued = t.kind == openToken
	}
	return b.String()
}
