package console

import (
	"net/http"

	"routemaster/client"
)

// getSeries answers with a series of the API, for the visitor's charts: scripts have no credentials
// of the API.
func (s *server) getSeries(w http.ResponseWriter, r *http.Request) {
	v, err := s.visit(w, r)
	if err == nil && !v.LoggedIn() {
		w.Header().Set("WWW-Authenticate", "Cookie")
		http.Error(w, "log in first", http.StatusUnauthorized)
		return
	}
	var series []byte
	if err == nil {
		ctx, cancel := loadContext(v)
		defer cancel()
		_, err = v.Bus.Call(ctx, client.Request{
			Operation: "read a series", Method: http.MethodGet, Path: "/overview/series?" + r.URL.RawQuery,
		}, &series)
	}
	if err != nil {
		problem := s.problemOf(err, shownPage{RequestID: w.Header().Get(requestID)})
		http.Error(w, problem.Detail, problem.Status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(series)
}
