package console

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"routemaster/client/subscriber"
	"routemaster/internal/console/view"
	"routemaster/internal/format"
)

// The pages of dead letters and of batches that are not acknowledged.
const (
	lettersPath = subscriberPath + "/dead-letters"
	letterPath  = lettersPath + "/{letter}"
	batchPath   = subscriberPath + "/batches/{batch}"
)

// reasons are why the bus gives up on events.
var reasons = []string{"attempts", "age", "refused", "rejected", "removed"}

// lettersPage is the data of the page of dead letters.
type lettersPage struct {
	holder
	Reasons []string
	chosen
	Letters []subscriber.Letter
	Count   subscriber.LetterCount
	// Next is where the next page begins; empty if there is none.
	Next string
}

// chosen is which dead letters a page or a form is about, as the URL or the form says.
type chosen struct {
	// TokenID stands for the token of the subscriber, for root.
	TokenID string
	Reason  string
	// Status is as it was typed: a status code of the last answer, or "none".
	Status string
	// Since is as it was typed: see [readTime]. Before is just after the newest letter died that was
	// there when the first page was made, in ms since the Unix epoch; 1 if there was none.
	Since  string
	Before int64
}

// readChosen reads which letters are meant.
func readChosen(v *Visit, h holder) (c chosen, f subscriber.LetterFilter, err error) {
	c = chosen{TokenID: h.ID, Reason: v.Request.FormValue("reason"), Status: v.Request.FormValue("status"),
		Since: v.Request.FormValue("since"), Before: fieldOf(v, "before")}
	f.Reason = c.Reason
	var ok bool
	if f.Status, ok = subscriber.ParseStatus(c.Status); !ok {
		return c, f, Refuse(http.StatusUnprocessableEntity, "/status", "Write a status like 503, or none.")
	}
	if f.Since, err = readTime(c.Since); err != nil {
		return c, f, Refuse(http.StatusUnprocessableEntity, "/since", "Write a time as 2026-11-23 03:12, in UTC.")
	}
	if c.Before == 0 {
		c.Before = 1
		for newest, err := range h.Letters(v.Context(), f) {
			if err != nil {
				return c, f, err
			}
			c.Before = newest.DiedAt.UnixMilli() + 1
			break
		}
	}
	f.Before = time.UnixMilli(c.Before)
	return c, f, nil
}

// Query says the same in a URL.
func (c chosen) Query() string {
	values := url.Values{}
	for name, value := range c.members() {
		values.Set(name, value)
	}
	return "?" + values.Encode()
}

func (c chosen) members() map[string]string {
	members := map[string]string{
		"id": c.TokenID, "reason": c.Reason, "status": c.Status, "since": c.Since, "before": strconv.FormatInt(c.Before, 10),
	}
	maps.DeleteFunc(members, func(_, value string) bool { return value == "" })
	return members
}

func loadLetters(v *Visit) (any, error) {
	h, err := holderOf(v)
	if err != nil {
		return nil, err
	}
	p := lettersPage{holder: h, Reasons: reasons}
	var filter subscriber.LetterFilter
	if p.chosen, filter, err = readChosen(v, h); err != nil {
		return nil, err
	}
	listed, err := h.LetterPage(v.Context(), filter, v.Query("after"), view.PageSize)
	if err != nil {
		return nil, err
	}
	p.Letters, p.Next = listed.Letters, listed.Next
	p.Count, err = h.CountLetters(v.Context(), filter)
	return p, err
}

// eventsPage is the data of a dead letter's or a batch's page.
type eventsPage struct {
	holder
	Letter subscriber.LetterEvents
	Batch  subscriber.BatchEvents
	// Events are the events as they are delivered, as text, so that no number loses digits.
	Events []string
	// From is the index of the first event, Next the first index of the next page, or 0.
	From, Next int
}

// Start is the number of the first event shown, from 1 on.
func (p eventsPage) Start() int { return p.From + 1 }

// shownEvents is how many events a page shows.
const shownEvents = 20

func loadLetter(v *Visit) (any, error) {
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

func loadBatch(v *Visit) (any, error) {
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

// amounts are how many letters one form redelivers at once. A service that was down for long may
// not take all of them as fast as the bus sends them.
var amounts = []view.Option{
	{Value: "", Label: "all of them at once"}, {Value: "100", Label: "the 100 oldest now"},
	{Value: "1000", Label: "the 1,000 oldest now"},
}

func askRedeliver(v *Visit, h holder) (view.Confirm, error) {
	c, n, err := askMany(v, h, "Redeliver", "/dead_letters/redeliver")
	c.Effects = append(c.Effects, "The queue of "+h.Name+" gets "+n.text()+", behind what waits.", paceOf(h))
	c.Choose = &view.Select{Name: "amount", Label: "How many", Options: amounts, Value: v.Form("amount")}
	return c, err
}

// paceOf says how fast queued events are sent.
func paceOf(h holder) string {
	switch i := h.Info; {
	case i.MaxEventsPerMinute > 0:
		return "They are sent at its pace: " + format.Plural(int64(i.MaxEventsPerMinute), "event") + " a minute at most."
	case i.MaxRequestsPerMinute > 0:
		return "They are sent at its pace: " + format.Count(int64(i.MaxRequestsPerMinute)) + " deliveries a minute at most."
	}
	return "They are sent as fast as " + h.Name + " takes them, since its settings have no pace."
}

func askDiscard(v *Visit, h holder) (view.Confirm, error) {
	c, n, err := askMany(v, h, "Discard", "/dead_letters/discard")
	c.Effects = append(c.Effects, h.Name+" loses "+n.text()+" for good.")
	if n.letters > view.ManyEvents || n.events > view.ManyEvents {
		c.Name = h.Name
	}
	return c, err
}

// amount is how many letters there are. Their events are 0 if they are not known.
type amount struct{ letters, events int64 }

func (a amount) text() string {
	if a.events == 0 {
		return "the events of " + format.Plural(a.letters, "dead letter")
	}
	return format.Plural(a.events, "event")
}

// maxMoved is how many dead letters one form redelivers or discards.
const maxMoved = 10_000

// askMany asks about all letters that match and were there when the list was made, and counts them.
func askMany(v *Visit, h holder, verb, path string) (c view.Confirm, n amount, err error) {
	chosen, filter, err := readChosen(v, h)
	if err != nil {
		return c, n, err
	}
	count, err := h.CountLetters(v.Context(), filter)
	if err != nil {
		return c, n, err
	}
	if n, err = eventsIn(v, h, filter, count); err != nil {
		return c, n, err
	}
	c = view.Confirm{
		Title: verb + " dead letters of " + h.Name, Button: verb + " " + format.Plural(min(n.letters, maxMoved), "dead letter") + " of " + h.Name,
		Effects: []string{"What dies from now on is not touched."},
	}
	if chosen.Reason != "" {
		c.Title += " with the reason " + chosen.Reason
	}
	switch filter.Status {
	case 0:
	case subscriber.NoAnswer:
		c.Title += " that got no answer"
	default:
		c.Title += " whose last answer was " + strconv.Itoa(filter.Status)
	}
	if n.letters > maxMoved || count.More {
		c.Effects = append(c.Effects, "There are more than these: one request of this page is for "+format.Count(maxMoved)+", the oldest first.")
	}
	body := map[string]any{"all": true}
	for name, value := range chosen.members() {
		if name != "id" { // which the question adds by itself
			c.Hidden = append(c.Hidden, view.Hidden{Name: name, Value: value})
		}
	}
	slices.SortFunc(c.Hidden, func(a, b view.Hidden) int { return strings.Compare(a.Name, b.Name) })
	if filter.Reason != "" {
		body["reason"] = filter.Reason
	}
	if filter.Status != 0 {
		body["status"] = max(filter.Status, 0)
	}
	for name, at := range map[string]time.Time{"since": filter.Since, "before": filter.Before} {
		if !at.IsZero() {
			body[name] = at.UnixMilli()
		}
	}
	c.Command = view.Command("POST", h.path(v.Root)+path, body)
	return c, n, nil
}

// eventsIn counts the events of letters that are few, or all that there are.
func eventsIn(v *Visit, h holder, filter subscriber.LetterFilter, count subscriber.LetterCount) (n amount, err error) {
	n.letters = count.Letters
	if all := h.Info.Status.DeadLetters; count.Letters == all.Letters {
		n.events = all.Events
	}
	if count.Letters == 0 || count.Letters > view.ManyEvents {
		return n, nil
	}
	n.events = 0
	for letter, err := range h.Letters(v.Context(), filter) {
		if err != nil {
			return n, err
		}
		n.events += int64(letter.Events)
	}
	return n, nil
}

func redeliver(v *Visit, h holder) (string, error) {
	limit := fieldOf(v, "amount")
	return moved(v, h, "Redelivered", h.RedeliverLetters, limit)
}

func discard(v *Visit, h holder) (string, error) {
	return moved(v, h, "Discarded", h.DiscardLetters, 0)
}

// moved moves letters, 100 a request, until there are as many as the limit, if there is one, or as
// one form may move.
func moved(
	v *Visit, h holder, verb string, move func(context.Context, subscriber.LetterFilter) iter.Seq2[subscriber.Moved, error], limit int64,
) (string, error) {
	_, filter, err := readChosen(v, h)
	if err != nil {
		return "", err
	}
	if limit <= 0 || limit > maxMoved {
		limit = maxMoved
	}
	var sum subscriber.Moved
	for so, err := range move(v.Context(), filter) {
		if err != nil {
			return "", err
		}
		if sum = so; int64(sum.Letters) >= limit {
			break
		}
	}
	text := verb + " " + format.Plural(int64(sum.Letters), "dead letter") + " with " + format.Plural(int64(sum.Events), "event") + "."
	if sum.Remaining > 0 {
		text += " About " + format.Count(int64(sum.Remaining)) + " are left."
	}
	return text, nil
}

func askRedeliverOne(v *Visit, h holder) (c view.Confirm, err error) {
	letter, err := h.Letter(v.Context(), v.Path("letter"), 0)
	if err != nil {
		return c, err
	}
	what, _ := eventsOf(len(letter.Events))
	return view.Confirm{
		Title: "Redeliver a dead letter of " + h.Name, Button: "Redeliver " + what + " to " + h.Name,
		Effects: []string{"The queue of " + h.Name + " gets " + what + ", behind what waits."},
		Command: view.Command("POST", h.path(v.Root)+"/dead_letters"+view.Path(letter.ID)+"/redeliver", nil),
	}, nil
}

func askDiscardOne(v *Visit, h holder) (c view.Confirm, err error) {
	letter, err := h.Letter(v.Context(), v.Path("letter"), 0)
	if err != nil {
		return c, err
	}
	what, n := eventsOf(len(letter.Events))
	return view.Confirm{
		Title: "Discard a dead letter of " + h.Name, Button: "Discard " + what + " of " + h.Name, Name: nameIfMany(h, n),
		Effects: []string{h.Name + " loses " + what + " for good."},
		Command: view.Command("DELETE", h.path(v.Root)+"/dead_letters"+view.Path(letter.ID), nil),
	}, nil
}
