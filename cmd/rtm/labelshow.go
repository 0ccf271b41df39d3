package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"routemaster/client/machines"
	"routemaster/internal/bus"
	"routemaster/internal/terminal"
	"routemaster/internal/top"
)

// sayThatNoneMoves says on stderr why no label moves, if that is so and a label is not at its end.
func sayThatNoneMoves(c *call, s machines.Status) {
	if s.Waiting == nil && s.Action == nil {
		return
	}
	if p, found := top.NewReader(c.bus).Find(c.Context(), "no-worker", "no-machine-threads"); found {
		c.note("no label moves now: %s %s", p.Title, p.Detail)
	}
}

// showLabel prints the status of the label that a command is about.
func showLabel(c *call, status machines.Status) error {
	evaluate := bus.Command("label evaluate", c.args...)
	return c.show(status, statusRows(status, evaluate, time.Now()))
}

// statusRows are the rows of rtm label show. Evaluate is the command that has the gate evaluated.
func statusRows(s machines.Status, evaluate string, now time.Time) [][]string {
	rows := [][]string{{"state", s.State}, {"since", s.EnteredAt.Format(time.RFC3339) + " (" + span(now.Sub(s.EnteredAt.Time)) + " ago)"}}
	if s.Waiting != nil {
		rows = append(rows, explanationRows(s.Waiting.Explanation)...)
		rows = append(rows, triggerRows(s.Waiting.Triggers, evaluate, now)...)
		if mayMove(*s.Waiting) {
			rows = append(rows, []string{"hint", "the condition holds, but has not been evaluated since: " + evaluate + " does that now"})
		}
	}
	if s.Action != nil {
		rows = append(rows, actionRows(*s.Action, now)...)
	}
	if s.Waiting == nil && s.Action == nil && s.Errored == nil && len(s.Route) == 0 {
		rows = append(rows, []string{"end", "the label moves no further"})
	}
	if s.Errored != nil {
		rows = append(rows, []string{"errored", s.Errored.At.Format(time.RFC3339) + ": " + s.Errored.Reason})
	}
	if len(s.Route) > 0 {
		rows = append(rows, []string{"route", strings.Join(s.Route, ", ")})
	}
	return append(rows, []string{"metadata", terminal.JSON(s.Metadata)})
}

// mayMove reports whether a gate would open, and has not been evaluated again yet.
func mayMove(w machines.Waiting) bool {
	isRetry := func(t machines.Trigger) bool { return t.Type == "retry" }
	return w.Value != nil && *w.Value && w.Error == "" && !slices.ContainsFunc(w.Triggers, isRetry)
}

// explanationRows are a condition, its value, and the values of its parts.
func explanationRows(x machines.Explanation) [][]string {
	value := "-"
	if x.Value != nil {
		value = strconv.FormatBool(*x.Value)
	}
	rows := [][]string{{"condition", oneLine(x.Condition)}, {"value", valueText(value, x.Unknown, x.Error)}}
	for _, p := range x.Parts {
		rows = append(rows, []string{"part", p.Text + " -> " + valueText(terminal.JSON(p.Value), p.Unknown, p.Error)})
	}
	return rows
}

// valueText is a value, or why there is none.
func valueText(value string, unknown bool, failure string) string {
	switch {
	case failure != "":
		return "fails: " + failure
	case unknown:
		return "unknown, since it depends on a feed"
	}
	return value
}

// triggerRows are the triggers that will evaluate a gate: first the ones due at a time, soonest
// first.
func triggerRows(triggers []machines.Trigger, evaluate string, now time.Time) (rows [][]string) {
	order := slices.SortedStableFunc(slices.Values(triggers), func(a, b machines.Trigger) int {
		if a.At.IsZero() != b.At.IsZero() {
			if a.At.IsZero() {
				return 1
			}
			return -1
		}
		return a.At.Compare(b.At.Time)
	})
	for _, t := range order {
		name := "trigger"
		if len(rows) == 0 && !t.At.IsZero() {
			name = "next trigger"
		}
		rows = append(rows, []string{name, triggerText(t, now)})
	}
	if len(rows) == 0 {
		rows = [][]string{{"trigger", "none: only " + evaluate + " has it evaluated"}}
	}
	return rows
}

func triggerText(t machines.Trigger, now time.Time) string {
	text := t.Type
	switch {
	case t.Type == "metadata":
		return "metadata " + t.Path
	case t.Type == "topic":
		return "topic " + t.Topic
	case t.At.IsZero():
		return text + ", never: the metadata names no time zone"
	}
	return text + " " + dueText(t.At.Time, now)
}

// dueText is a time to come.
func dueText(at, now time.Time) string {
	in := "now"
	if at.After(now) {
		in = "in " + span(at.Sub(now))
	}
	return at.Format(time.RFC3339) + " (" + in + ")"
}

// span is a duration, rounded to the digits that matter.
func span(d time.Duration) string {
	switch {
	case d > 48*time.Hour:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	case d > time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return max(d, 0).Round(time.Second).String()
}

// actionRows describe the attempts of a webhook so far.
func actionRows(a machines.Action, now time.Time) [][]string {
	rows := [][]string{{"failed attempts", strconv.Itoa(a.Attempts)}}
	if a.LastStatus != 0 {
		rows = append(rows, []string{"last status", strconv.Itoa(a.LastStatus)})
	}
	if a.LastError != "" {
		rows = append(rows, []string{"last error", a.LastError})
	}
	if !a.NextTryAt.IsZero() {
		rows = append(rows, []string{"next try", dueText(a.NextTryAt.Time, now)})
	}
	return rows
}
