package client

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// MaxDelivery is how many bytes of a delivery [NewHandler] reads at most: some 5 times the size of
// the largest batch of events with little data.
const MaxDelivery = 64 << 20

// NewHandler returns a subscriber's callback. When receive returns nil, the handler responds 204,
// which acknowledges the batch. When receive returns an error, it responds 500 and the bus delivers
// the batch again later. The error is not sent to the bus; log it yourself. An event may arrive
// more than once, so receive must be idempotent. Batches arrive one at a time unless the operator
// allows more.
//
// The uuid is the one of the [Subscription]. Deliveries without it get 401. NewHandler panics if
// the uuid is empty, because anybody could then deliver events.
func NewHandler(uuid string, receive func(ctx context.Context, events []Event) error) http.Handler {
	if uuid == "" {
		panic("client: NewHandler needs the subscription's uuid")
	}
	return &handler{sha256.Sum256([]byte(uuid)), receive}
}

type handler struct {
	// uuid is a digest, so that a comparison takes equally long for uuids of any length.
	uuid    [sha256.Size]byte
	receive func(context.Context, []Event) error
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "deliveries come by POST", http.StatusMethodNotAllowed)
		return
	}
	user, _, _ := r.BasicAuth()
	digest := sha256.Sum256([]byte(user))
	if subtle.ConstantTimeCompare(digest[:], h.uuid[:]) != 1 {
		w.Header().Set("WWW-Authenticate", `Basic realm="deliveries"`)
		http.Error(w, "wrong uuid", http.StatusUnauthorized)
		return
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxDelivery))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		http.Error(w, "the delivery is too large", http.StatusRequestEntityTooLarge)
		return
	}
	var events []Event
	if err == nil {
		err = json.Unmarshal(text, &events)
	}
	if err != nil || events == nil {
		http.Error(w, "the body must be a JSON array of events", http.StatusBadRequest)
		return
	}
	if err := h.receive(r.Context(), events); err != nil {
		http.Error(w, "not received; deliver it again", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
