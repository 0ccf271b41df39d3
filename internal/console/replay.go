package console

import (
	"errors"
	"net/http"
	"time"

	"routemaster/client"
	"routemaster/client/history"
	"routemaster/client/subscriber"
	"routemaster/internal/bus"
	"routemaster/internal/console/view"
	"routemaster/internal/format"
	"routemaster/internal/overview"
)

// replayPath is the page that starts a replay.
const replayPath = subscriberPath + "/replay"

// replayPage is the data of the replay page: first a form that counts, then one that replays the
// counted events.
type replayPage struct {
	holder
	view.Form
	// Counted is nil until something was.
	Counted *counted
	Command string
}

// counted is a part of a topic's history.
type counted struct {
	Topic string
	// From and To are the positions of its first and last event, Events is how many there are.
	From, To, Events int64
	// Bytes is about how many these are, from the mean of the history. Takes is how long the bus takes
	// to deliver them at the subscriber's present rate; 0 if nothing is delivered now.
	Bytes int64
	Takes time.Duration
}

func replayForm(v *Visit, h holder) view.Form {
	f := view.Form{Fields: []view.Field{
		{Name: "topic", Label: "Topic", Kind: view.Choice, Choices: h.Info.Topics, Value: v.Query("topic"), Hint: "One that it is subscribed to, and that keeps a history."},
		{Name: "since", Label: "Received since", Kind: view.Text, Hint: "In UTC, as 2026-11-23 03:12. Empty is the oldest event that is kept."},
		{Name: "until", Label: "Received until", Kind: view.Text, Hint: "Likewise. Empty is the newest event."},
	}}
	f.Fill(v.Request.URL.Query())
	v.Fill(&f)
	return f
}

func loadReplay(v *Visit) (any, error) {
	h, err := holderOf(v)
	if err != nil {
		return nil, err
	}
	p := replayPage{holder: h, Form: replayForm(v, h)}
	p.Command = view.Command(http.MethodPost, h.path(v.Root)+"/replays", map[string]any{"topic": "widgets"})
	if v.Request.Method == http.MethodPost || !v.Request.URL.Query().Has("since") {
		return p, nil
	}
	c, err := count(v, h, p.Form)
	if refused, ok := errors.AsType[*client.Error](err); ok {
		p.Form = p.With(refused)
		return p, nil
	}
	p.Counted = &c
	p.Command = view.Command(http.MethodPost, h.path(v.Root)+"/replays", map[string]any{"topic": c.Topic, "from": c.From, "to": c.To})
	return p, err
}

// count finds the part of a history that a form is about.
func count(v *Visit, h holder, f view.Form) (c counted, err error) {
	var since, until time.Time
	for name, at := range map[string]*time.Time{"since": &since, "until": &until} {
		if *at, err = readTime(f.Value(name)); err != nil {
			return c, Refuse(http.StatusUnprocessableEntity, "/"+name, "Write a time as 2026-11-23 03:12, in UTC.")
		}
	}
	c.Topic = f.Value("topic")
	kept := history.Of(v.Bus, c.Topic)
	info, err := kept.Get(v.Context())
	if HasStatus(err, http.StatusNotFound) {
		return c, Refuse(http.StatusConflict, "/topic", "It keeps no history.")
	}
	if err != nil {
		return c, err
	}
	c.From, c.To = info.First, info.Last
	if !since.IsZero() {
		if c.From, err = positionAt(v, kept, since, info.Last+1); err != nil {
			return c, err
		}
	}
	if !until.IsZero() {
		after, err := positionAt(v, kept, until.Add(time.Millisecond), info.Last+1)
		if err != nil {
			return c, err
		}
		c.To = after - 1
	}
	if c.Events = c.To - c.From + 1; c.Events <= 0 {
		return c, Refuse(http.StatusConflict, "", "The history has no event of this time.")
	}
	if info.StoredEvents > 0 {
		c.Bytes = info.StoredBytes / info.StoredEvents * c.Events
	}
	c.Takes = takes(v.Figures, h.Name, c.Events)
	return c, nil
}

// positionAt is the position of the first event received at a time or later, or the fallback if
// there is none.
func positionAt(v *Visit, kept *history.History, at time.Time, fallback int64) (int64, error) {
	found, err := kept.Read(v.Context(), history.Start{Since: at}, 1)
	if err != nil || len(found.Events) == 0 {
		return fallback, err
	}
	return found.Events[0].Position, nil
}

// takes is how long a subscriber takes for some events and for its queue, at its present rate.
func takes(f overview.Figures, name string, events int64) time.Duration {
	for _, s := range f.Subscribers {
		if s.Name == name && s.Rate != nil && *s.Rate > 0 {
			return time.Duration(float64(events+s.Queued) / *s.Rate * float64(time.Second))
		}
	}
	return 0
}

// Many says how many events there are.
func (c counted) Many() string { return format.Plural(c.Events, "event") }

// Long says how long it takes.
func (c counted) Long() string { return format.Brief(c.Takes.Round(time.Second)) }

func submitReplay(v *Visit) (answer Answer, err error) {
	h, err := holderOf(v)
	if err != nil {
		return answer, err
	}
	f := replayForm(v, h)
	of := subscriber.ReplayRange{From: fieldOf(v, "from"), To: fieldOf(v, "to")}
	if of.To == 0 {
		if _, err := count(v, h, f); err != nil {
			return answer, err
		}
		return answer, Refuse(http.StatusUnprocessableEntity, "", "Count the events first.")
	}
	started, err := h.StartReplay(v.Context(), f.Value("topic"), of)
	if err != nil {
		return answer, err
	}
	return SeeOther("Replaying "+format.Plural(started.Events, "event")+" of "+started.Topic+" to "+h.Name+".", subscriberPath, h.Name), nil
}

// errBeforeEpoch says that a time is before any that the bus has.
var errBeforeEpoch = errors.New("a time before 1970")

// readTime reads a time. Empty is the zero time.
func readTime(text string) (at time.Time, err error) {
	if text == "" {
		return at, nil
	}
	at, err = parseTime(text)
	if err == nil && at.Unix() < 0 {
		err = errBeforeEpoch
	}
	return at, err
}

// parseTime parses a time as in RFC 3339 or, in UTC, to the day, the minute or the second.
func parseTime(text string) (at time.Time, err error) {
	if at, ok := bus.ParseTime(text); ok {
		return at, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime} {
		if at, err = time.Parse(layout, text); err == nil {
			break
		}
	}
	return at, err
}
