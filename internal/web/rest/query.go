package rest

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
)

// AllowQuery refuses requests whose query has other names than these, or one of them twice.
func AllowQuery(names ...string) func(http.Handler) http.Handler {
	detail := "must have no query"
	if len(names) > 0 {
		detail = "the query may have " + strings.Join(names, ", ") + ", each once and percent-encoded"
	}
	return allowQuery(names, 1, false, detail)
}

// IgnoreQuery refuses requests whose query has one of these names twice, and ignores other names:
// for requests of the services that the bus takes the place of, which ignore them too.
func IgnoreQuery(names ...string) func(http.Handler) http.Handler {
	detail := "the query must be percent-encoded"
	if len(names) > 0 {
		detail += ", and may have each of " + strings.Join(names, ", ") + " once"
	}
	return allowQuery(names, 1, true, detail)
}

// AllowRepeated refuses requests whose query has another name than this. It may have it several
// times.
func AllowRepeated(name string) func(http.Handler) http.Handler {
	return allowQuery([]string{name}, math.MaxInt, false, "the query may have "+name+", percent-encoded and as often as needed")
}

// allowQuery refuses requests, with a detail, whose query has other names than these, unless others
// are ignored, or more values of one than some number.
func allowQuery(names []string, maxValues int, others bool, detail string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			values, err := url.ParseQuery(r.URL.RawQuery)
			allowed := err == nil
			for name, sent := range values {
				known := slices.Contains(names, name)
				allowed = allowed && (known && len(sent) <= maxValues || !known && others)
			}
			if !allowed {
				writeProblem(w, r, Problem{Status: http.StatusBadRequest, Detail: detail})
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// Query reads the values of a request's query. The first that is wrong is its error.
type Query struct {
	url.Values
	err error
}

// ReadQuery returns the query of a request.
func ReadQuery(r *http.Request) *Query { return &Query{Values: r.URL.Query()} }

// Err returns the error of the first wrong value, a [bus.Invalid].
func (q *Query) Err() error { return q.err }

// Fail makes an error the query's, unless it has one.
func (q *Query) Fail(err error) {
	if q.err == nil {
		q.err = err
	}
}

// Integer returns a value that must be in a range, or the fallback if it is not there.
func (q *Query) Integer(name string, lowest, highest, fallback int64) int64 {
	if !q.Has(name) {
		return fallback
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || n < lowest || n > highest {
		q.Refuse("the query's %s must be an integer from %d to %d", name, lowest, highest)
		return fallback
	}
	return n
}

// MaxTime is the end of the year 9999, in ms since the Unix epoch.
const MaxTime = 253_402_300_799_999

// Time returns a time that is sent in ms since the Unix epoch; zero if it is not there.
func (q *Query) Time(name string) time.Time {
	if !q.Has(name) {
		return time.Time{}
	}
	return time.UnixMilli(q.Integer(name, 0, MaxTime, 0))
}

// ReadTime reads a time in ms since the Unix epoch, the member of a body that the pointer points
// to. The zero time stands for none.
func ReadTime(pointer string, ms *int64) (time.Time, error) {
	switch {
	case ms == nil:
		return time.Time{}, nil
	case *ms < 0 || *ms > MaxTime:
		return time.Time{}, bus.Invalidf(pointer, "must be a time in ms since the Unix epoch, 0 to %d", MaxTime)
	}
	return time.UnixMilli(*ms), nil
}

// Word returns a value that must be one of some words, or "" if it is not there.
func Word[T ~string](q *Query, name string, words []T) T {
	word := T(q.Get(name))
	if q.Has(name) && !slices.Contains(words, word) {
		q.Refuse("the query's %s must be one of %s", name, bus.Words(words))
		return ""
	}
	return word
}

// maxFrom bounds how many events may be skipped.
const maxFrom = math.MaxInt32

// From returns how many events of a list are to be skipped.
func (q *Query) From() int { return int(q.Integer("from", 0, maxFrom, 0)) }

// Refuse makes an error of a detail, unless a value was wrong before.
func (q *Query) Refuse(format string, args ...any) {
	if q.err == nil {
		q.err = &bus.Invalid{ID: "invalid_parameter", Detail: fmt.Sprintf(format, args...)}
	}
}

// DefaultLimit is how many elements a page of a list has if the request does not say, and MaxLimit
// how many at most.
const (
	DefaultLimit = 20
	MaxLimit     = 100
)

// Limit returns how many elements of a list are wanted.
func (q *Query) Limit() int { return int(q.Integer("limit", 1, MaxLimit, DefaultLimit)) }

// Part says which part is wanted of a list that is short enough to be read as a whole: newest
// first, with a time in ms and an id for each element.
type Part struct {
	limit     int
	createdAt int64
	id        string // the last element of the page before; empty for the first page
}

// PartOfAll returns which part of a list is wanted: all of it, unless the request says.
func (q *Query) PartOfAll() (part Part) {
	part.limit = int(q.Integer("limit", 1, MaxLimit, MaxLimit))
	if !q.Has("after") {
		return part
	}
	at, id, _ := strings.Cut(q.Get("after"), ".")
	createdAt, err := strconv.ParseInt(at, 10, 64)
	if err != nil || id == "" {
		q.Refuse("the query's after must be as the Link of the page before has it")
	}
	part.createdAt, part.id = createdAt, id
	return part
}

// Take returns a part of a list, and the value of after in the request for the next page. The
// element before the part may be gone by now.
func Take[T any](part Part, all []T, keyOf func(T) (createdAt int64, id string)) (page []T, next string) {
	if part.id != "" {
		last := slices.IndexFunc(all, func(one T) bool {
			_, id := keyOf(one)
			return id == part.id
		})
		if last < 0 {
			older := slices.IndexFunc(all, func(one T) bool {
				createdAt, _ := keyOf(one)
				return createdAt < part.createdAt
			})
			if older < 0 {
				older = len(all)
			}
			last = older - 1
		}
		all = all[last+1:]
	}
	if len(all) <= part.limit {
		return all, ""
	}
	createdAt, id := keyOf(all[part.limit-1])
	return all[:part.limit], strconv.FormatInt(createdAt, 10) + "." + id
}

// RespondPage responds with 200 and a page of a list, or with an error. Next is the value of after
// in the request for the next page; it is empty if there is none.
func (s *Service) RespondPage(w http.ResponseWriter, r *http.Request, page any, next string, err error) {
	if err == nil {
		SetNext(w, r, "after", next)
	}
	s.RespondJSON(w, r, page, err)
}

// SetNext adds to a response the link to the next page of a list: the request once more, with a
// value of the query that says where that begins. It is empty if there is none.
func SetNext(w http.ResponseWriter, r *http.Request, name, next string) {
	if next == "" {
		return
	}
	query := r.URL.Query()
	query.Set(name, next)
	link := url.URL{Path: r.URL.Path, RawQuery: query.Encode()}
	w.Header().Set("Link", "<"+link.String()+`>; rel="next"`)
}
