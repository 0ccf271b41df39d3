package web

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
)

type topicView struct {
	Name bus.TopicName `json:"name"`
	// Publisher is null while nobody has published.
	Publisher *string `json:"publisher"`
	Events    int64   `json:"events"`
}

func (s *Server) getTopics(w http.ResponseWriter, r *http.Request) {
	topics, err := s.store.Topics(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	show, err := s.identities(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	views := make([]topicView, len(topics))
	for i, topic := range topics {
		views[i] = topicView{Name: topic.Name, Events: topic.Events}
		if topic.Publisher != "" {
			publisher := show(topic.Publisher)
			views[i].Publisher = &publisher
		}
	}
	writeJSON(w, http.StatusOK, views)
}

// identities returns how clients are shown to the caller: tokens are credentials, so they are shown to
// root and to the client itself, and the client's name to everybody else.
func (s *Server) identities(r *http.Request) (show func(bus.Token) string, err error) {
	who := caller(r)
	names, err := s.directory.clientNames(r.Context())
	return func(token bus.Token) string {
		if who.root() || who.token == token {
			return string(token)
		}
		if name, ok := names[token]; ok {
			return string(name)
		}
		return string(bus.LegacyClientName(token))
	}, err
}

func (s *Server) postTopic(w http.ResponseWriter, r *http.Request) {
	topic, err := topicParam(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	body, err := readBody(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	event := bus.Event{Topic: topic, Timestamp: s.now().UnixMilli()}
	if err := body.event(&event); err != nil {
		s.fail(w, r, err)
		return
	}
	if err := body.end(); err != nil {
		s.fail(w, r, err)
		return
	}
	packed, err := s.ingest.Pack(&event)
	if err == nil {
		err = s.ingest.Publish(r.Context(), caller(r).token, topic, packed)
	}
	s.answer(w, r, err)
}

// event reads an event. Its time stays as it is if none is given.
func (b *body) event(e *bus.Event) error {
	return b.object(func(member string) (err error) {
		var text string
		switch member {
		case "type":
			text, err = b.string()
			e.Type = bus.EventType(text)
		case "url":
			e.URL, err = b.string()
		case "timestamp":
			e.Timestamp, err = b.integer()
		case "data":
			e.Data, err = b.raw()
		default:
			err = b.unknown("type", "url", "timestamp", "data")
		}
		return err
	})
}

func (s *Server) deleteTopic(w http.ResponseWriter, r *http.Request) {
	topic, err := topicParam(r)
	if err == nil {
		err = s.store.DeleteTopic(r.Context(), topic, caller(r).token)
	}
	s.answer(w, r, err)
}

// topicParam is the topic in a request's path.
func topicParam(r *http.Request) (bus.TopicName, error) {
	name := bus.TopicName(chi.URLParam(r, "topic"))
	return name, name.Validate()
}
