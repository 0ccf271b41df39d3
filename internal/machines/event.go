package machines

import (
	"encoding/json"
	"slices"
	"time"

	"routemaster/internal/bus"
)

// Event is an event of a topic, as machines hear it.
type Event struct {
	Topic bus.TopicName
	Type  bus.EventType
	URL   string
	// At is its timestamp, in ms since the Unix epoch.
	At int64
	// Data is its data, numbers as they were written (json.Number); nil without.
	Data any
}

// MaxHops is how many moves may have set off one another through topics, until a gate is not opened
// for the next.
const MaxHops = 50

// ReasonHops is why a label is errored whose gate an event of too many hops was to open.
const ReasonHops = "paused: 50 moves of labels have set off one another through topics; " +
	"change the machines that hear what they publish, then retry the label, or change its metadata"

// PublishedMove is a move of a label, as an event says that its machine has published.
type PublishedMove struct {
	Machine Name
	Label   LabelName
	At      int64 // ms
	// From is empty for a creation, To for a deletion.
	From, To StateName
}

// MovesOf returns the moves that an event may be of: one for each machine that publishes to its
// topic; none for an event that no machine has published.
func (d *Definitions) MovesOf(e *Event) (moves []PublishedMove) {
	data, _ := e.Data.(map[string]any)
	label, named := data["label"].(string)
	from, _ := data["from"].(string)
	to, _ := data["to"].(string)
	for _, m := range d.Machines {
		if named && m.Publish != nil && m.Publish.Topic == e.Topic {
			moves = append(moves, PublishedMove{m.Name, LabelName(label), e.At, StateName(from), StateName(to)})
		}
	}
	return moves
}

// Change is a change of a label by a client or an event.
type Change struct {
	// Patch is merged into the metadata of the label; see [Object.Merge].
	Patch    Object
	KeepNull bool
	// Event is the one that the patch is from; nil if a client has sent it.
	Event *Event
	// Hops is how many moves have set off one another, through topics, up to the change: 0 for a
	// client's change.
	Hops int
	// Create says that the label is made if it does not exist, for the client By, empty for root,
	// whose account is charged.
	Create bool
	By     bus.ClientName
	// Patience is until when the change waits for the label to come to rest; zero if it does not.
	Patience time.Time
	// Definitions is the version by which the change was made, which the label's partition may not
	// have yet; 0 for any.
	Definitions int64
}

// ChangesOf returns the changes that an event makes, by label. It also returns how many triggers of
// its topic name no label for it, or have no place for its data. Triggers of several gates that
// name one label make one change.
func (m *Machine) ChangesOf(e *Event) (changes map[LabelName]Change, unusable int) {
	changes = map[LabelName]Change{}
	for _, t := range m.topicTriggers() {
		if t.Topic != e.Topic {
			continue
		}
		name, named := t.labelOf(m.Name, e)
		patch, placed := t.patchOf(e)
		if !named || !placed {
			unusable++
			continue
		}
		change := changes[name]
		// An event about the end of a thing does not begin a label.
		create := t.Create && e.Type != bus.Delete
		changes[name] = Change{Patch: change.Patch.Merge(patch, true), Event: e, Create: change.Create || create}
	}
	return changes, unusable
}

// topicTriggers returns the triggers by topic of all gates.
func (m *Machine) topicTriggers() (triggers []*TopicTrigger) {
	for _, s := range m.States {
		if s.Gate == nil {
			continue
		}
		for _, t := range s.Gate.Triggers {
			if t.Topic != nil {
				triggers = append(triggers, t.Topic)
			}
		}
	}
	return triggers
}

// Hears reports whether a gate has a trigger by a topic.
func (m *Machine) Hears(topic bus.TopicName) bool {
	return slices.ContainsFunc(m.topicTriggers(), func(t *TopicTrigger) bool { return t.Topic == topic })
}

// labelOf returns the label that an event is about, and whether it names one.
func (t *TopicTrigger) labelOf(machine Name, e *Event) (name LabelName, named bool) {
	if t.LabelURL == "" {
		data, _ := e.Data.(map[string]any)
		switch value := Object(data).At(t.LabelPath).(type) {
		case string:
			name = LabelName(value)
		case json.Number:
			name = LabelName(value)
		}
		return name, name.Validate() == nil
	}
	name, fits := labelIn(e.URL, t.LabelURL, machine)
	return name, fits && name.Validate() == nil
}

// patchOf returns the data of an event as a patch, and whether there is a place for them: at the
// top there is only for an object.
func (t *TopicTrigger) patchOf(e *Event) (patch Object, placed bool) {
	if e.Data == nil {
		return Object{}, true
	}
	if len(t.Metadata) == 0 {
		object, isObject := e.Data.(map[string]any)
		return object, isObject
	}
	value := e.Data
	for i := len(t.Metadata) - 1; i >= 0; i-- {
		value = map[string]any{t.Metadata[i]: value}
	}
	return value.(map[string]any), true
}

// Topics returns the topics whose events the machine hears; one that several of its gates hear is
// there as often.
func (m *Machine) Topics() (topics []bus.TopicName) {
	for _, t := range m.topicTriggers() {
		topics = append(topics, t.Topic)
	}
	return topics
}

// Topics returns the topics whose events machines hear, each once.
func (d *Definitions) Topics() (topics []bus.TopicName) {
	seen := map[bus.TopicName]bool{}
	for _, m := range d.Machines {
		for _, topic := range m.Topics() {
			if !seen[topic] {
				seen[topic] = true
				topics = append(topics, topic)
			}
		}
	}
	return topics
}
