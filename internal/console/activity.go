package console

import (
	"net/http"
	"time"

	"routemaster/client"
	"routemaster/internal/activity"
)

// activityPage is the data of the activity page.
type activityPage struct {
	Changes Panel[[]change]
	// Sessions are all logins.
	Sessions Panel[[]Listed]
	Now      time.Time
}

// change is a recorded change with its time.
type change struct {
	activity.Change
	At time.Time
}

func loadActivity(v *Visit) (any, error) {
	var last struct {
		Changes []activity.Change `json:"changes"`
	}
	_, err := v.Bus.Call(v.Context(), client.Request{
		Operation: "list the activity", Method: http.MethodGet, Path: "/activity",
	}, &last)
	changes := make([]change, len(last.Changes))
	for i, c := range last.Changes {
		changes[i] = change{c, time.UnixMilli(c.At)}
	}
	return activityPage{Part(changes, err), Part(v.Sessions.All(v.Context())), v.Now()}, nil
}
