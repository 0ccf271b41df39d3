package web

import (
	_ "embed"
	"net/http"
)

// openapi is the documentation of the API in OpenAPI 3.1.
//
//go:embed openapi.json
var openapi []byte

// getOpenAPI returns the documentation of the API.
func getOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openapi)
}
