package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// maxPage is the maximum limit of a page, in elements.
const maxPage = 10_000

// readPage reads from a request's query which part of a list is wanted.
func readPage(r *http.Request) (page store.Page, err error) {
	query := r.URL.Query()
	page.After = query.Get("after")
	if limit := query.Get("limit"); limit != "" {
		page.Limit, err = strconv.Atoi(limit)
		if err != nil || page.Limit < 1 || page.Limit > maxPage {
			return page, bus.Invalidf("", "the query's limit must be an integer from 1 to %d; without one, all are listed", maxPage)
		}
	}
	return page, nil
}

// list is a JSON array that is sent while it is read, so that a long list is never in memory as a
// whole.
type list struct {
	w     http.ResponseWriter
	begun bool
}

// add sends some elements. Views is a slice of anything that encodes as JSON.
func (l *list) add(views any) error {
	text, err := json.Marshal(views)
	if err != nil {
		return err
	}
	elements := bytes.TrimSuffix(bytes.TrimPrefix(text, []byte("[")), []byte("]"))
	if len(elements) == 0 {
		return nil
	}
	separator := ","
	if !l.begun {
		l.begin()
		separator = "["
	}
	_, err = l.w.Write(append([]byte(separator), elements...))
	return err
}

func (l *list) begin() {
	l.begun = true
	l.w.Header().Set("Content-Type", "application/json")
	l.w.Header().Set("X-Content-Type-Options", "nosniff")
	l.w.WriteHeader(http.StatusOK)
}

// respondList responds with 200 and the list that a function adds to, or with the function's error.
// If a part of the list has been sent by then, the connection is aborted, so that nobody takes that
// part for the whole list.
func (a *API) respondList(w http.ResponseWriter, r *http.Request, read func(*list) error) {
	l := &list{w: w}
	err := read(l)
	switch {
	case err != nil && l.begun:
		if r.Context().Err() == nil {
			a.log.WarnContext(r.Context(), "list response aborted", "error", err)
		}
		panic(http.ErrAbortHandler)
	case err != nil:
		a.fail(w, r, err)
		return
	}
	end := "]\n"
	if !l.begun {
		l.begin()
		end = "[]\n"
	}
	_, _ = w.Write([]byte(end)) // an error means that the client is gone
}
