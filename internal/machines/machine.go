package machines

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines/condition"
)

type (
	// Name names a machine: 1 to 128 characters but / and control characters.
	Name string
	// StateName names a state: letters, digits and underscore.
	StateName string
)

// Definitions are all machines. They are not changed once they are made.
type Definitions struct {
	// Version counts the changes of the definitions in Redis, from 1; 0 if they are not from there.
	Version int64
	// Edition is a text that no other definitions in Redis have. A Redis that has lost some gives
	// others the same version.
	Edition string
	// Machines are in the order of their names.
	Machines []*Machine
	// Source is the YAML of all of them, and AppliedAt since when they hold.
	Source    []byte
	AppliedAt time.Time
	// Moves are the moves of labels that are in states which have vanished.
	Moves []StateMove
}

// StateMove sends the labels in a state that has vanished to another one.
type StateMove struct {
	Machine Name      `json:"machine"`
	From    StateName `json:"from"`
	To      StateName `json:"to"`
}

// State returns a state of a machine; nil if there is none.
func (d *Definitions) State(machine Name, state StateName) *State {
	if m := d.Machine(machine); m != nil {
		return m.State(state)
	}
	return nil
}

// Successor returns where the labels in a state that has vanished are to go; empty if that was not
// given.
func (d *Definitions) Successor(machine Name, state StateName) StateName {
	for _, move := range d.Moves {
		if move.Machine == machine && move.From == state {
			return move.To
		}
	}
	return ""
}

// Machine returns a machine by its name; nil if there is none.
func (d *Definitions) Machine(name Name) *Machine {
	i, found := slices.BinarySearchFunc(d.Machines, name, func(m *Machine, name Name) int { return cmp.Compare(m.Name, name) })
	if !found {
		return nil
	}
	return d.Machines[i]
}

// Machine is a state machine.
type Machine struct {
	Name Name
	// States are in the order of the definition; the first is the one in which labels begin.
	States []*State
	Feeds  []Feed
	// Webhooks are the rules for the headers of webhooks; of two for one header, the later holds.
	Webhooks []WebhookRule
	// Publish says where moves are published; nil if they are not.
	Publish *Publish
	// Clients may make, change, delete and retry its labels, and have them evaluated, besides root.
	Clients bus.Clients
}

// State returns a state by its name; nil if there is none.
func (m *Machine) State(name StateName) *State {
	for _, s := range m.States {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// First returns the state in which labels begin.
func (m *Machine) First() *State { return m.States[0] }

// State is a gate or an action: one of the two is not nil.
type State struct {
	Name   StateName
	Gate   *Gate
	Action *Action
	// Next says where labels go from here. It is nil for an end, which only a gate can be.
	Next *Next
}

// Requests reports whether a request may be sent for a label in the state: by its action, or to a
// feed.
func (s *State) Requests() bool {
	isFeed := func(p condition.Path) bool { return p.Names[0] == "feeds" }
	return s.Action != nil || slices.ContainsFunc(s.Gate.Condition.Paths(), isFeed) ||
		s.Next != nil && s.Next.Path != nil && isFeed(*s.Next.Path)
}

// URLs are the templates of the URLs to which a request may be sent for a label in the state.
func (s *State) URLs(m *Machine) (urls []string) {
	var paths []condition.Path
	if s.Action != nil {
		urls = append(urls, s.Action.Webhook)
	} else {
		paths = s.Gate.Condition.Paths()
	}
	if s.Next != nil && s.Next.Path != nil {
		paths = append(slices.Clip(paths), *s.Next.Path)
	}
	for _, p := range paths {
		if p.Names[0] != "feeds" || len(p.Names) < 2 {
			continue
		}
		if feed := m.Feed(p.Names[1]); feed != nil && !slices.Contains(urls, feed.URL) {
			urls = append(urls, feed.URL)
		}
	}
	return urls
}

// Gate holds labels until a condition is met.
type Gate struct {
	Condition *condition.Condition
	Triggers  []Trigger
	// Zone is the zone of system.time, if the definition names one.
	Zone Zone
}

// Action calls a webhook.
type Action struct {
	// Webhook is a URL, with <label> and <state_machine> for the names.
	Webhook string
	// Attempts is how often the webhook is called in one visit, until the label is errored.
	Attempts int
	// Backoff is the time before the second attempt. It doubles with each.
	Backoff time.Duration
	// Timeout is for one attempt.
	Timeout time.Duration
}

// Limits and defaults of an action's fields, and the limit of backoff.
const (
	MaxAttempts           = 1000
	DefaultAttempts       = 20
	DefaultBackoff        = 10 * time.Second
	MaxBackoff            = time.Hour
	DefaultWebhookTimeout = 10 * time.Second
	DefaultFeedTimeout    = 5 * time.Second
	// MaxTimeout is for webhooks and feeds.
	MaxTimeout = 5 * time.Minute
)

// Next says where labels go: to the first destination whose value is equal to that at the path,
// and else to Default. Without a path they always go to Default.
type Next struct {
	Path         *condition.Path
	Destinations []Destination
	Default      StateName
}

// Destination is a state, and the value that leads there: a string, number (json.Number), bool or
// nil.
type Destination struct {
	State StateName
	Value any
}

// States returns the states that follow, each once.
func (n *Next) States() (names []StateName) {
	if n == nil {
		return nil
	}
	seen := map[StateName]bool{}
	for _, d := range append(n.Destinations[:len(n.Destinations):len(n.Destinations)], Destination{State: n.Default}) {
		if !seen[d.State] {
			seen[d.State] = true
			names = append(names, d.State)
		}
	}
	return names
}

// Feed is where a machine asks for data about a label.
type Feed struct {
	Name string
	// URL has <label> and <state_machine> for the names.
	URL     string
	Timeout time.Duration
}

// Feed returns a feed by its name; nil if there is none.
func (m *Machine) Feed(name string) *Feed {
	for i := range m.Feeds {
		if m.Feeds[i].Name == name {
			return &m.Feeds[i]
		}
	}
	return nil
}

// WebhookRule adds headers to the webhooks whose URL it matches. They may be credentials: no log
// and no client but root may see them.
type WebhookRule struct {
	Match   *regexp.Regexp
	Headers map[string]string
}

// plainLabels stand for a label when a rule is matched.
var plainLabels = []LabelName{"label", "0"}

// Holds reports whether the headers are for the webhook of a label, whose URL is a template. The
// pattern has to match the label's URL and also a plain label's: the headers may be credentials,
// and a client that names a label like the host of another service must not make the bus send them
// there.
func (r *WebhookRule) Holds(template string, machine Name, label LabelName) bool {
	matches := func(label LabelName) bool { return r.Match.MatchString(ExpandURL(template, machine, label)) }
	return matches(label) && slices.ContainsFunc(plainLabels, matches)
}

// Publish says where the moves of a machine are published.
type Publish struct {
	Topic bus.TopicName `json:"topic"`
	// URL is the template of the events' URLs, with <label> and <state_machine> for the names.
	URL string `json:"url"`
	// Publisher is the client that owns the topic.
	Publisher bus.ClientName `json:"publisher"`
}
