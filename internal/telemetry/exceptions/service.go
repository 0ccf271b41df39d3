// Package exceptions reports what must not happen to the log and to an exception service. Nobody
// waits for the service.
package exceptions

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
)

// The services that exceptions can be reported to.
const (
	Print       = "print"
	Sentry      = "sentry"
	Honeybadger = "honeybadger"
	NewRelic    = "new_relic"
)

// Services lists all services.
var Services = []string{Print, Sentry, Honeybadger, NewRelic}

// Service says where exceptions are reported.
type Service struct {
	// Name is one of [Services]; empty is as good as [Print].
	Name string
	// URL holds the key as its user name, and the host. It is secret.
	URL string
}

// serviceURLs are what a service's URL looks like.
var serviceURLs = map[string]string{
	Sentry:      "the project's DSN, like https://PUBLIC_KEY@o1.ingest.sentry.io/2",
	Honeybadger: "like https://API_KEY@api.honeybadger.io",
	NewRelic:    "like https://LICENSE_KEY@collector.newrelic.com, with a license key of 40 characters",
}

// Check returns an error that says what the URL must be, but not what it is, unless it is right.
func (s Service) Check() error {
	if s.Name == "" || s.Name == Print {
		return nil
	}
	if _, _, err := s.parse(); err != nil {
		return errors.New(serviceURLs[s.Name])
	}
	return nil
}

// licenses are New Relic's license keys. Its agent takes no other.
var licenses = regexp.MustCompile(`\A[A-Za-z0-9]{40}\z`)

// parse returns the service's key and the URL without it.
func (s Service) parse() (key string, at *url.URL, err error) {
	at, err = url.Parse(s.URL)
	if err != nil {
		return "", nil, err
	}
	key = at.User.Username()
	at.User = nil
	plain := at.RawQuery == "" && at.Fragment == "" && (at.Path == "" || at.Path == "/")
	right := key != "" && at.Hostname() != "" && (at.Scheme == "https" || at.Scheme == "http")
	switch s.Name {
	case Sentry:
		err = checkDSN(s.URL)
	case Honeybadger:
		right = right && plain
	case NewRelic:
		right = right && plain && at.Scheme == "https" && licenses.MatchString(key)
	}
	if err == nil && !right {
		err = errors.New("not a service's URL")
	}
	return key, at, err
}

// sender reports to a service by its own client. It is used by one goroutine.
type sender interface {
	// send may take sendWithin.
	send(e *exception) error
	// close may take sendWithin.
	close()
}

// newSender makes the sender of a service, nil if there is none.
func newSender(s Service, program, version string, transport http.RoundTripper) (sender, error) {
	if s.Name == "" || s.Name == Print {
		return nil, nil
	}
	key, at, err := s.parse()
	if err != nil {
		return nil, s.Check()
	}
	switch s.Name {
	case Sentry:
		return newSentry(s.URL, version, transport)
	case Honeybadger:
		return newHoneybadger(key, at), nil
	case NewRelic:
		return newNewRelic(key, at, program, transport)
	}
	return nil, fmt.Errorf("there is no exception service %q", s.Name)
}
