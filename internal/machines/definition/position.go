package definition

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Within returns the place of a byte of a scalar's text. The text and the file differ in spaces,
// line breaks and escapes, but have all other characters in the same order, so Within counts these.
// If placeholders were replaced, it returns the place of the scalar.
func (d *Document) Within(v *Value, offset int) Place {
	if v.replaced || v.node == nil {
		return v.Place
	}
	lines := d.linesOf(v.File)
	if v.Line > len(lines) {
		return v.Place
	}
	offset = min(offset, len(v.Text))
	content := d.files[v.File].Content
	s := scanner{rest: content[lines[v.Line-1]:], style: v.node.Style &^ (yaml.TaggedStyle | yaml.FlowStyle)}
	if !s.begin(v.Column) {
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
	at := len(content) - len(s.rest)
	line, found := slices.BinarySearch(lines, at)
	if !found {
		line-- // the one that begins before it
	}
	return Place{v.File, line + 1, 1 + utf8.RuneCount(bytes.TrimPrefix(content[lines[line]:at], byteOrderMark))}
}

// placeOf is the place of a byte of a file, which may not be UTF-8.
func (d *Document) placeOf(file, offset int) Place {
	before := d.files[file].Content
	before = before[:min(offset, len(before))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return Place{file, 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(bytes.TrimPrefix(line, byteOrderMark))}
}

// byteOrderMark may begin a file, and is not a character of it.
var byteOrderMark = []byte("\ufeff")

// linesOf returns where the lines of a file begin; none if it is not UTF-8.
func (d *Document) linesOf(file int) []int {
	if d.lines == nil {
		d.lines = make([][]int, len(d.files))
	}
	if content := d.files[file].Content; d.lines[file] == nil && utf8.Valid(content) {
		d.lines[file] = []int{0}
		for i, b := range content {
			if b == '\n' {
				d.lines[file] = append(d.lines[file], i+1)
			}
		}
	}
	return d.lines[file]
}

// scanner goes over a scalar in a file.
type scanner struct {
	// rest is the file from the current place on.
	rest  []byte
	style yaml.Style
}

// begin goes from the start of a line to the first character of a scalar that stands at a column.
// It returns false if it is not there.
func (s *scanner) begin(column int) bool {
	s.rest = bytes.TrimPrefix(s.rest, byteOrderMark)
	for range column - 1 {
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
