package vendors

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
)

// The names of the services. [Print] only logs.
const (
	Print       = "print"
	Sentry      = "sentry"
	Honeybadger = "honeybadger"
	NewRelic    = "new_relic"
)

// ExceptionServices lists the names of all services.
var ExceptionServices = []string{Print, Sentry, Honeybadger, NewRelic}

// ExceptionService says where exceptions are reported.
type ExceptionService struct {
	// Name is one of [ExceptionServices]; empty stands for [Print].
	Name string
	// URL has the service's key as user name, and its host. It is secret.
	URL string
}

// urlForms describes the URL of each service.
var urlForms = map[string]string{
	Sentry:      "the project's DSN, like https://PUBLIC_KEY@o1.ingest.sentry.io/2",
	Honeybadger: "like https://API_KEY@api.honeybadger.io",
	NewRelic:    "like https://LICENSE_KEY@collector.newrelic.com, with a license key of 40 characters",
}

// Check checks the URL. Its error describes a valid URL, and does not quote this one.
func (s ExceptionService) Check() error {
	if s.Name == "" || s.Name == Print {
		return nil
	}
	if _, _, err := s.parse(); err != nil {
		return errors.New(urlForms[s.Name])
	}
	return nil
}

// licenseKey matches New Relic's license keys. Its agent refuses others.
var licenseKey = regexp.MustCompile(`\A[A-Za-z0-9]{40}\z`)

// parse returns the service's key, and the URL without the key.
func (s ExceptionService) parse() (key string, at *url.URL, err error) {
	at, err = url.Parse(s.URL)
	if err != nil {
		return "", nil, err
	}
	key = at.User.Username()
	at.User = nil
	plain := at.RawQuery == "" && at.Fragment == "" && (at.Path == "" || at.Path == "/")
	valid := key != "" && at.Hostname() != "" && (at.Scheme == "https" || at.Scheme == "http")
	switch s.Name {
	case Sentry:
		err = checkDSN(s.URL)
	case Honeybadger:
		valid = valid && plain
	case NewRelic:
		valid = valid && plain && at.Scheme == "https" && licenseKey.MatchString(key)
	}
	if err == nil && !valid {
		err = errors.New("not a service's URL")
	}
	return key, at, err
}

// sender sends reports with the service's own client. It must not be used concurrently.
type sender interface {
	// send sends one report, within sendTimeout.
	send(e *exception) error
	// close ends the client, within sendTimeout.
	close()
}

// newSender makes the sender of a service, nil for [Print].
func newSender(s ExceptionService, program, version string, transport http.RoundTripper) (sender, error) {
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
	return nil, fmt.Errorf("unknown exception service %q", s.Name)
}
