package subscriber

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"routemaster/client"
	"routemaster/client/internal/header"
)

// pageLimit is how many elements of a list one request asks for: the most that the bus allows.
const pageLimit = 100

// pages yields all elements of a list of the bus, which it reads page by page. An error is the last
// value that it yields.
func pages[T any](ctx context.Context, s *Subscriber, operation, of string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		query.Del("after")
		for {
			page, next, err := readPage[T](ctx, s, operation, of, query, pageLimit)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, element := range page {
				if !yield(element, nil) {
					return
				}
			}
			if next == "" || next == query.Get("after") {
				return
			}
			query.Set("after", next)
		}
	}
}

// readPage returns a page of a list of the bus, with at most limit elements, and the value of the
// next query's after: empty after the last page.
func readPage[T any](ctx context.Context, s *Subscriber, operation, of string, query url.Values, limit int) (page []T, next string, err error) {
	query.Set("limit", strconv.Itoa(limit))
	got, err := s.client.Call(ctx, client.Request{
		Operation: operation, Method: http.MethodGet, Path: s.path + of + "?" + query.Encode(),
	}, &page)
	if err != nil {
		return nil, "", err
	}
	return page, header.Next(got.Header, "after"), nil
}

// eventsFrom is the path of something that is shown with its events from an index on.
func eventsFrom(path string, from int) string {
	if from > 0 {
		path += "?from=" + strconv.Itoa(from)
	}
	return path
}
