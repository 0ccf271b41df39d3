package console

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"routemaster/client"
	"routemaster/internal/activity"
	"routemaster/internal/web/rest"
)

// inProcess sends requests to a handler in this process, on behalf of a request for a page.
type inProcess struct {
	api http.Handler
	of  *http.Request
	id  string
	// person is the name given at the login.
	person string
}

// RoundTrip implements [http.RoundTripper].
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(rest.Uncounted(activity.InConsole(r.Context(), t.person)))
	in.URL = &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	in.RequestURI, in.Host, in.RemoteAddr = in.URL.RequestURI(), t.of.Host, t.of.RemoteAddr
	in.Header.Set(requestID, t.id)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
	served := make(chan error, 1)
	go func() { served <- serve(t.api, answer, in) }()
	select {
	case err := <-served:
		if err != nil {
			return nil, err
		}
		if answer.tooLong {
			return nil, Refuse(http.StatusInternalServerError, "", errTooLong.Error())
		}
	case <-in.Context().Done(): // the API may wait for Redis on behalf of others, and for longer
		return nil, in.Context().Err()
	}
	return &http.Response{
		Status: http.StatusText(answer.status), StatusCode: answer.status, Header: answer.header, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()),
	}, nil
}

// serve has a handler serve a request. It fails where the handler would break off the connection: a
// part of a page fails, and not the page.
func serve(api http.Handler, answer *recorder, in *http.Request) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("the API broke off: %v", reason)
		}
	}()
	api.ServeHTTP(answer, in)
	return nil
}

// maxAnswer is how many bytes an answer of the API may have that a page is made of, so that a few
// pages do not take the memory of web.
const maxAnswer = 16 << 20

// errTooLong is the error of an answer that has more than maxAnswer bytes.
var errTooLong = fmt.Errorf("the bus has more to show here than the %d MiB that a page reads; ask the HTTP API, or rtm", maxAnswer>>20)

// recorder keeps a response.
type recorder struct {
	header  http.Header
	status  int
	written bool
	body    bytes.Buffer
	// tooLong is set if the body has more than maxAnswer bytes: then it is not kept.
	tooLong bool
}

func (a *recorder) Header() http.Header { return a.header }

func (a *recorder) WriteHeader(status int) {
	if !a.written {
		a.status, a.written = status, true
	}
}

func (a *recorder) Write(text []byte) (int, error) {
	a.written = true
	if a.tooLong = a.tooLong || a.body.Len()+len(text) > maxAnswer; a.tooLong {
		a.body = bytes.Buffer{}
		return 0, errTooLong
	}
	return a.body.Write(text)
}

// requestID is the header with the id of a request, which web chooses.
const requestID = "X-Request-Id"

// bus returns a client of the bus that calls it in this process, with a token or the root key, and
// in the name of a person, which may be empty. It is nil if the secret is. Nothing is sent twice:
// the person can do that better.
func (s *server) bus(w http.ResponseWriter, r *http.Request, secret, person string) *client.Client {
	transport := inProcess{s.api, r, w.Header().Get(requestID), person}
	c, err := client.New("http://bus", secret, client.WithRetries(0), client.WithHTTPClient(&http.Client{Transport: transport}),
		client.WithUserAgent("routemaster-console"))
	if err != nil {
		return nil
	}
	return c
}
