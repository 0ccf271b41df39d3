package wire

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep arrays and objects may be nested, as in jsontext. A Scanner does not count.
const MaxDepth = 10_000

// Scanner reads the tokens of a JSON text (RFC 8259), as strictly as jsontext does: text is UTF-8,
// escaped surrogates come in pairs. It only knows whether a text is JSON. Why one is not, jsontext
// says, which takes several times as long.
type Scanner struct {
	text string
	// at is where the next token begins, or the space before it.
	at int
}

// New makes a scanner of a text.
func New(text string) Scanner { return Scanner{text: text} }

// ErrSyntax means that the text is not JSON.
var ErrSyntax = errors.New("not JSON")

// Peek returns the first byte of the next token, 0 at the end.
func (s *Scanner) Peek() byte {
	for ; s.at < len(s.text); s.at++ {
		if c := s.text[s.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

// AtEnd reports whether nothing but space follows.
func (s *Scanner) AtEnd() bool { return s.Peek() == 0 && s.at == len(s.text) }

// Take reads a token of one byte, if it is next.
func (s *Scanner) Take(c byte) bool {
	if s.Peek() != c {
		return false
	}
	s.at++
	return true
}

// More reads the byte after a member of an array or object: a comma, or end.
func (s *Scanner) More(end byte) (bool, error) {
	if s.Take(',') {
		return true, nil
	}
	if s.Take(end) {
		return false, nil
	}
	return false, ErrSyntax
}

// Token reads the next token, which begins a value. Its kind is its first byte, or '0' for a
// number. For a string, token is the unquoted text.
func (s *Scanner) Token() (kind byte, token string, err error) {
	kind = s.Peek()
	switch kind {
	case '"':
		token, err = s.Text()
		return kind, token, err
	case '{', '[':
		s.at++
		return kind, "", nil
	case 'n':
		return kind, "", s.literal("null")
	case 't':
		return kind, "", s.literal("true")
	case 'f':
		return kind, "", s.literal("false")
	}
	token, err = s.number()
	return '0', token, err
}

func (s *Scanner) literal(text string) error {
	if !strings.HasPrefix(s.text[s.at:], text) {
		return ErrSyntax
	}
	s.at += len(text)
	return nil
}

// Text reads a string. It returns the text without quotation marks and escapes.
func (s *Scanner) Text() (string, error) {
	if s.Peek() != '"' {
		return "", ErrSyntax
	}
	start, escaped, ascii := s.at, false, true
	for i := start + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			return unquote(s.text[start:s.at], escaped, ascii)
		case c == '\\':
			escaped = true
			i++ // it may be a quotation mark
		case c < ' ':
			return "", ErrSyntax
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", ErrSyntax
}

// unquote returns the text of a quoted string.
func unquote(quoted string, escaped, ascii bool) (string, error) {
	if escaped {
		text, err := jsontext.AppendUnquote(nil, quoted)
		if err != nil {
			return "", ErrSyntax
		}
		return string(text), nil
	}
	text := quoted[1 : len(quoted)-1]
	if !ascii && !utf8.ValidString(text) {
		return "", ErrSyntax
	}
	return text, nil
}

func (s *Scanner) number() (string, error) {
	start := s.at
	s.skip('-')
	valid := s.skip('0') || s.digits()
	if s.skip('.') {
		valid = s.digits() && valid
	}
	if s.skip('e') || s.skip('E') {
		_ = s.skip('+') || s.skip('-')
		valid = s.digits() && valid
	}
	if !valid {
		return "", ErrSyntax
	}
	return s.text[start:s.at], nil
}

// skip skips a byte, if it is next.
func (s *Scanner) skip(c byte) bool {
	if s.at == len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

// digits skips digits, and reports whether there are any.
func (s *Scanner) digits() bool {
	start := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}

// WhyNotJSON is jsontext's error for a text that is not JSON.
func WhyNotJSON(text []byte) error {
	json := jsontext.NewDecoder(bytes.NewBuffer(text))
	for {
		if _, err := json.ReadToken(); err != nil {
			return err
		}
	}
}
