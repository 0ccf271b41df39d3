package document

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Within is the place of a byte of a scalar's text. The text and what the file has differ in their
// spaces, line breaks and escapes, but not in the order of all other characters: these are counted.
// If placeholders were replaced, it is the place of the scalar.
func (d *Document) Within(v *Value, offset int) Place {
	content := d.files[v.File].Content
	if v.replaced || v.node == nil || !utf8.Valid(content) {
		return v.Place
	}
	offset = min(offset, len(v.Text))
	s := scanner{rest: content, style: v.node.Style &^ (yaml.TaggedStyle | yaml.FlowStyle)}
	if !s.begin(v.Place) {
		return v.Place
	}
	for _, r := range v.Text[:offset] {
		if !unicode.IsSpace(r) {
			s.skipSpace()
			s.take()
		}
	}
	if strings.TrimSpace(v.Text[offset:]) != "" {
		s.skipSpace()
	}
	before := content[:len(content)-len(s.rest)]
	start := bytes.LastIndexByte(before, '\n') + 1
	return Place{v.File, 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(bytes.TrimPrefix(before[start:], []byte("\ufeff")))}
}

// scanner goes over a scalar in a file.
type scanner struct {
	// rest is what comes after the place where it is.
	rest  []byte
	style yaml.Style
}

// begin goes to the first character of a scalar that stands at a place. It returns false if it is
// not there.
func (s *scanner) begin(at Place) bool {
	for range at.Line - 1 {
		end := bytes.IndexByte(s.rest, '\n')
		if end < 0 {
			return false
		}
		s.rest = s.rest[end+1:]
	}
	s.rest = bytes.TrimPrefix(s.rest, []byte("\ufeff"))
	for range at.Column - 1 {
		_, size := utf8.DecodeRune(s.rest)
		s.rest = s.rest[size:]
	}
	for len(s.rest) > 0 && (s.rest[0] == '&' || s.rest[0] == '!') { // an anchor, a tag
		s.rest = bytes.TrimLeftFunc(s.rest[max(0, bytes.IndexAny(s.rest, " \n")):], unicode.IsSpace)
	}
	quote := map[yaml.Style]string{yaml.DoubleQuotedStyle: `"`, yaml.SingleQuotedStyle: "'", yaml.LiteralStyle: "|", yaml.FoldedStyle: ">"}[s.style]
	if !bytes.HasPrefix(s.rest, []byte(quote)) {
		return false
	}
	s.rest = s.rest[len(quote):]
	if s.style == yaml.LiteralStyle || s.style == yaml.FoldedStyle { // its text begins in the next line
		end := bytes.IndexByte(s.rest, '\n')
		s.rest = s.rest[end+1:]
		return end >= 0
	}
	return true
}

// next is the character that comes next, and how many bytes write it.
func (s *scanner) next() (r rune, size int) {
	r, size = utf8.DecodeRune(s.rest)
	switch {
	case s.style == yaml.SingleQuotedStyle && bytes.HasPrefix(s.rest, []byte("''")):
		return r, 2
	case s.style != yaml.DoubleQuotedStyle || r != '\\' || len(s.rest) < 2:
		return r, size
	}
	escaped, size := utf8.DecodeRune(s.rest[1:])
	if digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[escaped]; digits > 0 && len(s.rest) >= 2+digits {
		code, _ := strconv.ParseUint(string(s.rest[2:2+digits]), 16, 32)
		return rune(code), 2 + digits
	}
	if strings.ContainsRune("tnvfr_NLP", escaped) { // tabs, line breaks, the no-break space
		return ' ', 2
	}
	if unicode.IsLetter(escaped) || escaped == '0' { // bell, backspace, escape, zero
		return unicode.ReplacementChar, 2
	}
	return escaped, 1 + size
}

func (s *scanner) skipSpace() {
	for len(s.rest) > 0 {
		r, size := s.next()
		if !unicode.IsSpace(r) {
			return
		}
		s.rest = s.rest[size:]
	}
}

func (s *scanner) take() {
	_, size := s.next()
	s.rest = s.rest[size:]
}
