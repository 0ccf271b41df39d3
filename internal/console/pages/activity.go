package pages

import (
	"net/http"
	"time"

	"routemaster/client"
	"routemaster/internal/activity"
	"routemaster/internal/console/page"
	"routemaster/internal/console/session"
)

// activityPage is what the page of the activity shows.
type activityPage struct {
	Changes []change
	// Sessions are all logins. Their panel fails alone.
	Sessions page.Panel[[]session.Listed]
	Now      time.Time
}

// change is what somebody has changed.
type change struct {
	activity.Change
	At time.Time
}

func loadActivity(v *page.Visit) (any, error) {
	var last struct {
		Changes []activity.Change `json:"changes"`
	}
	_, err := v.Bus.Call(v.Context(), client.Request{
		Operation: "list the activity", Method: http.MethodGet, Path: "/activity",
	}, &last)
	p := activityPage{Changes: make([]change, len(last.Changes)), Sessions: page.Part(v.Sessions.All(v.Context())), Now: time.Now()}
	for i, c := range last.Changes {
		p.Changes[i] = change{c, time.UnixMilli(c.At)}
	}
	return p, err
}
