package web

import (
	_ "embed"
	"net/http"
)

// description is the API in OpenAPI 3.1. It is kept by hand beside the routes; the tests hold every route and every
// answer they see to it.
//
//go:embed openapi.json
var description []byte

func getOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(description)
}
