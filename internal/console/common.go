package console

import (
	"bytes"
	"html/template"
	"net/http"
	"sync"
	"time"
)

// common is the part of a page that is the same for every visitor.
type common struct {
	// data is the result of the page's Load; it must not be changed.
	data any
	html []byte
}

// commonMark stands in a page for its common part, until that is written. Shown data cannot contain
// it, because templates escape it.
const commonMark = "<!-- common -->"

// Common is where a page has its common part.
func (shownPage) Common() template.HTML { return commonMark }

// withCommon returns a page with its common part.
func (v shownPage) withCommon(text []byte) []byte {
	return bytes.Replace(text, []byte(commonMark), v.common, 1)
}

// commons has the common parts of pages, which are made once a sample. It is safe for concurrent
// use.
type commons struct {
	mu     sync.Mutex
	sample sampleID
	parts  map[commonOf]common
	bytes  int
}

// commonOf tells common parts apart. Root sees links that others do not.
type commonOf struct {
	path, query string
	root        bool
}

// sampleID identifies a sample. While Redis is away, samples keep the time of the last good one.
type sampleID struct {
	at    time.Time
	redis string
}

// Limits of the cache: the bytes of a query, and of all parts together.
const (
	maxCommonQuery = 300
	maxCommons     = 2 << 20
)

// find returns the part of a sample. Parts of an earlier sample are dropped.
func (c *commons) find(sample sampleID, of commonOf) (common, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sample != sample {
		c.sample, c.parts, c.bytes = sample, map[commonOf]common{}, 0
	}
	made, ok := c.parts[of]
	return made, ok
}

// keep keeps a part, unless there is a newer sample or none at all, or no room.
func (c *commons) keep(sample sampleID, of commonOf, made common) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := len(of.query) + len(made.html)
	if c.sample != sample || sample.at.IsZero() || len(of.query) > maxCommonQuery || c.bytes+size > maxCommons {
		return
	}
	c.parts[of] = made
	c.bytes += size
}

// common returns the common part of a page. Load and template are given no more of the visitor than
// whether it is root, so that nothing of one person can be shown to another.
func (s *server) common(v *Visit, p Page) (common, error) {
	of := commonOf{p.Path, v.Request.URL.RawQuery, v.Root}
	sample := sampleID{v.Figures.At, v.Figures.Redis}
	if made, ok := s.commons.find(sample, of); ok {
		return made, nil
	}
	everybody := &Visit{
		Visitor: Visitor{Root: v.Root}, Request: &http.Request{Method: http.MethodGet, URL: v.Request.URL},
		Header: http.Header{}, Figures: v.Figures, Tracks: v.Tracks, Now: s.Now,
	}
	data, err := s.load(everybody, p)
	if err != nil {
		return common{}, err
	}
	var text bytes.Buffer
	err = s.templateOf(p.Template, p).ExecuteTemplate(bounded{&text}, "common", shownPage{Visit: everybody, Page: p, Data: data})
	if err != nil {
		return common{}, err
	}
	made := common{data, bytes.Clone(text.Bytes())}
	s.commons.keep(sample, of, made)
	return made, nil
}
