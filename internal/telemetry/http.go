package telemetry

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// noRoute is the route of requests that match none: their paths may have secrets.
const noRoute = "(none)"

// httpInstruments are the metrics of the requests to web, by route and then by method.
type httpInstruments struct {
	routes children[*children[*routeMetrics]]
	// refused counts answers of 401 to credentials, throttled answers of 429.
	refused, throttled atomic.Int64
}

// routeMetrics are the metrics of one method of a route: its answers by the first digit of their
// status, the class, and how long they took.
type routeMetrics struct {
	answers  [6]prometheus.Counter
	duration prometheus.Observer
}

// statusClasses are the values of the label status. Without an answer, because the client has left,
// it is the first.
var statusClasses = [6]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

func (m *httpInstruments) register(register promauto.Factory) {
	requests := register.NewCounterVec(counter("http_requests_total",
		"Requests to web, by the pattern of their route, method and class of status; none if the client left before."),
		[]string{"route", "method", "status"})
	durations := register.NewHistogramVec(histogram("http_request_duration_seconds",
		"Time from the head of a request to the end of its answer, by the pattern of its route and method.",
		prometheus.ExponentialBuckets(0.001, 4, 8)), []string{"route", "method"})
	m.routes.make = func(route string) *children[*routeMetrics] {
		return &children[*routeMetrics]{make: func(method string) *routeMetrics {
			of := &routeMetrics{duration: durations.WithLabelValues(route, method)}
			for class, name := range statusClasses {
				of.answers[class] = requests.WithLabelValues(route, method, name)
			}
			return of
		}}
	}
}

// HTTPRequest is a request that web has answered.
type HTTPRequest struct {
	// Method is the request's, and Route the pattern of its route, empty if there is none.
	Method, Route string
	// Status is 0 if there was no answer.
	Status int
	// Credentials is whether the request had some.
	Credentials bool
	Duration    time.Duration
}

// Requested notes that web has answered a request.
func (r *Recorder) Requested(q HTTPRequest) {
	if r == nil {
		return
	}
	if q.Route == "" {
		q.Route = noRoute
	}
	m := &r.metrics.http
	of := m.routes.of(q.Route).of(knownMethod(q.Method))
	of.answers[min(max(q.Status/100, 0), len(statusClasses)-1)].Inc()
	of.duration.Observe(q.Duration.Seconds())
	switch {
	case q.Status == http.StatusUnauthorized && q.Credentials:
		m.refused.Add(1)
	case q.Status == http.StatusTooManyRequests:
		m.throttled.Add(1)
	}
}

// Refusals returns how many requests this process has answered with 401 although they had
// credentials, and with 429.
func (r *Recorder) Refusals() (refused, throttled int64) {
	return r.metrics.http.refused.Load(), r.metrics.http.throttled.Load()
}

// knownMethod returns a method of HTTP, or other for what a client has made up.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return other
}
