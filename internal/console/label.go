package console

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"routemaster/client/machines"
	"routemaster/internal/console/view"
)

// labelPage is the data of a label's page.
type labelPage struct {
	machines.Status
	Machine, Name string
	// Text is the metadata, with the digits that it has.
	Text    string
	History Panel[machines.History]
}

// machineOf is the machine that a page is about.
func machineOf(v *Visit) *machines.Machine { return machines.Of(v.Bus, v.Path("machine")) }

func loadLabel(v *Visit) (any, error) {
	m, name := machineOf(v), v.Path("label")
	status, err := m.Label(v.Context(), name)
	if err != nil {
		return nil, err
	}
	p := labelPage{Status: status, Machine: v.Path("machine"), Name: name, Text: jsonOf(status.Metadata)}
	p.History = Part(m.History(v.Context(), name))
	if moves := p.History.Value.Moves; len(moves) > view.PageSize {
		p.History.Value.Moves = moves[:view.PageSize]
	}
	return p, nil
}

// jsonOf writes a value of the bus as JSON that is easy to read.
func jsonOf(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err.Error()
	}
	return view.Indent(bytes.TrimSpace(text.Bytes()))
}

// PartValue is the value of a part of a condition, as JSON.
func (p labelPage) PartValue(part machines.Part) string {
	switch {
	case part.Error != "":
		return "fails: " + part.Error
	case part.Unknown:
		return "unknown: it depends on a feed"
	}
	return jsonOf(part.Value)
}

// Outcome is the value of the condition that a label waits for.
func (p labelPage) Outcome() string {
	switch w := p.Waiting; {
	case w.Error != "":
		return "cannot be evaluated: " + w.Error
	case w.Value == nil:
		return "is not known: it depends on a feed"
	case *w.Value:
		return "holds"
	}
	return "does not hold"
}

// TriggerWhat describes a trigger in words.
func (p labelPage) TriggerWhat(t machines.Trigger) string {
	switch {
	case t.Path != "":
		return "a change of " + t.Path
	case t.Topic != "":
		return "an event of " + t.Topic
	}
	return t.Type
}

// MoveNumber numbers the moves of a label from the oldest on, so that a refresh recognizes their
// rows. The list has the latest first.
func (p labelPage) MoveNumber(i int) int64 { return p.History.Value.Count - int64(i) }

// MoveWhy is why a label has moved, in words.
func (p labelPage) MoveWhy(m machines.Move) string {
	switch {
	case m.From == nil:
		return "created"
	case m.To == nil:
		return "deleted"
	case m.Why.Status != 0:
		return "the webhook was answered with " + strconv.Itoa(m.Why.Status)
	}
	return m.Why.Trigger
}

// labelAction is a question about a label.
type labelAction struct {
	// path is relative to the label's page, calls to the label's route of the API.
	path, calls, verb, effect string
	// do returns the message to show.
	do func(m *machines.Machine, v *Visit, label string) (string, error)
	// typed requires typing the label's name; back is the page to go to afterwards.
	typed bool
	back  string
}

// labelActions are the actions on a label.
var labelActions = []labelAction{
	{
		path: "evaluate", calls: "POST /evaluate", verb: "Evaluate", back: labelPath,
		effect: "The condition of its gate is evaluated now. If it holds, the label moves.",
		do: func(m *machines.Machine, v *Visit, label string) (string, error) {
			status, err := m.Evaluate(v.Context(), label)
			return "Evaluated " + label + ". It is in " + status.State + ".", err
		},
	},
	{
		path: "retry", calls: "POST /retry", verb: "Retry", back: labelPath,
		effect: "Its action is tried again now.",
		do: func(m *machines.Machine, v *Visit, label string) (string, error) {
			status, err := m.Retry(v.Context(), label)
			return "Retried " + label + ". It is in " + status.State + ".", err
		},
	},
	{
		path: "delete", calls: "DELETE ", verb: "Delete", back: machinePath, typed: true,
		effect: "Its metadata is lost, and for 24 h no label of its name can be created.",
		do: func(m *machines.Machine, v *Visit, label string) (string, error) {
			return "Deleted the label " + label + ".", m.Delete(v.Context(), label)
		},
	},
}

func (a labelAction) page() Page {
	method, below, _ := strings.Cut(a.calls, " ")
	return Question{
		Path: labelPath + "/" + a.path, Calls: method + " " + labelRoute + below,
		For: Members, Back: labelPath,
		Ask: func(v *Visit) (c view.Confirm, err error) {
			name := v.Path("label")
			status, err := machineOf(v).Label(v.Context(), name)
			if err != nil {
				return c, err
			}
			c = view.Confirm{
				Title: a.verb + " " + name, Button: a.verb + " the label " + name,
				Effects: []string{"It is in " + status.State + ".", a.effect},
				Command: view.Command(method, view.Path("state-machines", v.Path("machine"), "labels", name)+below, nil),
			}
			if a.typed {
				c.Name = name
			}
			return c, nil
		},
		Do: func(v *Visit) (Answer, error) {
			message, err := a.do(machineOf(v), v, v.Path("label"))
			return SeeOther(message, a.back, v.Names(a.back)...), err
		},
	}.Page()
}
