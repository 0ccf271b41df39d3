package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"routemaster/internal/machines"
)

// Formats are the formats that [Draw] knows.
var Formats = []string{"dot", "mermaid", "svg"}

// ErrTooLarge is the error of a machine that is too large for an SVG.
var ErrTooLarge = fmt.Errorf("an SVG has at most %d states and %d ways between them: draw larger machines with Graphviz, from dot",
	maxStates, maxEdges)

// Draw draws a machine in one of the formats. It fails for another format, and with [ErrTooLarge].
func Draw(m *machines.Machine, format string) (string, error) {
	switch format {
	case "dot":
		return dot(m), nil
	case "mermaid":
		return mermaid(m), nil
	case "svg":
		return svg(m)
	}
	return "", errors.New("a graph has one of the formats " + strings.Join(Formats, ", "))
}

// edge is a way from one state to another. The states are numbers: their places in the machine.
type edge struct {
	from, to int
	// label is for which values it is taken, empty if always.
	label string
	// path leads to the value.
	path string
	// fallback is for the values that no other edge has.
	fallback bool
}

// edges returns the ways between the states of a machine. One has all values that lead to a state.
func edges(m *machines.Machine) (all []edge) {
	places := map[machines.StateName]int{}
	for i, s := range m.States {
		places[s.Name] = i
	}
	for i, s := range m.States {
		switch {
		case s.Next == nil:
		case s.Next.Path == nil:
			all = append(all, edge{from: i, to: places[s.Next.Default]})
		default:
			path, first := s.Next.Path.String(), len(all)
			at := map[machines.StateName]int{}
			for _, d := range s.Next.Destinations {
				if k, ok := at[d.State]; ok {
					all[k].label += ", " + literal(d.Value)
					continue
				}
				at[d.State] = len(all)
				all = append(all, edge{from: i, to: places[d.State], path: path, label: literal(d.Value)})
			}
			for k := range all[first:] {
				all[first+k].label = shorten(all[first+k].label, maxLabel)
			}
			all = append(all, edge{from: i, to: places[s.Next.Default], path: path, label: "default", fallback: true})
		}
	}
	return all
}

// maxLabel is how many characters a label has at most.
const maxLabel = 40

// literal writes a value as JSON.
func literal(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// shorten cuts a text that has more than a number of characters.
func shorten(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

// about describes a state in words.
func about(s *machines.State) string {
	if s.Action != nil {
		return "action " + string(s.Name) + ": POST " + s.Action.Webhook
	}
	lines := []string{"gate " + string(s.Name) + ": " + strings.Join(strings.Fields(s.Gate.Condition.String()), " ")}
	for _, t := range s.Gate.Triggers {
		lines = append(lines, "trigger: "+t.String())
	}
	return strings.Join(lines, "\n")
}
