package subscribers

import (
	"encoding/json"
	"iter"
	"strconv"
	"time"

	"routemaster/client/subscriber"
	"routemaster/internal/console/page"
	"routemaster/internal/console/view"
	"routemaster/internal/format"
)

// The pages of what a subscriber has not acknowledged.
const (
	lettersPath = subscriberPath + "/dead-letters"
	letterPath  = lettersPath + "/{letter}"
	batchPath   = subscriberPath + "/batches/{batch}"
)

// maxLetters is how many dead letters one form redelivers or discards, and how many are counted.
const maxLetters = 10_000

// reasons are why the bus gives up on events.
var reasons = []string{"attempts", "age", "refused", "rejected", "removed"}

// lettersPage is what the page of dead letters shows.
type lettersPage struct {
	holder
	Reasons []string
	Reason  string
	Letters []subscriber.Letter
	// Newest is just after the newest letter died, Older just after the last that is shown, in ms;
	// Older is 0 if there are no more.
	Newest, Older int64
}

func loadLetters(v *page.Visit) (any, error) {
	h, err := holderOf(v)
	if err != nil {
		return nil, err
	}
	p := lettersPage{holder: h, Reasons: reasons, Reason: v.Query("reason")}
	letters, more, err := view.First(view.PageSize, h.Letters(v.Context(), letterFilter(v)))
	if err != nil {
		return nil, err
	}
	if p.Letters = letters; len(letters) > 0 {
		p.Newest = letters[0].DiedAt.UnixMilli() + 1
	}
	if more {
		p.Older = letters[len(letters)-1].DiedAt.UnixMilli() + 1
	}
	return p, nil
}

// letterFilter is which letters a URL or a form is about.
func letterFilter(v *page.Visit) (f subscriber.LetterFilter) {
	f.Reason = v.Request.FormValue("reason")
	if before := fieldOf(v, "before"); before > 0 {
		f.Before = time.UnixMilli(before)
	}
	return f
}

// eventsPage is what the page of a dead letter shows, or that of a batch.
type eventsPage struct {
	holder
	Letter subscriber.LetterEvents
	Batch  subscriber.BatchEvents
	// Events are the events as they are delivered, as text, so that no number loses digits.
	Events []string
	// From is the index of the first event, Next that of the first of the next page, or 0.
	From, Next int
}

// Start is the number of the first event shown, from 1 on.
func (p eventsPage) Start() int { return p.From + 1 }

// shownEvents is how many events a page shows.
const shownEvents = 20

func loadLetter(v *page.Visit) (any, error) {
	h, err := holderOf(v)
	if err != nil {
		return nil, err
	}
	p := eventsPage{holder: h, From: max(int(fieldOf(v, "from")), 0)}
	if p.Letter, err = h.Letter(v.Context(), v.Path("letter"), p.From); err != nil {
		return nil, err
	}
	texts := make([]string, len(p.Letter.Events))
	for i, event := range p.Letter.Events {
		texts[i] = view.Indent(event)
	}
	return p.cut(texts), nil
}

func loadBatch(v *page.Visit) (any, error) {
	h, err := holderOf(v)
	if err != nil {
		return nil, err
	}
	p := eventsPage{holder: h, From: max(int(fieldOf(v, "from")), 0)}
	if p.Batch, err = h.Batch(v.Context(), v.Path("batch"), p.From); err != nil {
		return nil, err
	}
	texts := make([]string, len(p.Batch.Events))
	for i, event := range p.Batch.Events {
		text, err := event.MarshalJSON() // json.Marshal would escape <, > and &
		if err != nil {
			return nil, err
		}
		texts[i] = view.Indent(json.RawMessage(text))
	}
	return p.cut(texts), nil
}

// cut takes as many events as a page shows.
func (p eventsPage) cut(texts []string) eventsPage {
	p.Events = texts[:min(len(texts), shownEvents)]
	if len(texts) > shownEvents {
		p.Next = p.From + shownEvents
	}
	return p
}

func askRedeliver(v *page.Visit, h holder) (view.Confirm, error) {
	c, n, err := askMany(v, h, "Redeliver", "/dead_letters/redeliver")
	c.Effects = append(c.Effects, "The queue of "+h.Name+" gets "+view.Plural(n, "event")+", behind what waits.")
	return c, err
}

func askDiscard(v *page.Visit, h holder) (view.Confirm, error) {
	c, n, err := askMany(v, h, "Discard", "/dead_letters/discard")
	c.Effects = append(c.Effects, h.Name+" loses "+view.Plural(n, "event")+" for good.")
	c.Name = nameIfMany(h, int(n))
	return c, err
}

// askMany asks about all letters that match and were there when it is asked, and counts their
// events.
func askMany(v *page.Visit, h holder, verb, path string) (c view.Confirm, events int64, err error) {
	f := letterFilter(v)
	letters, more, err := view.First(maxLetters, h.Letters(v.Context(), f))
	if err != nil {
		return c, 0, err
	}
	for _, l := range letters {
		events += int64(l.Events)
	}
	if f.Before.IsZero() && len(letters) > 0 {
		f.Before = letters[0].DiedAt.Add(time.Millisecond)
	}
	c = view.Confirm{
		Title: verb + " dead letters of " + h.Name, Button: verb + " " + view.Plural(int64(len(letters)), "dead letter") + " of " + h.Name,
		Effects: []string{"What dies from now on is not touched."},
	}
	selection := map[string]any{"all": true}
	if !f.Before.IsZero() {
		c.Hidden = append(c.Hidden, view.Hidden{Name: "before", Value: strconv.FormatInt(f.Before.UnixMilli(), 10)})
		selection["before"] = f.Before.UnixMilli()
	}
	if f.Reason != "" {
		c.Title += " with the reason " + f.Reason
		c.Hidden = append(c.Hidden, view.Hidden{Name: "reason", Value: f.Reason})
		selection["reason"] = f.Reason
	}
	if more {
		c.Effects = append(c.Effects, "There are more: "+format.Count(maxLetters)+" are done at once.")
	}
	c.Command = view.Command("POST", view.Own(v.Root)+path, selection)
	return c, events, nil
}

func redeliver(v *page.Visit, h holder) (string, error) {
	return moved("Redelivered", h.RedeliverLetters(v.Context(), letterFilter(v)))
}

func discard(v *page.Visit, h holder) (string, error) {
	return moved("Discarded", h.DiscardLetters(v.Context(), letterFilter(v)))
}

// moved waits until letters are moved, but for no more than one form may move.
func moved(verb string, progress iter.Seq2[subscriber.Moved, error]) (string, error) {
	var sum subscriber.Moved
	for so, err := range progress {
		if err != nil {
			return "", err
		}
		if sum = so; sum.Letters >= maxLetters {
			break
		}
	}
	text := verb + " " + view.Plural(int64(sum.Letters), "dead letter") + " with " + view.Plural(int64(sum.Events), "event") + "."
	if sum.Remaining > 0 {
		text += " About " + format.Count(int64(sum.Remaining)) + " are left."
	}
	return text, nil
}

func askRedeliverOne(v *page.Visit, h holder) (c view.Confirm, err error) {
	letter, err := h.Letter(v.Context(), v.Path("letter"), 0)
	if err != nil {
		return c, err
	}
	what, _ := eventsOf(len(letter.Events))
	return view.Confirm{
		Title: "Redeliver a dead letter of " + h.Name, Button: "Redeliver " + what + " to " + h.Name,
		Effects: []string{"The queue of " + h.Name + " gets " + what + ", behind what waits."},
		Command: view.Command("POST", view.Own(v.Root)+"/dead_letters"+view.Path(letter.ID)+"/redeliver", nil),
	}, nil
}

func askDiscardOne(v *page.Visit, h holder) (c view.Confirm, err error) {
	letter, err := h.Letter(v.Context(), v.Path("letter"), 0)
	if err != nil {
		return c, err
	}
	what, n := eventsOf(len(letter.Events))
	return view.Confirm{
		Title: "Discard a dead letter of " + h.Name, Button: "Discard " + what + " of " + h.Name, Name: nameIfMany(h, n),
		Effects: []string{h.Name + " loses " + what + " for good."},
		Command: view.Command("DELETE", view.Own(v.Root)+"/dead_letters"+view.Path(letter.ID), nil),
	}, nil
}
