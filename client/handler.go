package client

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"routemaster/client/receipt"
)

// MaxDelivery is how many bytes of a delivery [NewHandler] reads at most: some 5 times the size of
// the largest batch of events with little data.
const MaxDelivery = 64 << 20

// NewHandler returns a subscriber's callback. When receive returns nil, the handler responds 204,
// which acknowledges the batch. When receive returns an error, or panics, it responds 500 and the
// bus delivers the batch again later. The error is not sent to the bus; log it yourself. With an
// error of package receipt the bus redelivers only some of the events, if the subscriber has the
// option partial. An event may arrive more than once, so receive must be idempotent. Batches arrive
// one at a time unless the operator allows more.
//
// The uuid is the one of the [Subscription]. The handler responds 401 to deliveries without it, and
// to deliveries that a [Verifier] refuses: see [WithVerifier]. With a verifier the uuid may be
// empty, and is not checked then. With neither, NewHandler panics, because anyone could deliver
// events.
func NewHandler(uuid string, receive func(ctx context.Context, events []Event) error, options ...HandlerOption) http.Handler {
	h := &handler{receive: receive}
	if uuid != "" {
		digest := sha256.Sum256([]byte(uuid))
		h.uuid = digest[:]
	}
	for _, option := range options {
		option(h)
	}
	if uuid == "" && h.verifier == nil {
		panic("client: NewHandler needs the subscription's uuid, or a verifier")
	}
	return h
}

// HandlerOption changes how the handler of [NewHandler] works.
type HandlerOption func(*handler)

// WithVerifier refuses deliveries that the verifier refuses.
func WithVerifier(v *Verifier) HandlerOption {
	if v == nil {
		panic("client: WithVerifier needs a verifier")
	}
	return func(into *handler) { into.verifier = v }
}

type handler struct {
	// uuid is a digest, so that a comparison takes equally long for uuids of any length. It is nil if
	// there is none.
	uuid     []byte
	verifier *Verifier
	receive  func(context.Context, []Event) error
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "deliveries come by POST", http.StatusMethodNotAllowed)
		return
	}
	if !h.knows(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="deliveries"`)
		http.Error(w, "wrong uuid", http.StatusUnauthorized)
		return
	}
	events, status, problem := h.read(w, r)
	if problem != "" {
		http.Error(w, problem, status)
		return
	}
	err := errors.New("receive has panicked")
	defer func() { respond(w, err) }()
	err = h.receive(r.Context(), events)
}

// respond writes the response to a delivery that ended with err.
func respond(w http.ResponseWriter, err error) {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	} else if text, ok := receipt.Of(err); ok {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusMultiStatus)
		_, _ = w.Write(text) // an error means that the bus is gone, and delivers again
	} else {
		http.Error(w, "not received; deliver it again", http.StatusInternalServerError)
		_ = http.NewResponseController(w).Flush() // after a panic the server closes the connection
	}
}

// knows reports whether a delivery carries the uuid.
func (h *handler) knows(r *http.Request) bool {
	user, _, _ := r.BasicAuth()
	digest := sha256.Sum256([]byte(user))
	return h.uuid == nil || subtle.ConstantTimeCompare(digest[:], h.uuid) == 1
}

// read reads and checks the body of a delivery. If there is a problem, status is the HTTP status to
// respond with.
func (h *handler) read(w http.ResponseWriter, r *http.Request) (events []Event, status int, problem string) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxDelivery))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, http.StatusRequestEntityTooLarge, "the delivery is too large"
	}
	if err == nil && h.verifier != nil {
		if err := h.verifier.Verify(r.Header, text, time.Now()); err != nil {
			return nil, http.StatusUnauthorized, err.Error()
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &events)
	}
	if err != nil || events == nil {
		return nil, http.StatusBadRequest, "the body must be a JSON array of events"
	}
	return events, 0, ""
}
