package web

import (
	"net/http"

	"routemaster/internal/activity"
	"routemaster/internal/web/rest"
)

const (
	defaultActivity = 100
	maxActivity     = 500
)

// activityView is what was changed.
type activityView struct {
	Changes []activity.Change `json:"changes"`
}

// getActivity lists the last changes that root made, or somebody in the console.
func (a *API) getActivity(w http.ResponseWriter, r *http.Request) {
	q := rest.ReadQuery(r)
	limit := int(q.Integer("limit", 1, maxActivity, defaultActivity))
	var view activityView
	err := q.Err()
	if err == nil {
		view.Changes, err = a.Activity.Last(r.Context(), limit)
	}
	a.RespondJSON(w, r, view, err)
}
