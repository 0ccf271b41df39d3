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

// MaxDelivery is the most bytes of a delivery that [NewHandler] reads: some 5 times what the largest batch of
// events without much data has.
const MaxDelivery = 64 << 20

// NewHandler returns a subscriber's callback. It answers 204 when receive returns nil, which acknowledges the batch, and
// 500 when it returns an error: then the bus delivers the batch again later. An event may come more than once, so receive
// must be able to take it twice. The error is not told to the bus; log it yourself. Batches come one at a time unless
// the operator wants otherwise.
//
// The uuid is the one of the [Subscription]. Deliveries that do not bring it get 401. An empty one would let everybody
// in, so it panics.
func NewHandler(uuid string, receive func(ctx context.Context, events []Event) error) http.Handler {
	if uuid == "" {
		panic("client: NewHandler needs the subscription's uuid")
	}
	return &handler{sha256.Sum256([]byte(uuid)), receive}
}

type handler struct {
	// uuid is a digest, so that comparing takes as long for uuids of any length.
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
