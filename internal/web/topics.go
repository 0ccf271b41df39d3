package web

import (
	"cmp"
	"log/slog"
	"net/http"

	"routemaster/internal/bus"
	"routemaster/internal/web/auth"
	"routemaster/internal/web/rest"
)

type topicView struct {
	Name bus.TopicName `json:"name"`
	// Publisher is null until somebody has published to the topic.
	Publisher *string `json:"publisher"`
	Events    int64   `json:"events"`
}

// getTopics lists the topics.
func (a *API) getTopics(w http.ResponseWriter, r *http.Request) {
	a.RespondList(w, r, func(l *rest.List) error {
		page, err := rest.ReadPage(r)
		if err != nil {
			return err
		}
		names, err := a.Auth.ClientNames(r.Context())
		if err != nil {
			return err
		}
		damaged, err := a.stats.EachTopics(r.Context(), page, func(topics []bus.Topic) error {
			return l.Add(viewTopics(topics, rest.Caller(r), names))
		})
		a.LogDamaged(r, "skipped topics with damaged data", damaged)
		return err
	})
}

func viewTopics(topics []bus.Topic, who auth.Client, names map[bus.Token]bus.ClientName) []topicView {
	views := make([]topicView, len(topics))
	for i, topic := range topics {
		views[i] = topicView{Name: topic.Name, Events: topic.Events}
		if topic.Publisher != "" {
			name := cmp.Or(names[topic.Publisher], topic.Owner) // the token may be gone
			publisher := shownIdentity(who, topic.Publisher, bus.PublicName(topic.Publisher, name))
			views[i].Publisher = &publisher
		}
	}
	return views
}

// shownIdentity is how a client's token is shown to another client. Tokens are credentials: they
// are shown to root and to the client itself, and the client's name to everybody else.
func shownIdentity(to auth.Client, token bus.Token, name bus.ClientName) string {
	if to.Root || to.Token == token {
		return string(token)
	}
	return string(name)
}

// deleteTopic deletes a topic of the caller, or any topic if the caller is root.
func (a *API) deleteTopic(w http.ResponseWriter, r *http.Request) {
	topic := rest.TopicParam(r)
	err := a.store.DeleteTopic(r.Context(), topic, rest.Caller(r).Token)
	a.RespondChanged(w, r, err, "topic deleted", slog.String("topic", string(topic)))
}
