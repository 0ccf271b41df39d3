package web

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"

	"routemaster/internal/bus"
	"routemaster/internal/web/server"
)

// How many bytes a request's body may have. Whatever else is allowed fits: a value's text may be six times as long as the
// value, since JSON can write each character as \u0000.
const (
	// maxValueBody is of one value without its data.
	maxValueBody = 64 << 10
	// maxLongBody is of an array of events, and of a subscription, which names many topics. 1,000 events with URLs of
	// 1,024 characters and 64 bytes of data fit.
	maxLongBody = 4 << 20
	escapedLen  = 6
)

// maxValue is the most bytes of a body that is one value.
func (s *Server) maxValue() int { return maxValueBody + escapedLen*s.config.MaxEventData }

// readBody reads a request's body, of at most maxArray bytes if it is an array, and of at most maxValue
// if not. The caller gives it back with s.buffers.Release. The error is a [bus.Invalid] or a [problem].
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, maxValue, maxArray int) ([]byte, error) {
	text, err := s.buffers.Read(http.MaxBytesReader(w, r.Body, int64(max(maxValue, maxArray))))
	if err != nil {
		return nil, unread(w, err)
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
		s.buffers.Release(text)
		return nil, err
	}
	return text, nil
}

// unread returns the response to a body that was not read to its end.
func unread(w http.ResponseWriter, err error) error {
	if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(over.Limit)
	}
	if errors.Is(err, server.ErrBodyBudget) {
		return refuseBody(w)
	}
	return &problem{Status: http.StatusBadRequest, Detail: "the body did not arrive whole; send it again"}
}

func tooLarge(limit int64) error {
	return &problem{
		Status: http.StatusRequestEntityTooLarge,
		Detail: fmt.Sprintf("the body has more than %d bytes; send less at once", limit),
	}
}
