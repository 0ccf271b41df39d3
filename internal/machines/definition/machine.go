package definition

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
)

// definitions reads all machines.
func (l *loader) definitions(root *Value) *machines.Definitions {
	o := l.object(root, "a definition", "state_machines", "placeholders", "plugins")
	if o == nil {
		return nil
	}
	l.placeholders(o.get("placeholders"))
	l.plugins(o.get("plugins"))
	d := &machines.Definitions{}
	all := l.mapping(o.need("state_machines"), "state_machines is a map of machines by their names")
	if all == nil {
		return d
	}
	if n := len(all.Entries); n > machines.MaxMachines {
		l.Refuse(all.Place, "there may be %d machines, and this is %d", machines.MaxMachines, n)
	}
	for _, e := range all.Entries {
		d.Machines = append(d.Machines, l.machine(e.Key, e.Value))
	}
	l.warnOfCycles(d.Machines, all)
	slices.SortFunc(d.Machines, func(a, b *machines.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return d
}

// warnOfCycles warns of machines that hear the moves that others of them publish, in a circle. One
// that hears its own is warned of by itself.
func (l *loader) warnOfCycles(all []*machines.Machine, places *object) {
	hearers := map[bus.TopicName][]*machines.Machine{}
	for _, m := range all {
		for _, topic := range (&machines.Definitions{Machines: []*machines.Machine{m}}).Topics() {
			hearers[topic] = append(hearers[topic], m)
		}
	}
	left := map[*machines.Machine]bool{} // finished machines, all of whose circles were found
	var way []*machines.Machine
	var follow func(m *machines.Machine)
	follow = func(m *machines.Machine) {
		if left[m] || m.Publish == nil {
			return
		}
		if i := slices.Index(way, m); i >= 0 {
			if circle := way[i:]; len(circle) > 1 {
				l.warnOfCycle(circle, places)
			}
			return
		}
		way = append(way, m)
		for _, next := range hearers[m.Publish.Topic] {
			follow(next)
		}
		way = way[:len(way)-1]
		left[m] = true
	}
	for _, m := range all {
		follow(m)
	}
}

// warnOfCycle warns of a circle, at whichever of its machines the files define first.
func (l *loader) warnOfCycle(circle []*machines.Machine, places *object) {
	at, steps := Place{}, []string{}
	for i, m := range circle {
		if place := places.At(string(m.Name)).KeyOf("publish").Place; i == 0 || place.File == at.File && place.Line < at.Line {
			at = place
		}
		if i < 10 {
			steps = append(steps, fmt.Sprintf("%s publishes %s, which %s hears", m.Name, m.Publish.Topic, circle[(i+1)%len(circle)].Name))
		}
	}
	if len(circle) > len(steps) {
		steps = append(steps, "…")
	}
	l.Warn(at, "machines may set off one another for ever: %s; after %d moves the label is paused", strings.Join(steps, ", "), machines.MaxHops)
}

func (l *loader) placeholders(v *Value) {
	o := l.mapping(orEmpty(v), "placeholders is a map of strings")
	if o == nil {
		return
	}
	for _, e := range o.Entries {
		if e.Value.Kind != String && e.Value.Kind != Number && !e.Value.Broken {
			l.Refuse(e.Value.Place, "a placeholder must be a string or a number; this is %s", e.Value.Kind)
		}
	}
}

// orEmpty returns an empty map for a missing one.
func orEmpty(v *Value) *Value {
	if v == nil {
		return &Value{Kind: Map}
	}
	return v
}

// pluginClass matches the class of a plugin.
var pluginClass = regexp.MustCompile(`^[\w.]+:\w+$`)

// plugins checks the logging plugins of the service that state machines take the place of. None is
// loaded.
func (l *loader) plugins(v *Value) {
	o := l.mapping(orEmpty(v), "plugins is a map")
	if o == nil {
		return
	}
	for _, e := range o.Entries {
		if e.Key.Text != "logging" {
			l.Warn(e.Key.Place, "there are no plugins of the kind %s: this is ignored", e.Key.Text)
			continue
		}
		for _, item := range l.list(e.Value, "logging") {
			l.plugin(item)
		}
	}
}

func (l *loader) plugin(v *Value) {
	o := l.object(v, "a plugin", "class", "kwargs")
	if o == nil {
		return
	}
	class := o.need("class")
	name, ok := l.text(class, "class")
	switch {
	case ok && !pluginClass.MatchString(name):
		l.Refuse(class.Place, "a class is module:Name, as in routemaster.logging:PythonLogger")
	case ok:
		l.Warn(class.Place, "the plugin %s is ignored: logs and metrics are those of the bus", name)
	}
	if kwargs := l.mapping(orEmpty(o.get("kwargs")), "kwargs is a map"); kwargs != nil {
		for _, e := range kwargs.Entries {
			l.pluginArgument(e.Value)
		}
	}
}

// pluginArgument checks a scalar, or a map of such.
func (l *loader) pluginArgument(v *Value) {
	for _, e := range v.Entries {
		if e.Value.Kind == Map || e.Value.Kind == List {
			l.Refuse(e.Value.Place, "a plugin's argument must not be nested; this is %s", e.Value.Kind)
		}
	}
	if v.Kind == List {
		l.Refuse(v.Place, "a plugin's argument must be a string, a number, a boolean or a map of these; this is a list")
	}
}

// machine reads one machine.
func (l *loader) machine(name, v *Value) *machines.Machine {
	m := &machines.Machine{Name: machines.Name(name.Text)}
	if err := m.Name.Validate(); err != nil {
		l.Refuse(name.Place, "%s", err)
	}
	if !m.Name.IsReachable() {
		l.refuseNew(name.Place, "a machine's name cannot be %s, which is another path in a URL: name it differently", m.Name)
	}
	o := l.mapping(v, "a machine is a map with states")
	if o == nil {
		return m
	}
	o.what = "a machine"
	for _, e := range o.Entries {
		if known := []string{"states", "feeds", "webhooks", "publish", "clients"}; !slices.Contains(known, e.Key.Text) {
			l.Warn(e.Key.Place, "a machine has no key %q: it is ignored; there are %s", e.Key.Text, strings.Join(known, ", "))
		}
	}
	m.Feeds = l.feeds(o.get("feeds"))
	m.Webhooks = l.webhookRules(o.get("webhooks"))
	m.Publish = l.publish(o.get("publish"))
	m.Clients = l.clients(o.get("clients"))
	s := stateReader{loader: l, machine: m, places: map[machines.StateName]Place{}}
	s.states(o.need("states"))
	if m.Publish != nil && m.Hears(m.Publish.Topic) {
		l.Warn(o.get("publish").Place, "the machine hears the topic %s, to which it publishes its own moves: they may set off one another for ever; after %d the label is paused", m.Publish.Topic, machines.MaxHops)
	}
	return m
}

func (l *loader) feeds(v *Value) (feeds []machines.Feed) {
	seen := map[string]bool{}
	for _, item := range l.list(v, "feeds") {
		o := l.object(item, "a feed", "name", "url", "timeout")
		if o == nil {
			continue
		}
		named := o.need("name")
		name, ok := l.text(named, "the name of a feed")
		if ok && seen[name] {
			l.Refuse(named.Place, "there are two feeds %q: name one of them differently", name)
		}
		seen[name] = true
		feeds = append(feeds, machines.Feed{
			Name:    name,
			URL:     l.url(o.need("url"), "the url of a feed"),
			Timeout: l.duration(o.get("timeout"), "timeout", machines.DefaultFeedTimeout, machines.MaxTimeout),
		})
	}
	return feeds
}

// headerName is a token of RFC 9110.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

func (l *loader) webhookRules(v *Value) (rules []machines.WebhookRule) {
	for _, item := range l.list(v, "webhooks") {
		o := l.object(item, "a rule for webhooks", "match", "headers")
		if o == nil {
			continue
		}
		rule := machines.WebhookRule{Match: l.pattern(o.need("match")), Headers: map[string]string{}}
		headers := l.mapping(orEmpty(o.need("headers")), "headers is a map of strings")
		if headers != nil {
			for _, e := range headers.Entries {
				l.checkHeader(e)
				rule.Headers[e.Key.Text] = e.Value.Text
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

// checkHeader never repeats a value, which may be a credential.
func (l *loader) checkHeader(e Entry) {
	switch {
	case !headerName.MatchString(e.Key.Text):
		l.Refuse(e.Key.Place, "%q is not the name of a header: it has letters, digits and hyphens", e.Key.Text)
	case e.Value.Broken:
	case e.Value.Kind != String && e.Value.Kind != Number:
		l.Refuse(e.Value.Place, "the header %s must be a string; this is %s", e.Key.Text, e.Value.Kind)
	case strings.ContainsFunc(e.Value.Text, unicode.IsControl):
		l.Refuse(e.Value.Place, "the header %s must not have control characters, such as line breaks", e.Key.Text)
	}
}

// pattern reads a regular expression.
func (l *loader) pattern(v *Value) *regexp.Regexp {
	source, ok := l.text(v, "match")
	if !ok {
		return nil
	}
	pattern, err := regexp.Compile(source)
	if wrong, ok := errors.AsType[*syntax.Error](err); ok {
		at := l.Within(v, max(0, strings.Index(source, wrong.Expr)))
		l.Refuse(at, "match is not a regular expression that RE2 knows: %s: %q", wrong.Code, wrong.Expr)
	} else if tree, err := syntax.Parse(source, syntax.Perl); err == nil && !isAnchored(tree) {
		l.Warn(v.Place, `match %q is not anchored: it also matches a URL that has this in its path; begin it with `+
			`the scheme and the host, as in ^https://app\.example/`, source)
	}
	return pattern
}

// isAnchored reports whether a regular expression only matches from the beginning of a text.
func isAnchored(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpBeginText:
		return true
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		return len(tree.Sub) > 0 && isAnchored(tree.Sub[0])
	case syntax.OpAlternate:
		return !slices.ContainsFunc(tree.Sub, func(s *syntax.Regexp) bool { return !isAnchored(s) })
	}
	return false
}

func (l *loader) publish(v *Value) *machines.Publish {
	if v == nil {
		return nil
	}
	o := l.object(v, "publish", "topic", "url", "publisher")
	if o == nil {
		return nil
	}
	p := &machines.Publish{Topic: l.topic(o.need("topic")), URL: l.eventURL(o.need("url")), Publisher: machines.DefaultPublisher}
	publisher := o.get("publisher")
	if name, ok := l.text(publisher, "publisher"); ok {
		p.Publisher = bus.ClientName(name)
		if err := p.Publisher.Validate(); err != nil {
			l.Refuse(publisher.Place, "publisher: %s", err)
		}
	}
	return p
}

// clients reads the clients that a machine is for, nil for all.
func (l *loader) clients(v *Value) (clients bus.Clients) {
	if !l.is(v, List, "clients must be a list of names of clients") {
		return nil
	}
	var places []Place
	for _, item := range v.Items {
		if name, ok := l.text(item, "the name of a client"); ok {
			clients, places = append(clients, bus.ClientName(name)), append(places, item.Place)
		}
	}
	clients.Check(func(index int, fault string) {
		place := v.Place
		if index >= 0 {
			place = places[index]
		}
		l.Refuse(place, "clients: %s", fault)
	})
	return clients
}

func (l *loader) topic(v *Value) bus.TopicName {
	name, ok := l.text(v, "topic")
	if err := bus.TopicName(name).Validate(); ok && err != nil {
		l.Refuse(v.Place, "topic: %s", err)
	}
	return bus.TopicName(name)
}

// eventURL reads the template of an event's URL.
func (l *loader) eventURL(v *Value) string {
	source, ok := l.text(v, "url")
	if !ok {
		return ""
	}
	if _, err := bus.ParseHTTPS(withNames(source)); err != nil {
		l.Refuse(v.Place, "the url of an event %s", err)
	} else {
		l.checkHost(v, "the url of an event")
	}
	return source
}

// withNames puts in names where they will be.
func withNames(url string) string {
	return strings.NewReplacer("<label>", "label", "<state_machine>", "machine").Replace(url)
}
