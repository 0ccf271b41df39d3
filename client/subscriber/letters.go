package subscriber

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Letter is a dead letter: events that the bus has given up on. It has the JSON of the bus's GET
// /subscriber/dead_letters, without nulls.
type Letter struct {
	ID string `json:"id"`
	// DiedAt is when the bus gave up, CreatedAt when the first event of the batch came.
	DiedAt    Time `json:"died_at"`
	CreatedAt Time `json:"created_at"`
	// Reason is "attempts", "age", "refused", "rejected" or "removed".
	Reason string `json:"reason"`
	// Status is the HTTP status of the endpoint's last response; 0 if there was none. Error says why.
	Status int    `json:"status,omitzero"`
	Error  string `json:"error,omitzero"`
	// Note is the note of the endpoint's receipt.
	Note string `json:"note,omitzero"`
	// Attempts is how often the batch was tried.
	Attempts int `json:"attempts"`
	// Events is how many events there are, Bytes their size, packed.
	Events int `json:"events"`
	Bytes  int `json:"bytes"`
	// WebhookID stands for the content.
	WebhookID string `json:"webhook_id,omitzero"`
}

// LetterEvents is a dead letter with events of it. It has the JSON of the bus's GET
// /subscriber/dead_letters/{id}, which leaves out the number of events.
type LetterEvents struct {
	Letter
	// Events are in the JSON of deliveries. An event that the bus cannot read is {"unreadable":true}.
	Events []json.RawMessage `json:"events"`
}

// LetterFilter selects dead letters. An empty field selects all.
type LetterFilter struct {
	Reason string
	// Status is the HTTP status of the endpoint's last response; [NoAnswer] if there was none.
	Status int
	// Since and Before bound the time of death: not before Since, and before Before.
	Since, Before time.Time
}

// NoAnswer is the status of a [LetterFilter] that means letters whose last attempt got no answer.
const NoAnswer = -1

// ParseStatus reads the status of a [LetterFilter] as people write it: 1 to 999, "none" for
// [NoAnswer], or nothing, which is 0.
func ParseStatus(text string) (status int, ok bool) {
	switch text = strings.ToLower(strings.TrimSpace(text)); text {
	case "":
		return 0, true
	case "none":
		return NoAnswer, true
	}
	status, err := strconv.Atoi(text)
	return status, err == nil && status >= 1 && status <= 999
}

// Letters yields the dead letters of the subscriber, newest first. An error is the last value that
// it yields.
func (s *Subscriber) Letters(ctx context.Context, f LetterFilter) iter.Seq2[Letter, error] {
	return pages[Letter](ctx, s, "list dead letters", "/dead_letters", f.query())
}

// LetterPage is a part of the list of dead letters, newest first.
type LetterPage struct {
	Letters []Letter
	// Next is where the next page begins, empty after the last.
	Next string
}

// LetterPage returns a page of up to limit dead letters, 1 to 100. The page begins at after,
// another page's Next; at the newest letter if after is empty. With a Reason or a Status it may
// have fewer, or none, before the last.
func (s *Subscriber) LetterPage(ctx context.Context, f LetterFilter, after string, limit int) (p LetterPage, err error) {
	query := f.query()
	if after != "" {
		query.Set("after", after)
	}
	p.Letters, p.Next, err = readPage[Letter](ctx, s, "list dead letters", "/dead_letters", query, limit)
	return p, err
}

// LetterCount is the number of dead letters among the ones examined.
type LetterCount struct {
	Letters int64 `json:"letters"`
	// More is whether there are others, not examined.
	More bool `json:"more"`
}

// CountLetters counts dead letters. With a Reason or a Status it examines the 10,000 oldest.
func (s *Subscriber) CountLetters(ctx context.Context, f LetterFilter) (count LetterCount, err error) {
	path := "/dead_letters/count"
	if query := f.query(); len(query) > 0 {
		path += "?" + query.Encode()
	}
	err = s.call(ctx, "count dead letters", http.MethodGet, path, nil, &count)
	return count, err
}

func (f LetterFilter) query() url.Values {
	query := url.Values{}
	if f.Reason != "" {
		query.Set("reason", f.Reason)
	}
	if status := f.status(); status != nil {
		query.Set("status", strconv.Itoa(*status))
	}
	for name, at := range map[string]time.Time{"since": f.Since, "before": f.Before} {
		if !at.IsZero() {
			query.Set(name, strconv.FormatInt(at.UnixMilli(), 10))
		}
	}
	return query
}

// status is the status as the bus reads it: 0 for no answer, nil for any.
func (f LetterFilter) status() *int {
	if f.Status == 0 {
		return nil
	}
	return new(max(f.Status, 0))
}

// Letter returns a dead letter of the subscriber with its events from an index on, at most 1,000:
// 404 if there is none.
func (s *Subscriber) Letter(ctx context.Context, id string, from int) (l LetterEvents, err error) {
	path := eventsFrom("/dead_letters/"+url.PathEscape(id), from)
	err = s.call(ctx, "show a dead letter", http.MethodGet, path, nil, &l)
	return l, err
}

// Moved is how many dead letters were redelivered or discarded, and how many events were in them.
type Moved struct {
	Letters int `json:"letters"`
	Events  int `json:"events"`
	// Remaining is about how many letters are left to do.
	Remaining int `json:"remaining"`
}

// RedeliverLetters puts dead letters of the subscriber back into its queue, behind the batches
// there. Each request moves up to 100 letters; after each, RedeliverLetters yields the sums so far.
// The last has no letters remaining. Letters that die meanwhile, redelivered ones included, are not
// moved again, so it ends. An error is the last value that it yields; the letters moved before it
// stay moved.
func (s *Subscriber) RedeliverLetters(ctx context.Context, f LetterFilter) iter.Seq2[Moved, error] {
	return s.moveAll(ctx, "redeliver dead letters", "/dead_letters/redeliver", f)
}

// DiscardLetters removes dead letters of the subscriber for good, as [Subscriber.RedeliverLetters]
// redelivers them.
func (s *Subscriber) DiscardLetters(ctx context.Context, f LetterFilter) iter.Seq2[Moved, error] {
	return s.moveAll(ctx, "discard dead letters", "/dead_letters/discard", f)
}

func (s *Subscriber) moveAll(ctx context.Context, operation, path string, f LetterFilter) iter.Seq2[Moved, error] {
	return func(yield func(Moved, error) bool) {
		end, err := s.endOfLetters(ctx, f)
		if err != nil || end.IsZero() {
			yield(Moved{}, err)
			return
		}
		selection := struct {
			All    bool   `json:"all"`
			Reason string `json:"reason,omitempty"`
			Status *int   `json:"status,omitempty"`
			Since  Time   `json:"since,omitzero"`
			Before Time   `json:"before"`
		}{true, f.Reason, f.status(), Time{Time: f.Since}, Time{Time: end}}
		for sum := (Moved{}); ; {
			var moved Moved
			err := s.call(ctx, operation, http.MethodPost, path, selection, &moved)
			sum = Moved{sum.Letters + moved.Letters, sum.Events + moved.Events, moved.Remaining}
			if !yield(sum, err) || err != nil || moved.Remaining == 0 {
				return
			}
		}
	}
}

// endOfLetters is just after the last of some dead letters died, by the clock of the bus; zero if
// there are none.
func (s *Subscriber) endOfLetters(ctx context.Context, f LetterFilter) (end time.Time, err error) {
	for newest, err := range s.Letters(ctx, f) {
		if err != nil {
			return end, err
		}
		return newest.DiedAt.Add(time.Millisecond), nil
	}
	return end, nil
}

// RedeliverLetter puts one dead letter of the subscriber back into its queue: 404 if there is none.
func (s *Subscriber) RedeliverLetter(ctx context.Context, id string) error {
	return s.call(ctx, "redeliver a dead letter", http.MethodPost, "/dead_letters/"+url.PathEscape(id)+"/redeliver", nil, nil)
}

// DiscardLetter removes one dead letter of the subscriber for good: 404 if there is none.
func (s *Subscriber) DiscardLetter(ctx context.Context, id string) error {
	return s.call(ctx, "discard a dead letter", http.MethodDelete, "/dead_letters/"+url.PathEscape(id), nil, nil)
}
