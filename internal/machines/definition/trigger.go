package definition

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // jobs' schedules need it too: a host without zone files knows the same zones

	"routemaster/internal/machines"
)

// triggerKeys are the kinds of triggers, and the further keys that each may have.
var triggerKeys = []struct {
	kind string
	more []string
}{
	{"topic", []string{"label", "metadata", "create"}}, // first: it has metadata, too
	{"metadata", nil},
	{"time", []string{"timezone"}},
	{"interval", nil},
	{"event", nil},
}

const triggerKinds = "metadata, time, interval, event or topic"

// triggers reads the triggers of a gate. No two may have the same name.
func (l *loader) triggers(v *Value) (triggers []machines.Trigger) {
	seen := map[string]bool{}
	for _, item := range l.list(v, "triggers") {
		before := l.Refused()
		t := l.trigger(item)
		if name := t.String(); l.Refused() == before {
			if seen[name] {
				l.Refuse(item.Place, "the gate has two triggers %q: remove one", name)
			}
			seen[name] = true
		}
		triggers = append(triggers, t)
	}
	return triggers
}

// trigger reads a trigger, which is of one kind.
func (l *loader) trigger(v *Value) (t machines.Trigger) {
	if l.mapping(v, "a trigger is a map with one of "+triggerKinds) == nil {
		return t
	}
	for _, k := range triggerKeys {
		if v.At(k.kind) == nil {
			continue
		}
		if !l.oneKind(v, k.kind, k.more) {
			return t
		}
		o := l.object(v, "a trigger with "+k.kind, append([]string{k.kind}, k.more...)...)
		switch given := o.need(k.kind); k.kind {
		case "topic":
			t.Topic = l.topicTrigger(o)
		case "metadata":
			t.Metadata = l.metadataTrigger(given)
		case "time":
			t.TimeOfDay, t.Zone = l.timeOfDay(given), l.zone(o.get("timezone"))
		case "interval":
			t.Interval = l.interval(given)
		case "event":
			t.Entry = l.entry(given)
		}
		return t
	}
	l.Refuse(v.Place, "a trigger needs one of %s", triggerKinds)
	return t
}

// oneKind refuses a trigger of two kinds.
func (l *loader) oneKind(v *Value, kind string, more []string) bool {
	for _, other := range triggerKeys {
		if other.kind != kind && v.At(other.kind) != nil && !slices.Contains(more, other.kind) {
			l.Refuse(v.KeyOf(other.kind).Place, "a trigger has one kind, and this has %s and %s: make two of it", kind, other.kind)
			return false
		}
	}
	return true
}

func (l *loader) metadataTrigger(v *Value) []string {
	path := l.path(v, "metadata")
	if len(path) > 1 && path[0] == "metadata" {
		l.Warn(v.Place, "this is for metadata.%s, since the path of a trigger begins within the metadata: write %s",
			strings.Join(path, "."), strings.Join(path[1:], "."))
	}
	return path
}

func (l *loader) entry(v *Value) bool {
	name, ok := l.text(v, "event")
	if ok && name != "entry" {
		l.Refuse(v.Place, "there is no event %q: event is entry", name)
	}
	return ok
}

var timeOfDay = regexp.MustCompile(`^(\d{1,2})h(\d{2})m$`)

func (l *loader) timeOfDay(v *Value) *machines.TimeOfDay {
	if v == nil || v.Broken {
		return nil
	}
	parts := timeOfDay.FindStringSubmatch(v.Text)
	if parts == nil {
		l.Refuse(v.Place, "time must be hours and minutes, such as 18h30m or 9h05m%s", meantTime(v.Text))
		return nil
	}
	hours, minutes := number10(parts[1]), number10(parts[2])
	if hours > 23 || minutes > 59 {
		l.Refuse(v.Place, "time must be a time of day, from 0h00m to 23h59m")
	}
	t := machines.TimeOfDay(hours*3600 + minutes*60)
	return &t
}

var clockTime = regexp.MustCompile(`^(\d{1,2})[h:](\d{2})m?$`)

// meantTime returns a hint how to write a time of day that is written in another way.
func meantTime(text string) string {
	parts := clockTime.FindStringSubmatch(text)
	if parts == nil {
		return ""
	}
	return fmt.Sprintf(": write %sh%sm", parts[1], parts[2])
}

// number10 is the number that digits of a pattern write, 0 if there are none.
func number10(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// interval has at most five digits each, which a time.Duration has room for.
var interval = regexp.MustCompile(`^(?:(\d{1,5})d)?(?:(\d{1,5})h)?(?:(\d{1,5})m)?$`)

func (l *loader) interval(v *Value) time.Duration {
	if v == nil || v.Broken {
		return 0
	}
	parts := interval.FindStringSubmatch(v.Text)
	if parts == nil || v.Text == "" {
		l.Refuse(v.Place, "interval must be days, hours and minutes in this order, such as 1d2h30m or 20m: at least 1m, without seconds")
		return 0
	}
	minutes := (number10(parts[1])*24+number10(parts[2]))*60 + number10(parts[3])
	if minutes == 0 {
		l.Refuse(v.Place, "interval must be 1m at least")
	}
	return time.Duration(minutes) * time.Minute
}

// zone reads a time zone, or a path to one in the metadata.
func (l *loader) zone(v *Value) (zone machines.Zone) {
	name, ok := l.text(v, "timezone")
	if !ok {
		return zone
	}
	if path, inMetadata := strings.CutPrefix(name, "metadata."); inMetadata {
		zone.Metadata = l.pathBehind(v, "timezone", len(name)-len(path))
		return zone
	}
	location, err := time.LoadLocation(name)
	if err != nil || location == time.Local { // Local is another zone on each host
		l.Refuse(v.Place, "there is no time zone %q: name one of the IANA database, such as Europe/London or UTC, or metadata.path", name)
		return zone
	}
	zone.Location = location
	return zone
}

func (l *loader) topicTrigger(o *object) *machines.TopicTrigger {
	t := &machines.TopicTrigger{Topic: l.topic(o.get("topic"))}
	l.labelOf(t, o.need("label"))
	if at := o.get("metadata"); at != nil {
		t.Metadata = l.path(at, "metadata")
	}
	if create := o.get("create"); create != nil {
		t.Create = l.is(create, Boolean, "create must be true or false") && create.Text == "true"
	}
	return t
}

// labelOf reads where an event of a topic has the name of the label.
func (l *loader) labelOf(t *machines.TopicTrigger, v *Value) {
	o := l.object(orEmpty(v), "label", "url", "data")
	if o == nil || v == nil {
		return
	}
	url, data := o.get("url"), o.get("data")
	if (url == nil) == (data == nil) {
		l.Refuse(v.Place, "label needs one of url, what the URL of events looks like, and data, a path into their data")
		return
	}
	t.LabelURL = l.eventURL(url)
	if url != nil && t.LabelURL != "" && strings.Count(t.LabelURL, "<label>") != 1 {
		l.Refuse(url.Place, "url must have <label> once, as in https://app.example/users/<label>")
	}
	t.LabelPath = l.path(data, "data")
}
