package rest

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/klauspost/compress/gzip"
)

// Compress compresses pages and their files for clients that accept it. The library takes a third
// of the standard one's time for the same size. With this level the overview's page and style sheet
// fit into the first flight of TCP, 14 kB.
func Compress(h http.Handler) http.Handler {
	c := middleware.NewCompressor(6, "text/html", "text/css", "text/javascript", "application/json", "image/svg+xml")
	c.SetEncoder("gzip", func(w io.Writer, level int) io.Writer {
		packed, err := gzip.NewWriterLevel(w, level)
		if err != nil {
			panic(err) // there is such a level
		}
		return packed
	})
	return withoutRefusedEncodings(c.Handler(h))
}

// withoutRefusedEncodings keeps encodings with q=0, which are refused, from a library that reads no
// qualities.
func withoutRefusedEncodings(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all := strings.Split(strings.ToLower(r.Header.Get("Accept-Encoding")), ",")
		r.Header.Set("Accept-Encoding", strings.Join(slices.DeleteFunc(all, isRefused), ","))
		h.ServeHTTP(w, r)
	})
}

// isRefused reports whether an element of Accept-Encoding has the quality 0.
func isRefused(encoding string) bool {
	_, quality, _ := strings.Cut(encoding, "q=")
	q, err := strconv.ParseFloat(strings.TrimSpace(quality), 64)
	return err == nil && q == 0
}
