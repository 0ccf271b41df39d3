package web

import (
	"fmt"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
)

// definitionView is a machine as its definition has it, with the values that were left out.
type definitionView struct {
	States   []stateView   `json:"states"`
	Feeds    []feedView    `json:"feeds,omitempty"`
	Webhooks []webhookView `json:"webhooks,omitempty"`
	Publish  *publishView  `json:"publish,omitempty"`
	Clients  bus.Clients   `json:"clients,omitempty"`
}

// stateView is a gate or an action.
type stateView struct {
	Gate          machines.StateName `json:"gate,omitempty"`
	ExitCondition string             `json:"exit_condition,omitempty"`
	Timezone      string             `json:"timezone,omitempty"`
	Triggers      []map[string]any   `json:"triggers,omitempty"`

	Action   machines.StateName `json:"action,omitempty"`
	Webhook  string             `json:"webhook,omitempty"`
	Attempts int                `json:"attempts,omitempty"`
	Backoff  string             `json:"backoff,omitempty"`
	Timeout  string             `json:"timeout,omitempty"`

	// Next is the name of a state, or an object.
	Next any `json:"next,omitempty"`
}

type feedView struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Timeout string `json:"timeout"`
}

// webhookView is a rule for the headers of webhooks. They are credentials: only root sees them.
type webhookView struct {
	Match   string            `json:"match"`
	Headers map[string]string `json:"headers,omitempty"`
}

type publishView struct {
	Topic     string `json:"topic"`
	URL       string `json:"url"`
	Publisher string `json:"publisher"`
}

// viewDefinition returns how a machine is shown to root, or to clients.
func viewDefinition(m *machines.Machine, root bool) (view definitionView) {
	view.Clients = m.Clients
	for _, state := range m.States {
		view.States = append(view.States, viewState(state))
	}
	for _, feed := range m.Feeds {
		view.Feeds = append(view.Feeds, feedView{feed.Name, feed.URL, definitionDuration(feed.Timeout)})
	}
	for _, rule := range m.Webhooks {
		shown := webhookView{Match: rule.Match.String()}
		if root {
			shown.Headers = rule.Headers
		}
		view.Webhooks = append(view.Webhooks, shown)
	}
	if p := m.Publish; p != nil {
		view.Publish = &publishView{string(p.Topic), p.URL, string(p.Publisher)}
	}
	return view
}

func viewState(s *machines.State) stateView {
	view := stateView{Next: viewNext(s.Next)}
	if a := s.Action; a != nil {
		view.Action, view.Webhook, view.Attempts = s.Name, a.Webhook, a.Attempts
		view.Backoff, view.Timeout = definitionDuration(a.Backoff), definitionDuration(a.Timeout)
		return view
	}
	view.Gate, view.ExitCondition, view.Timezone = s.Name, s.Gate.Condition.String(), s.Gate.Zone.String()
	for _, t := range s.Gate.Triggers {
		view.Triggers = append(view.Triggers, viewTrigger(t))
	}
	return view
}

func viewNext(n *machines.Next) any {
	switch {
	case n == nil:
		return nil
	case n.Path == nil:
		return n.Default
	}
	destinations := []map[string]any{}
	for _, d := range n.Destinations {
		destinations = append(destinations, map[string]any{"state": d.State, "value": d.Value})
	}
	return map[string]any{"type": "context", "path": n.Path.String(), "destinations": destinations, "default": n.Default}
}

func viewTrigger(t machines.Trigger) map[string]any {
	switch {
	case t.TimeOfDay != nil:
		view := map[string]any{"time": fmt.Sprintf("%02dh%02dm", int(*t.TimeOfDay)/3600, int(*t.TimeOfDay)/60%60)}
		if zone := t.Zone.String(); zone != "" {
			view["timezone"] = zone
		}
		return view
	case t.Interval > 0:
		return map[string]any{"interval": definitionDuration(t.Interval)}
	case t.Entry:
		return map[string]any{"event": "entry"}
	case t.Topic != nil:
		return viewTopicTrigger(t.Topic)
	}
	return map[string]any{"metadata": strings.Join(t.Metadata, ".")}
}

func viewTopicTrigger(t *machines.TopicTrigger) map[string]any {
	label := map[string]any{"url": t.LabelURL}
	if len(t.LabelPath) > 0 {
		label = map[string]any{"data": strings.Join(t.LabelPath, ".")}
	}
	view := map[string]any{"topic": t.Topic, "label": label, "create": t.Create}
	if len(t.Metadata) > 0 {
		view["metadata"] = strings.Join(t.Metadata, ".")
	}
	return view
}

// definitionDuration is a time as definitions have it: 1d2h3m4s, and 500ms.
func definitionDuration(d time.Duration) string {
	text := ""
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}} {
		if n := d / unit.size; n > 0 {
			text += fmt.Sprintf("%d%s", n, unit.name)
			d -= n * unit.size
		}
	}
	if d > 0 {
		text += d.String()
	}
	return text
}
