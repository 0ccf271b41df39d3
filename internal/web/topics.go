package web

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net/http"

	"routemaster/internal/bus"
	"routemaster/internal/web/rest"
	"routemaster/internal/wire"
)

var (
	topicInPath = parameter{name: "topic", in: "path", component: "Topic"}
)

// topicOperations are for every client and the operator; a topic is deleted by its publisher or
// the operator.
func (a *API) topicOperations() []operation {
	deleteTopic := operation{
		method: http.MethodDelete, path: "/topics/{topic}", handle: a.deleteTopic, query: unchecked,
		id: "deleteTopic", tag: "topics",
		summary: "Delete a topic and its subscriptions",
		about:   "For the topic's publisher and the operator.",
		params:  []parameter{topicInPath},
		returns: returns(http.StatusNoContent, "Deleted. Queued events stay.", nil),
		fails:   []problem{forbidden, notFound},
	}
	return []operation{
		{
			method: http.MethodGet, path: "/topics", handle: a.getTopics, query: unchecked,
			id: "listTopics", tag: "topics",
			summary: "List all topics",
			params:  []parameter{listLimit, listAfter},
			returns: returns(http.StatusOK, "The topics, by name.", []topicView{}),
		},
		{
			method: http.MethodGet, path: "/topics/{topic}", handle: a.getTopic,
			id: "getTopic", tag: "topics",
			summary: "Show a topic, who is subscribed, and its last event",
			params:  []parameter{topicInPath},
			returns: returns(http.StatusOK, "The topic.", topicDetailView{}),
			fails:   []problem{notFound},
		},
		deleteTopic, deleteTopic.at("/topic/{topic}", "deleteTopicAlias"),
	}
}

type topicView struct {
	Name bus.TopicName `json:"name"`
	// The token for the operator and the publisher itself, its name for others; null before the first
	// publish.
	Publisher *string `json:"publisher"`
	// Events ever received.
	Events int64 `json:"events" api:"minimum=0"`
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
		damaged, err := a.inspector.EachTopics(r.Context(), page, func(topics []bus.Topic) error {
			return l.Add(viewTopics(topics, rest.Caller(r), names))
		})
		a.LogDamaged(r, "skipped topics with damaged data", damaged)
		return err
	})
}

func viewTopics(topics []bus.Topic, who rest.Client, names map[bus.Token]bus.ClientName) []topicView {
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

// topicDetailView is a topic with its subscribers.
type topicDetailView struct {
	topicView
	// As it is delivered. {"unreadable": true} stands for one that cannot be read.
	LastEvent json.RawMessage `json:"last_event" api:"type=object nullable additionalProperties=true"`
	// By name.
	Subscribers []followerView `json:"subscribers"`
}

// followerView is a subscriber in a topic's view. Queued and Oldest are of all its topics.
type followerView struct {
	Name   bus.ClientName `json:"name"`
	Health int            `json:"health_points"`
	// Events of all its topics.
	Queued int64 `json:"queued"`
	// When the oldest of them was received, in ms since the Unix epoch; null if there is none, or it
	// is not known.
	Oldest *int64 `json:"oldest"`
}

// getTopic shows a topic.
func (a *API) getTopic(w http.ResponseWriter, r *http.Request) {
	names, err := a.Auth.ClientNames(r.Context())
	if err != nil {
		a.Fail(w, r, err)
		return
	}
	d, damaged, err := a.inspector.TopicDetail(r.Context(), rest.TopicParam(r))
	a.LogDamaged(r, "skipped subscribers with damaged data", damaged)
	view := topicDetailView{
		topicView: viewTopics([]bus.Topic{d.Topic}, rest.Caller(r), names)[0], Subscribers: make([]followerView, len(d.Subscribers)),
	}
	if d.LastEvent != "" {
		view.LastEvent = wire.ShowEvents([]string{string(d.LastEvent)})[0]
	}
	for i, sub := range d.Subscribers {
		view.Subscribers[i] = followerView{
			Name: bus.PublicName(sub.Token, names[sub.Token]), Health: sub.Health, Queued: sub.Queued, Oldest: rest.Millis(sub.OldestAt),
		}
	}
	a.RespondJSON(w, r, view, err)
}

// shownIdentity returns the form in which a client's token is shown to another client. Tokens are
// credentials: root and the client itself see them, all others see the client's name.
func shownIdentity(to rest.Client, token bus.Token, name bus.ClientName) string {
	if to.Root || to.Token == token {
		return string(token)
	}
	return string(name)
}

// deleteTopic deletes a topic of the caller, or any topic if the caller is root.
func (a *API) deleteTopic(w http.ResponseWriter, r *http.Request) {
	topic := rest.TopicParam(r)
	err := a.stores.DeleteTopic(r.Context(), topic, rest.Caller(r).Token)
	a.RespondChanged(w, r, err, "topic deleted", slog.String("topic", string(topic)))
}
