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
	views, err := s.viewTopics(r)
	s.answerJSON(w, r, views, err)
}

func (s *Server) viewTopics(r *http.Request) ([]topicView, error) {
	topics, damaged, err := s.store.Topics(r.Context())
	if err != nil {
		return nil, err
	}
	s.logDamaged(r, "left out topics whose data is damaged", damaged)
	names, err := s.directory.clientNames(r.Context())
	if err != nil {
		return nil, err
	}
	who := caller(r)
	views := make([]topicView, len(topics))
	for i, topic := range topics {
		views[i] = topicView{Name: topic.Name, Events: topic.Events}
		if topic.Publisher != "" {
			publisher := who.identityOf(topic.Publisher, bus.PublicName(topic.Publisher, names[topic.Publisher]))
			views[i].Publisher = &publisher
		}
	}
	return views, nil
}

// identityOf is how a client is shown to c: tokens are credentials, so they are shown to root and to the client
// itself, and the client's name to everybody else.
func (c client) identityOf(token bus.Token, name bus.ClientName) string {
	if c.root || c.token == token {
		return string(token)
	}
	return string(name)
}

func (s *Server) deleteTopic(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, s.store.DeleteTopic(r.Context(), topicParam(r), caller(r).token))
}

// topicParam is the topic in a request's path. It may not be a topic's name: the Ruby original let others in, and they
// can be deleted.
func topicParam(r *http.Request) bus.TopicName { return bus.TopicName(chi.URLParam(r, "topic")) }
