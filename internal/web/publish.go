package web

import (
	"net/http"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/web/rest"
	"routemaster/internal/wire"
)

var (
	keyReused = problem{
		http.StatusConflict,
		"Another request was sent with this idempotency key, or there would be too many topics.",
		"KeyReused",
	}
)

// publishOperations are for publishers.
func (a *API) publishOperations() []operation {
	return []operation{
		{
			method: http.MethodPost, path: "/topics/{topic}", handle: a.postTopic, who: clientsOnly, query: unchecked,
			id: "publish", tag: "topics",
			summary: "Publish an event, or up to 1,000 in order, all or nothing",
			about:   "The first client that publishes to a topic owns it.",
			params: []parameter{
				{name: "topic", in: "path", schema: "TopicName"},
				{
					name: "Idempotency-Key", in: "header", key: true,
					words: "A repetition of the same request with the same key stores nothing, and is answered alike, as " +
						"long as the bus remembers the key: an hour after its last use, unless the operator or the " +
						"request says otherwise. The oldest keys go first when a client has too many, or when the bus's " +
						"memory is about to be full.",
				},
				{
					name: "Idempotency-Expires-In", in: "header", kind: "integer", min: int64(bus.MinIdempotencyTTL / time.Second), max: int64(bus.MaxIdempotencyTTL / time.Second),
					words: "How long the Idempotency-Key is to be remembered at least, in seconds. Only beside one.",
				},
			},
			body: &body{
				of:      oneOf{schemaRef("Event"), listOf{of: schemaRef("Event"), min: 1, max: maxEvents}},
				example: `{"type":"update","url":"https://shop.example/widgets/1","timestamp":1795302000000,"data":{"price":5}}`,
			},
			returns: returns(http.StatusOK, "Stored in a batch of every subscriber of the topic. The body is empty.", nil),
			fails:   []problem{keyReused},
		},
	}
}

// maxEvents is the maximum number of events of one publish.
const maxEvents = 1000

// escapedLen is how long the encoding of one byte can be: JSON can write a character as \u0000.
const escapedLen = 6

// topicsPath is the prefix of topics' paths.
const topicsPath = "/topics/"

// maxValue is the maximum size of a body that is one value, in bytes.
func (a *API) maxValue() int { return rest.MaxValueBody + escapedLen*a.config.MaxEventData }

// postTopic publishes an event, or an array of events: all of them, in order, or none.
func (a *API) postTopic(w http.ResponseWriter, r *http.Request) {
	topic := bus.TopicName(strings.TrimPrefix(r.URL.Path, topicsPath))
	if err := topic.Validate(); err != nil {
		a.Fail(w, r, err)
		return
	}
	text, err := a.ReadBody(w, r, a.maxValue(), rest.MaxLongBody)
	if err != nil {
		a.Fail(w, r, err)
		return
	}
	defer a.Release(r, text)
	key, err := rest.ReadIdempotencyKey(r, text, a.config.IdempotencyTTL)
	if err != nil {
		a.Fail(w, r, err)
		return
	}
	events, err := a.parseEvents(text, topic)
	if err == nil {
		err = a.ingest.Publish(r.Context(), rest.Caller(r).Token, topic, events, key)
	}
	if err != nil {
		a.Fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusOK) // not 204: an existing client publishes again unless it gets 200
}

// parseEvents reads, validates and packs the events of a body.
func (a *API) parseEvents(text []byte, topic bus.TopicName) ([]wire.PackedEvent, error) {
	return wire.ParseEvents(text, topic, a.Now().UnixMilli(), wire.Limits{Events: maxEvents, Data: a.config.MaxEventData})
}
