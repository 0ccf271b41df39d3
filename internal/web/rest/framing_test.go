package rest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestFramingIsParsed feeds requests whole and in small pieces. Bytes after an ambiguous request do
// not matter; bytes after any other are parsed as the next request.
func TestFramingIsParsed(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: x\r\n"
	const both = head + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
	for requests, want := range map[string]bool{
		"":                                      false,
		head + "\r\n":                           false,
		head + "\r\n" + head + "\r\n":           false,
		"\r\n" + head + "Content-Length: 0\r\n": false,
		both:                                    true,
		strings.ToLower(both):                   true,
		strings.ReplaceAll(both, "\r\n", "\n"):  true,
		head + "\r\n" + both:                    true,
		head + "X: " + strings.Repeat("y", 1000) + "\r\n\r\n" + both:          true,
		head + "X: a\r\n folded\r\n\r\n":                                      true,
		head + "X: a\r\n\tfolded\r\n\r\n":                                     true,
		head + "Content-Length: x\r\n\r\n":                                    true,
		head + "Content-Length: -1\r\n\r\n":                                   true,
		head + "Content-Length: 3\r\n\r\nabc" + both:                          true,
		head + "Content-Length: 4\r\n\r\nabc":                                 false,
		head + "Content-Length: 200\r\n\r\n" + both:                           false,
		head + "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n":           false,
		head + "Transfer-Encoding: chunked\r\n\r\nC8\r\n" + both:              false,
		head + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n":                    true,
		head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n":                     true,
		head + "Transfer-Encoding: chunked\r\n\r\n0\r\nT: 1\r\n\r\n":          false,
		head + "Transfer-Encoding: chunked\r\n\r\n0\r\nT: 1\r\n\r\n" + both:   true,
		head + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" + both: true,
	} {
		for _, size := range []int{1, 7, 1000} {
			var f framing
			for rest := requests; rest != ""; {
				n := min(size, len(rest))
				f.feed([]byte(rest[:n]))
				rest = rest[n:]
			}
			assert.Equal(t, want, f.ambiguous.Load(), "%q in pieces of %d", requests, size)
		}
	}
}
