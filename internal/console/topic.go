package console

import (
	"net/http"
	"slices"

	"routemaster/client/history"
	"routemaster/client/topics"
	"routemaster/internal/console/view"
	"routemaster/internal/format"
	"routemaster/internal/overview"
)

// topicPath is the page of a topic.
const topicPath = "topics/{topic}"

// listedSubscribers is how many subscribers the page of a topic has.
const listedSubscribers = 50

// topicPage is the data of a topic's page.
type topicPage struct {
	overview.Topic
	Charts []view.Chart
	// Listed are the first subscribers, those in trouble first.
	Listed view.Table[view.SubscriberRow]
	// History is nil if the topic keeps none.
	History Panel[*history.Info]
	// LastEvent is the last event as it is delivered, as text, so that no number loses digits; empty
	// if there is none.
	LastEvent Panel[string]
	// MayDelete reports whether the visitor may delete the topic.
	MayDelete bool
}

// findTopic is a topic of the figures, or one that they do not have yet, as the API has it.
func findTopic(v *Visit, name string) (overview.Topic, error) {
	if i := slices.IndexFunc(v.Figures.Topics, func(t overview.Topic) bool { return t.Name == name }); i >= 0 {
		return v.Figures.Topics[i], nil
	}
	made, err := topics.Get(v.Context(), v.Bus, name)
	if HasStatus(err, http.StatusNotFound) {
		err = Refuse(http.StatusNotFound, "", "There is no topic "+name+".")
	}
	if err != nil {
		return overview.Topic{}, err
	}
	publisher, err := v.NameOf(made.Publisher)
	t := overview.Topic{Name: name, Publisher: publisher, State: overview.OK, Events: made.Events, Subscribers: len(made.Subscribers)}
	switch {
	case publisher == "":
		t.State = overview.Unclaimed
	case len(made.Subscribers) == 0:
		t.State = overview.Unheard
	}
	return t, err
}

func loadTopic(v *Visit) (any, error) {
	t, err := findTopic(v, v.Path("topic"))
	if err != nil {
		return nil, err
	}
	subscribers := view.SubscribersOf(v.Figures, t.Name)
	p := topicPage{
		Topic: t, MayDelete: v.Root || t.Publisher == v.Client,
		Charts: []view.Chart{view.NewChart("rates", "Events in", overview.Subject{Topic: t.Name}, v.Tracks, view.In)},
		Listed: view.SubscriberTable(v.Figures, v.Tracks, subscribers[:min(len(subscribers), listedSubscribers)]),
	}
	info, err := history.Of(v.Bus, t.Name).Get(v.Context())
	switch {
	case HasStatus(err, http.StatusNotFound):
	case err != nil:
		p.History.Problem = Words(err)
	default:
		p.History.Value = &info
	}
	p.LastEvent = Part(lastEvent(v, t.Name))
	return p, nil
}

// lastEvent returns the last event of a topic, as text; empty if there is none.
func lastEvent(v *Visit, topic string) (string, error) {
	t, err := topics.Get(v.Context(), v.Bus, topic)
	if err != nil && !HasStatus(err, http.StatusNotFound) {
		return "", err
	}
	if err != nil || len(t.LastEvent) == 0 || string(t.LastEvent) == "null" {
		return "", nil
	}
	return view.Indent(t.LastEvent), nil
}

// deleteTopic asks before a topic is deleted.
var deleteTopic = Question{
	Path: topicPath + "/delete", Calls: "DELETE /topics/{topic}", For: Members, Back: topicPath,
	Ask: func(v *Visit) (c view.Confirm, err error) {
		t, err := findTopic(v, v.Path("topic"))
		if err != nil {
			return c, err
		}
		c = view.Confirm{
			Title: "Delete the topic " + t.Name, Button: "Delete the topic " + t.Name, Name: t.Name,
			Effects: []string{"What it had so far, " + format.Plural(t.Events, "event") + ", is no longer counted, and its history is removed. What is queued is still delivered."},
			Command: view.Command("DELETE", view.Path("topics", t.Name), nil),
		}
		if losing := view.SubscribersOf(v.Figures, t.Name); len(losing) > 0 {
			names := make([]string, len(losing))
			for i, s := range losing {
				names[i] = s.Name
			}
			slices.Sort(names)
			c.Effects = append(c.Effects, "It loses "+format.Plural(int64(len(names)), "subscriber")+": "+view.Some(names, 10)+".")
		}
		return c, nil
	},
	Do: func(v *Visit) (Answer, error) {
		topic := v.Path("topic")
		return SeeOther("Deleted the topic "+topic+".", "topics"), v.Bus.DeleteTopic(v.Context(), topic)
	},
}
