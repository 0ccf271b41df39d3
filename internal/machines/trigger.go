package machines

import (
	"fmt"
	"strings"
	"time"

	"routemaster/internal/bus"
)

// Trigger starts an evaluation of a gate's condition. One of its fields is set, besides those of
// TimeOfDay and of Topic.
type Trigger struct {
	// Metadata is a path into the metadata: a PATCH that has it triggers.
	Metadata []string
	// TimeOfDay triggers each day, in Zone.
	TimeOfDay *TimeOfDay
	Zone      Zone
	// Interval triggers whenever a whole number of it has passed since the Unix epoch. It is at least
	// a minute.
	Interval time.Duration
	// Entry triggers when a label arrives in the gate.
	Entry bool
	// Topic triggers for each event of a topic.
	Topic *TopicTrigger
}

// TopicTrigger says which events of a topic trigger for which label.
type TopicTrigger struct {
	Topic bus.TopicName
	// LabelURL is the template of an event's URL, with <label> for the label's name; LabelPath the
	// path of that name in an event's data. One of the two is set.
	LabelURL  string
	LabelPath []string
	// Metadata is the path in the metadata at which an event's data is merged; empty for the top.
	Metadata []string
	// Create says that labels which do not exist are made.
	Create bool
}

// String names the trigger for people, and among the triggers of its gate.
func (t Trigger) String() string {
	switch {
	case t.TimeOfDay != nil:
		return strings.TrimSpace("time " + t.TimeOfDay.String() + " " + t.Zone.String())
	case t.Interval > 0:
		return "interval " + t.Interval.String()
	case t.Entry:
		return TriggerEntry
	case t.Topic != nil:
		return "topic " + string(t.Topic.Topic)
	}
	return "metadata " + strings.Join(t.Metadata, ".")
}

// Timed reports whether it is the clock that triggers.
func (t Trigger) Timed() bool { return t.TimeOfDay != nil || t.Interval > 0 }

// TimeOfDay is a time of day in seconds since midnight.
type TimeOfDay int

func (t TimeOfDay) String() string { return fmt.Sprintf("%02d:%02d", int(t)/3600, int(t)/60%60) }

// Zone is a time zone: one of the IANA database, or the one that is named by the metadata of each
// label. The zero Zone is the process's.
type Zone struct {
	Location *time.Location
	// Metadata is a path into the metadata.
	Metadata []string
}

func (z Zone) String() string {
	switch {
	case len(z.Metadata) > 0:
		return "metadata." + strings.Join(z.Metadata, ".")
	case z.Location != nil:
		return z.Location.String()
	}
	return ""
}

// HasEntryTrigger reports whether the gate's condition is evaluated when a label arrives.
func (g *Gate) HasEntryTrigger() bool {
	for _, t := range g.Triggers {
		if t.Entry {
			return true
		}
	}
	return false
}

// TriggerEntry is the name of the trigger of labels that arrive in a state.
const TriggerEntry = "entry"

// MayOpen reports whether the state is a gate, and no end: nothing opens an end.
func (s *State) MayOpen() bool { return s != nil && s.Gate != nil && s.Next != nil }

// RunsOn reports whether something is to be done for a label that arrives in the state.
func (s *State) RunsOn() bool { return s.Action != nil || s.MayOpen() && s.Gate.HasEntryTrigger() }

// TriggerOf returns the name of the trigger that a change sets off for a label in the state, the
// topic for an event; empty if there is none, as at an end. Pending says that the gate is evaluated
// again each minute until it opens, as after a change of the metadata that it waits for.
func (s *State) TriggerOf(machine Name, name LabelName, c *Change) (trigger string, pending bool) {
	if !s.MayOpen() {
		return "", false
	}
	for _, t := range s.Gate.Triggers {
		switch {
		case len(t.Metadata) == 0 || !c.Patch.Has(t.Metadata):
		case c.Event != nil: // its data are the patch
			return Trigger{Topic: &TopicTrigger{Topic: c.Event.Topic}}.String(), true
		default:
			return t.String(), true
		}
	}
	for _, t := range s.Gate.Triggers {
		if c.Event != nil && t.Topic != nil && t.Topic.Topic == c.Event.Topic {
			if named, ok := t.Topic.labelOf(machine, c.Event); ok && named == name {
				return t.String(), false
			}
		}
	}
	return "", false
}
