package rest

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
)

// MaxPage is the maximum limit of a page, in elements.
const MaxPage = 10_000

// ReadPage reads from a request's query which part of a list is wanted.
func ReadPage(r *http.Request) (page inspect.Page, err error) {
	query := r.URL.Query()
	page.After = query.Get("after")
	if limit := query.Get("limit"); limit != "" {
		page.Limit, err = strconv.Atoi(limit)
		if err != nil || page.Limit < 1 || page.Limit > MaxPage {
			return page, bus.Invalidf("", "the query's limit must be an integer from 1 to %d; without one, all are listed", MaxPage)
		}
	}
	return page, nil
}

// List is a JSON array that is sent while it is read, so that a long list is never in memory as a
// whole.
type List struct {
	w     http.ResponseWriter
	begun bool
	// before and after enclose the elements in the response.
	before, after string
}

// Add sends some elements. Views is a slice of anything that encodes as JSON.
func (l *List) Add(views any) error {
	var text bytes.Buffer
	if err := newEncoder(&text).Encode(views); err != nil {
		return err
	}
	elements := bytes.TrimSuffix(bytes.TrimPrefix(text.Bytes(), []byte("[")), []byte("]\n"))
	if len(elements) == 0 {
		return nil
	}
	separator := ","
	if !l.begun {
		l.begin()
		separator = l.before
	}
	_, err := l.w.Write(append([]byte(separator), elements...))
	return err
}

func (l *List) begin() {
	l.begun = true
	l.w.Header().Set("Content-Type", "application/json")
	setHeaders(l.w.Header())
	l.w.WriteHeader(http.StatusOK)
}

// RespondList responds with 200 and the list that a function adds to, or with the function's error.
// If a part of the list has been sent by then, it aborts the connection, so that no client takes
// that part for the whole list.
func (s *Service) RespondList(w http.ResponseWriter, r *http.Request, read func(*List) error) {
	s.respondList(r, &List{w: w, before: "[", after: "]\n"}, read)
}

// RespondListWithin is [Service.RespondList] for a list that is the first member of an object,
// which has another after it.
func (s *Service) RespondListWithin(w http.ResponseWriter, r *http.Request, name, other string, value any, read func(*List) error) {
	var text bytes.Buffer
	if err := newEncoder(&text).Encode(map[string]any{other: value}); err != nil {
		s.Fail(w, r, err)
		return
	}
	s.respondList(r, &List{w: w, before: `{"` + name + `":[`, after: "]," + strings.TrimPrefix(text.String(), "{")}, read)
}

func (s *Service) respondList(r *http.Request, l *List, read func(*List) error) {
	err := read(l)
	switch {
	case err != nil && l.begun:
		if r.Context().Err() == nil {
			s.Log.WarnContext(r.Context(), "list response aborted", "error", err)
		}
		panic(http.ErrAbortHandler)
	case err != nil:
		s.Fail(l.w, r, err)
		return
	}
	end := l.after
	if !l.begun {
		l.begin()
		end = l.before + end
	}
	_, _ = l.w.Write([]byte(end)) // an error means that the client is gone
}
