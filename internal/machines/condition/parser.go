package condition

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep parentheses nest: parser and evaluation are recursive.
const maxDepth = 100

// parser reads the tokens of a source by recursive descent, with a method for each rule of the
// grammar.
type parser struct {
	source string
	tokens []token
	next   int // of tokens
	depth  int // of open parentheses
	paths  []Path
}

// Parse reads a condition. It fails with a [*SyntaxError].
func Parse(source string) (*Condition, error) {
	if failure := readable(source); failure != nil {
		return nil, failure
	}
	p := parser{source: source, tokens: tokens(source)}
	root, failure := p.whole()
	if failure != nil {
		return nil, failure
	}
	for _, path := range p.paths {
		if err := path.Validate(); err != nil {
			return nil, err
		}
	}
	return newCondition(source, root, p.paths), nil
}

// readable refuses a source that is too long or not UTF-8.
func readable(source string) *SyntaxError {
	if len(source) > maxSource {
		return &SyntaxError{start, 0, source, fmt.Sprintf("there are %d bytes: at most %d are allowed", len(source), maxSource)}
	}
	l := lexer{source, start}
	for i, r := range source {
		if r == utf8.RuneError && !strings.HasPrefix(source[i:], string(r)) {
			l.advance(source[:i])
			return l.refuse(l.Position, source[i:i+1], "this is not UTF-8")
		}
	}
	return nil
}

func (p *parser) peek() *token { return &p.tokens[p.next] }

// take goes over the next token if it is of a kind, and one of some texts if any are given.
func (p *parser) take(kind tokenKind, texts ...string) (*token, bool) {
	t := p.peek()
	if t.kind != kind || len(texts) > 0 && !slices.Contains(texts, t.text) {
		return nil, false
	}
	p.next++
	return t, true
}

// spanFrom is the span from a token to the one before the next.
func (p *parser) spanFrom(first int) span {
	from, last := p.tokens[first].Position, p.tokens[p.next-1]
	return span{from, last.Offset + len(last.text) - from.Offset}
}

func (p *parser) whole() (node, *SyntaxError) {
	if p.peek().kind == endToken {
		return nil, p.refuse(p.peek(), "the condition is empty: write true for a gate that is always open")
	}
	root, failure := p.condition()
	if failure == nil && p.peek().kind != endToken {
		failure = p.afterTest()
	}
	return root, failure
}

func (p *parser) condition() (node, *SyntaxError) {
	first := p.next
	var operands []node
	var texts []string // of the operands, with their parentheses
	var connectives []*token
	for {
		from := p.next
		operand, failure := p.test()
		if failure != nil {
			return nil, failure
		}
		operands = append(operands, operand)
		texts = append(texts, p.spanFrom(from).in(p.source))
		connective, ok := p.take(keywordToken, "and", "or")
		if !ok {
			break
		}
		connectives = append(connectives, connective)
	}
	if len(connectives) == 0 {
		return operands[0], nil
	}
	for _, connective := range connectives {
		if connective.text != connectives[0].text {
			return nil, p.refuse(connective, mixed(texts, connectives))
		}
	}
	return junction{p.spanFrom(first), connectives[0].text, operands}, nil
}

// test reads a test. It has no node of its own, but a negation.
func (p *parser) test() (node, *SyntaxError) {
	first, negated := p.next, false
	for _, ok := p.take(keywordToken, "not"); ok; _, ok = p.take(keywordToken, "not") {
		negated = !negated
	}
	operand, failure := p.comparison()
	if failure != nil || !negated {
		return operand, failure
	}
	return negation{p.spanFrom(first), operand}, nil
}

// comparison reads a test behind its nots.
func (p *parser) comparison() (node, *SyntaxError) {
	first := p.next
	left, failure := p.value()
	if failure != nil {
		return nil, failure
	}
	if _, ok := p.take(keywordToken, "is", "has", "was"); ok {
		return p.phrase(first, left)
	}
	operator, ok := p.take(operatorToken)
	if !ok {
		return left, nil
	}
	right, failure := p.value()
	if failure != nil {
		return nil, failure
	}
	return comparison{p.spanFrom(first), operator.text, left, right}, nil
}

// phrase reads the rest of a test, from its verb on. first and left are the token and the value
// that the test begins with.
func (p *parser) phrase(first int, left node) (node, *SyntaxError) {
	_, negated := p.take(keywordToken, "not")
	word := p.peek()
	p.next++
	var right node
	var failure *SyntaxError
	switch {
	case word.kind == pathToken && word.text == "defined":
	case word.kind == keywordToken && word.text == "in":
		right, failure = p.value()
	case word.kind == pathToken && word.text == "passed":
		if _, ok := p.take(keywordToken, "since"); !ok {
			return nil, p.unexpected("since and a timestamp, as in 12h has passed since system.entered_state,")
		}
		right, failure = p.value()
	default:
		p.next--
		return nil, p.noPhrase()
	}
	if failure != nil {
		return nil, failure
	}
	return phrase{p.spanFrom(first), word.text, negated, left, right}, nil
}

func (p *parser) value() (node, *SyntaxError) {
	first := p.next
	if open, ok := p.take(openToken); ok {
		return p.parenthesised(open)
	}
	if t, ok := p.take(literalToken); ok {
		return literal{p.spanFrom(first), t.value}, nil
	}
	if t, ok := p.take(pathToken); ok {
		p.paths = append(p.paths, t.path)
		return pathNode{p.spanFrom(first), t.path}, nil
	}
	return nil, p.unexpected("a value")
}

func (p *parser) parenthesised(open *token) (node, *SyntaxError) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.refuse(open, fmt.Sprintf("parentheses nest at most %d deep", maxDepth))
	}
	inner, failure := p.condition()
	if failure != nil {
		return nil, failure
	}
	if _, ok := p.take(closeToken); !ok {
		if p.peek().kind == endToken {
			return nil, p.refuse(open, "this parenthesis is not closed")
		}
		return nil, p.afterTest()
	}
	p.depth--
	return inner, nil
}
