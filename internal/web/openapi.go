package web

import (
	_ "embed"
	"net/http"
)

//go:generate go test . -run Fresh$ -update

//go:embed openapi.json
var openapi []byte

// OpenAPI returns the documentation of the API in OpenAPI 3.1. It must not be changed.
func OpenAPI() []byte { return openapi }

// getOpenAPI returns the documentation of the API.
func getOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openapi)
}
