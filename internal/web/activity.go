package web

import (
	"net/http"

	"routemaster/internal/activity"
	"routemaster/internal/web/rest"
)

// activityOperations are for the operator.
func (a *API) activityOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/activity", handle: a.getActivity, who: rootOnly,
			id: "listActivity", tag: "tokens",
			summary: "List the last changes by the operator or in the console",
			about:   "For the operator. The last 500 are kept; the logs have all.",
			params: []parameter{
				activityLimit,
			},
			returns: returns(http.StatusOK, "Changes, the latest first.", activityView{}),
		},
	}
}

// activityLimit is how many changes are listed.
var activityLimit = parameter{name: "limit", kind: "integer", min: 1, max: 500, fallback: 100, words: "How many changes at most."}

// activityView is the response of GET /activity.
type activityView struct {
	Changes []activity.Change `json:"changes"`
}

// getActivity lists the last changes made by root or in the console.
func (a *API) getActivity(w http.ResponseWriter, r *http.Request) {
	q := rest.ReadQuery(r)
	limit := int(activityLimit.integer(q))
	var view activityView
	err := q.Err()
	if err == nil {
		view.Changes, err = a.Activity.Last(r.Context(), limit)
	}
	a.RespondJSON(w, r, view, err)
}
