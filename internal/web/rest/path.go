package rest

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
)

// TopicParam returns the topic in a request's path. The name may be invalid: the Ruby original
// accepted others, and these can still be deleted.
func TopicParam(r *http.Request) bus.TopicName { return bus.TopicName(chi.URLParam(r, "topic")) }
