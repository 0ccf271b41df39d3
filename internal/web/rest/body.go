package rest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"routemaster/internal/bus"
)

// The maximum size of request bodies, in bytes. Everything that is allowed fits in its longest
// encoding.
const (
	// MaxValueBody is for one value without the data of an event.
	MaxValueBody = 64 << 10
	// MaxLongBody is for an array of events, and for a subscription, which names many topics. 1,000
	// events with URLs of 1,024 characters and 64 bytes of data fit.
	MaxLongBody = 4 << 20
)

// SlowBody is how long a body may take to arrive before its client's token is checked again.
const SlowBody = 100 * time.Millisecond

// ReadBody reads a request's body, of at most maxArray bytes if it is an array, and of at most
// maxValue if not. The caller must give it to [Service.Release]. The error is a [bus.Invalid]
// or a [Problem].
func (s *Service) ReadBody(w http.ResponseWriter, r *http.Request, maxValue, maxArray int) ([]byte, error) {
	text, err := s.ReadText(w, r, max(maxValue, maxArray))
	if err != nil {
		return nil, err
	}
	start := bytes.TrimLeft(text, " \t\r\n")
	switch {
	case len(start) == 0:
		err = bus.Invalidf("", "the body is empty; send JSON")
	case len(text) > maxValue && start[0] != '[':
		err = tooLarge(int64(maxValue))
	case len(text) > maxArray:
		err = tooLarge(int64(maxArray))
	}
	if err != nil {
		s.Release(r, text)
		return nil, err
	}
	return text, nil
}

// holder stands for the client of a request where its bodies are counted: no name begins with a
// space, and several tokens of one name are one client.
func holder(r *http.Request) string {
	caller := Caller(r)
	if caller.Root {
		return " root"
	}
	return string(cmp.Or(caller.Name, bus.ClientName(caller.Token)))
}

// Release takes back the body of a request.
func (s *Service) Release(r *http.Request, body []byte) { s.Buffers.Release(holder(r), body) }

// ReadText reads a request's body, of at most maxBytes, which need not be JSON. The caller must
// give it to [Service.Release]. The error is a [Problem], or [ErrRefused].
func (s *Service) ReadText(w http.ResponseWriter, r *http.Request, maxBytes int) ([]byte, error) {
	body := r.Body
	if r.ContentLength < 0 || r.ContentLength > int64(maxBytes) { // else it ends by itself
		body = http.MaxBytesReader(w, body, int64(maxBytes))
	}
	began := time.Now()
	text, err := s.Buffers.Read(holder(r), body)
	if err != nil {
		return nil, unread(w, err)
	}
	if time.Since(began) > SlowBody { // its token may have been removed meanwhile
		if err := s.Auth.Confirm(r.Context(), Caller(r)); err != nil {
			s.Release(r, text)
			return nil, err
		}
	}
	return text, nil
}

// unread returns the problem of a body that was not read to its end.
func unread(w http.ResponseWriter, err error) error {
	if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(over.Limit)
	}
	if errors.Is(err, ErrBodyBudget) {
		// The connection is closed, since reading the rest would take as much as another request.
		w.Header().Set("Connection", "close")
		return &Problem{
			Status: http.StatusServiceUnavailable,
			Detail: "the bodies of other requests take all the memory that they may; nothing of this request was stored: send it again later",
		}
	}
	if errors.Is(err, ErrBodyShare) {
		w.Header().Set("Connection", "close")
		return &Problem{
			Status: http.StatusTooManyRequests,
			Detail: "the bodies of other requests of this client take the share of memory of one client; nothing of this request was stored: send it again later, or fewer at once",
		}
	}
	return &Problem{Status: http.StatusBadRequest, Detail: "the body did not arrive whole; send it again"}
}

func tooLarge(limit int64) error {
	return &Problem{
		Status: http.StatusRequestEntityTooLarge,
		Detail: fmt.Sprintf("the body has more than %d bytes; send less at once", limit),
	}
}
