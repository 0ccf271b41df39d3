package console

import (
	"net/http"

	"routemaster/client"
	"routemaster/internal/console/view"
)

// apiPage is what the page about the API shows.
type apiPage struct {
	API
	Filter, Sort string
}

func loadAPI(v *Visit) (any, error) {
	var text []byte
	_, err := v.Bus.Call(v.Context(), client.Request{Operation: "read the description of the API", Method: http.MethodGet, Path: "/openapi.json"}, &text)
	if err != nil {
		return nil, err
	}
	described, err := ParseAPI(text)
	filter := view.ParseQuery(v.Request.URL.Query()).Filter
	return apiPage{API: described.Filter(filter), Filter: filter}, err
}
