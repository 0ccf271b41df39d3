package definition

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"routemaster/internal/machines"
	"routemaster/internal/machines/condition"
)

// stateReader reads the states of a machine.
type stateReader struct {
	*loader
	machine *machines.Machine
	// places are where the names of states stand.
	places map[machines.StateName]Place
	// targets are the states that others lead to.
	targets []target
	// ways are where each state leads, in the order of the list.
	ways []way
}

type target struct {
	Place
	name machines.StateName
}

// states reads all states, and checks how they lead to one another as far as that can be read.
func (r *stateReader) states(v *Value) {
	items := r.list(v, "states")
	switch n := len(items); {
	case n > machines.MaxStates:
		r.Refuse(v.Place, "a machine may have %d states, and this is %d", machines.MaxStates, n)
	case n == 0 && v != nil && v.Kind == List:
		r.Refuse(v.Place, "a machine needs a state at least")
	}
	for _, item := range items {
		r.ways = append(r.ways, way{})
		if s := r.state(item); s != nil {
			r.machine.States = append(r.machine.States, s)
			r.ways[len(r.ways)-1].from = s.Name
		}
	}
	for _, t := range r.targets {
		if _, ok := r.places[t.name]; !ok && len(items) == len(r.machine.States) {
			r.Refuse(t.Place, "there is no state %q in this machine: %s", t.name, r.names())
		}
	}
	r.checkReachable()
	r.checkLoops()
}

// names lists the states, if they are few.
func (r *stateReader) names() string {
	var names []string
	for _, s := range r.machine.States {
		names = append(names, string(s.Name))
	}
	if len(names) > 20 {
		names = append(names[:20], "…")
	}
	return "it has " + strings.Join(names, ", ")
}

// state reads a state; nil if it has no name.
func (r *stateReader) state(v *Value) *machines.State {
	o := r.mapping(v, "a state is a map with gate or action")
	if o == nil {
		r.loseWay()
		return nil
	}
	gate, action := o.At("gate"), o.At("action")
	switch {
	case gate != nil && action != nil:
		r.Refuse(action.Place, "a state is a gate or an action, and this is both: remove one")
		r.loseWay()
		return nil
	case action != nil:
		return r.action(v)
	case gate != nil:
		return r.gate(v)
	}
	r.Refuse(v.Place, "a state needs a name: gate, if it waits for a condition, or action, if it calls a webhook")
	r.loseWay()
	return nil
}

// name reads the name of a state, which must be the first of this name.
func (r *stateReader) name(v *Value, what string) (machines.StateName, bool) {
	text, ok := r.text(v, what)
	if !ok {
		return "", false
	}
	name := machines.StateName(text)
	if err := name.Validate(); err != nil {
		r.Refuse(v.Place, "%s", err)
		return "", false
	}
	if first, ok := r.places[name]; ok {
		r.Refuse(v.Place, "there are two states %s, the first in line %d: name one of them differently", name, first.Line)
	} else {
		r.places[name] = v.Place
	}
	return name, true
}

func (r *stateReader) gate(v *Value) *machines.State {
	before := r.Refused()
	o := r.object(v, "a gate", "gate", "exit_condition", "triggers", "timezone", "next")
	name, ok := r.name(o.need("gate"), "gate")
	g := &machines.Gate{Condition: r.condition(o.need("exit_condition", " (false for an end)")), Zone: r.zone(o.get("timezone"))}
	g.Triggers = r.triggers(o.get("triggers"))
	s := &machines.State{Name: name, Gate: g}
	if r.Refused() == before {
		r.checkClock(o, g)
	}
	if next := o.At("next"); next != nil && next.Kind == Null && !next.Broken {
		r.Refuse(next.Place, "next must not be null: leave it out if the gate is an end")
		r.loseWay()
	} else if next != nil {
		s.Next = r.next(next)
	}
	if !ok {
		return nil
	}
	return s
}

// checkClock warns of a gate that time should open, but that is not evaluated as time passes. A
// metadata trigger has it evaluated each minute after a change. An end opens nothing.
func (r *stateReader) checkClock(o *object, g *machines.Gate) {
	looks := func(t machines.Trigger) bool { return t.Timed() || len(t.Metadata) > 0 }
	if g.Condition == nil || !g.Condition.OpensWithTime() || o.get("next") == nil || slices.ContainsFunc(g.Triggers, looks) {
		return
	}
	r.Warn(o.At("exit_condition").Place, "the condition depends on the time, but no trigger follows the clock: add interval or time")
}

func (r *stateReader) action(v *Value) *machines.State {
	o := r.object(v, "an action", "action", "webhook", "next", "attempts", "backoff", "timeout")
	name, ok := r.name(o.need("action"), "action")
	s := &machines.State{
		Name: name,
		Action: &machines.Action{
			Webhook:  r.url(o.need("webhook"), "webhook"),
			Attempts: r.integer(o.get("attempts"), "attempts", machines.DefaultAttempts, machines.MaxAttempts),
			Backoff:  r.duration(o.get("backoff"), "backoff", machines.DefaultBackoff, machines.MaxBackoff),
			Timeout:  r.duration(o.get("timeout"), "timeout", machines.DefaultWebhookTimeout, machines.MaxTimeout),
		},
		Next: r.next(o.need("next")),
	}
	if !ok {
		return nil
	}
	return s
}

// url reads the URL of a webhook or a feed, with names to come.
func (l *loader) url(v *Value, what string) string {
	source, ok := l.text(v, what)
	if !ok {
		return ""
	}
	u, err := url.Parse(withNames(source))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		l.Refuse(v.Place, "%s must be an http or https URL with a host, as in https://app.example/users/<label>", what)
	} else {
		l.checkHost(v, what)
	}
	return source
}

// checkHost refuses a URL whose host, user or port has the name of a label: the client that makes
// the label would choose where requests go.
func (l *loader) checkHost(v *Value, what string) {
	scheme, rest, _ := strings.Cut(v.Text, "://")
	authority, _, _ := strings.Cut(rest, "/")
	authority, _, _ = strings.Cut(authority, "?")
	authority, _, _ = strings.Cut(authority, "#")
	at := strings.Index(authority, "<label>")
	if at < 0 {
		return
	}
	at += len(scheme + "://")
	l.refuseNew(l.Within(v, at), "%s must not have <label> before its path: a client would choose the host; "+
		"put it into the path, as in https://app.example/users/<label>", what)
}

// condition reads an exit condition.
func (r *stateReader) condition(v *Value) *condition.Condition {
	if v == nil || v.Broken {
		return nil
	}
	if v.Kind != String && v.Kind != Boolean {
		r.Refuse(v.Place, "exit_condition must be a string, true or false; this is %s", v.Kind)
		return nil
	}
	c, err := condition.Parse(v.Text)
	if err != nil {
		r.refuseSyntax(v, "exit_condition", 0, err)
		return nil
	}
	for _, p := range c.Paths() {
		r.checkFeed(v, p)
	}
	return c
}

// checkFeed refuses a path into a feed that the machine does not have.
func (r *stateReader) checkFeed(v *Value, p condition.Path) {
	if p.Names[0] == "feeds" && r.machine.Feed(p.Names[1]) == nil {
		r.Refuse(r.Within(v, p.Offset), "the machine has no feed %q: add it to feeds", p.Names[1])
	}
}

// next reads where labels go.
func (r *stateReader) next(v *Value) *machines.Next {
	if v == nil || v.Broken {
		r.loseWay()
		return nil
	}
	if v.Kind == String {
		return &machines.Next{Default: r.target(v, "next")}
	}
	o := r.mapping(v, "next is the name of a state, or a map with type")
	if o == nil {
		r.loseWay()
		return nil
	}
	o.what = "next"
	typed := o.need("type")
	name, ok := r.text(typed, "type")
	switch {
	case !ok:
		r.loseWay()
	case name == "constant":
		o = r.object(v, "a constant next", "type", "state")
		return &machines.Next{Default: r.target(o.need("state"), "state")}
	case name == "context":
		return r.context(r.object(v, "a context next", "type", "path", "default", "destinations"))
	default:
		r.Refuse(typed.Place, "next has no type %q: it is constant or context", name)
		r.loseWay()
	}
	return nil
}

// target reads the name of a state to go to.
func (r *stateReader) target(v *Value, what string) machines.StateName {
	name, ok := r.text(v, what)
	if !ok {
		r.loseWay()
		return ""
	}
	t := target{v.Place, machines.StateName(name)}
	r.targets = append(r.targets, t)
	last := &r.ways[len(r.ways)-1]
	last.to = append(last.to, t.name)
	return t.name
}

// maxDestinations bounds the destinations of a next, as each value is compared with all others.
const maxDestinations = 1000

// context reads a next that depends on a value.
func (r *stateReader) context(o *object) *machines.Next {
	n := &machines.Next{Default: r.target(o.need("default"), "default")}
	at := o.need("path")
	if source, ok := r.text(at, "path"); ok {
		path, err := condition.ParsePath(source)
		if err == nil {
			err = path.Validate()
		}
		if err != nil {
			r.refuseSyntax(at, "path", 0, err)
		} else {
			r.checkFeed(at, path)
			n.Path = &path
		}
	}
	all := o.need("destinations")
	items := r.list(all, "destinations")
	if items == nil {
		r.loseWay()
	}
	if all != nil && all.Kind == List && (len(items) == 0 || len(items) > maxDestinations) {
		r.Refuse(all.Place, "destinations are 1 to %d; these are %d", maxDestinations, len(items))
		return n
	}
	for _, item := range items {
		r.destination(n, item)
	}
	return n
}

func (r *stateReader) destination(n *machines.Next, v *Value) {
	o := r.object(v, "a destination", "value", "state")
	if o == nil {
		r.loseWay()
		return
	}
	d := machines.Destination{State: r.target(o.need("state"), "state")}
	given := o.At("value")
	switch {
	case given == nil:
		r.Refuse(v.Place, "a destination needs value")
		return
	case given.Broken:
		return
	case given.Kind == List || given.Kind == Map:
		r.Refuse(given.Place, "value must be a string, a number, true, false or null; this is %s", given.Kind)
		return
	}
	d.Value = decoded(given)
	for _, other := range n.Destinations {
		if condition.Equal(other.Value, d.Value) {
			r.Refuse(given.Place, "two destinations are for one value: %s equals %s, which leads to %s; remove one",
				describe(d.Value), describe(other.Value), other.State)
			break
		}
	}
	n.Destinations = append(n.Destinations, d)
}

// describe writes a value as JSON.
func describe(scalar any) string {
	written, err := json.Marshal(scalar)
	if err != nil {
		return fmt.Sprint(scalar)
	}
	return string(written)
}

// decoded is a scalar as decoded from JSON, with the number as it was written.
func decoded(v *Value) any {
	switch v.Kind {
	case Null:
		return nil
	case Boolean:
		return v.Text == "true"
	case Number:
		return json.Number(v.Text)
	}
	return v.Text
}
