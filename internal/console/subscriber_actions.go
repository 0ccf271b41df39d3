package console

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"routemaster/client/subscriber"
	"routemaster/internal/console/view"
	"routemaster/internal/format"
)

// subscriberAction is a question about a subscriber.
type subscriberAction struct {
	// path is relative to the subscriber's page, calls to the subscriber's route of the API.
	path, calls string
	ask         func(*Visit, holder) (view.Confirm, error)
	// do returns the message to show.
	do func(*Visit, holder) (string, error)
	// back is the page to go to afterwards, by default the subscriber's.
	back string
}

// subscriberPath is the page of a subscriber.
const subscriberPath = "subscribers/{subscriber}"

func (a subscriberAction) page() Page {
	method, below, _ := strings.Cut(a.calls, " ")
	return Question{
		Path: subscriberPath + "/" + a.path, Calls: method + " /subscriber" + below, For: Members, Back: subscriberPath,
		Ask: func(v *Visit) (view.Confirm, error) {
			h, err := holderOf(v)
			if err != nil {
				return view.Confirm{}, err
			}
			c, err := a.ask(v, h)
			if h.ID != "" {
				c.Hidden = append(c.Hidden, view.Hidden{Name: "id", Value: h.ID})
			}
			return c, err
		},
		Do: func(v *Visit) (Answer, error) {
			h, err := holderOf(v)
			if err != nil {
				return Answer{}, err
			}
			message, err := a.do(v, h)
			if err != nil {
				return Answer{}, err
			}
			to := cmp.Or(a.back, subscriberPath)
			answer := SeeOther(message, to, v.Names(to)...)
			if to == lettersPath { // they are of one token
				answer.Query = h.TokenQuery()
			}
			return answer, nil
		},
	}.Page()
}

// subscriberActions are the actions on a subscriber, except its settings and replays.
var subscriberActions = []subscriberAction{
	{path: "pause", calls: "POST /pause", ask: askPause, do: pause},
	{path: "resume", calls: "POST /resume", ask: askResume, do: func(v *Visit, h holder) (string, error) {
		return "Resumed " + h.Name + ".", h.Resume(v.Context())
	}},
	{path: "retry", calls: "POST /retry", ask: askRetry, do: func(v *Visit, h holder) (string, error) {
		return "Trying " + h.Name + " now. What comes of it is among the last attempts in a moment.", h.Retry(v.Context())
	}},
	{path: "test", calls: "POST /test", ask: askTest, do: func(v *Visit, h holder) (string, error) {
		_, err := h.Test(v.Context())
		return "Sent a test event to " + h.Name + ". What came of it is among the last attempts in a moment.", err
	}},
	{path: "topics/{topic}/unsubscribe", calls: "DELETE /topics/{topic}", ask: askUnsubscribe, do: func(v *Visit, h holder) (string, error) {
		return "Unsubscribed " + h.Name + " from " + v.Path("topic") + ".", h.Unsubscribe(v.Context(), v.Path("topic"))
	}},
	{path: "delete", calls: "DELETE ", ask: askDelete, back: "subscribers", do: func(v *Visit, h holder) (string, error) {
		return "Deleted the subscriber " + h.Name + ".", h.Delete(v.Context())
	}},
	{path: "batches/{batch}/remove", calls: "DELETE /batches/{id}", ask: askRemoveBatch, do: func(v *Visit, h holder) (string, error) {
		return "Removed a batch of " + h.Name + ".", h.RemoveBatch(v.Context(), v.Path("batch"))
	}},
	{path: "replays/{replay}/cancel", calls: "DELETE /replays/{id}", ask: askCancelReplay, do: func(v *Visit, h holder) (string, error) {
		return "Stopped a replay to " + h.Name + ".", h.CancelReplay(v.Context(), v.Path("replay"))
	}},
	{path: "dead-letters/redeliver", calls: "POST /dead_letters/redeliver", ask: askRedeliver, do: redeliver, back: lettersPath},
	{path: "dead-letters/discard", calls: "POST /dead_letters/discard", ask: askDiscard, do: discard, back: lettersPath},
	{path: "dead-letters/{letter}/redeliver", calls: "POST /dead_letters/{id}/redeliver", ask: askRedeliverOne, back: lettersPath, do: func(v *Visit, h holder) (string, error) {
		return "Put a dead letter back into the queue of " + h.Name + ".", h.RedeliverLetter(v.Context(), v.Path("letter"))
	}},
	{path: "dead-letters/{letter}/discard", calls: "DELETE /dead_letters/{id}", ask: askDiscardOne, back: lettersPath, do: func(v *Visit, h holder) (string, error) {
		return "Discarded a dead letter of " + h.Name + ".", h.DiscardLetter(v.Context(), v.Path("letter"))
	}},
}

// pauses are for how long one may pause.
var pauses = []view.Option{
	{Value: "", Label: "until somebody resumes it"}, {Value: "15m", Label: "15 minutes"}, {Value: "1h", Label: "an hour"},
	{Value: "8h", Label: "8 hours"}, {Value: "24h", Label: "a day"},
}

func askPause(v *Visit, h holder) (view.Confirm, error) {
	return view.Confirm{
		Title: "Pause " + h.Name, Button: "Pause " + h.Name,
		Effects: []string{
			"Nothing is delivered to " + h.Name + " until it is resumed, but what is in flight. Its events wait.",
			"If Redis becomes nearly full, the client that has most queued loses its oldest events: a paused one may be that.",
		},
		Choose:  &view.Select{Name: "for", Label: "For how long", Options: pauses, Value: v.Form("for")},
		Command: view.Command("POST", h.path(v.Root)+"/pause", nil),
	}, nil
}

func pause(v *Visit, h holder) (string, error) {
	text := v.Form("for")
	if text == "" {
		return "Paused " + h.Name + " until somebody resumes it.", h.Pause(v.Context(), time.Time{})
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return "", Refuse(http.StatusUnprocessableEntity, "/for", "Choose one of the times.")
	}
	return "Paused " + h.Name + " for " + format.Brief(d) + ".", h.Pause(v.Context(), v.Now().Add(d))
}

func askResume(v *Visit, h holder) (view.Confirm, error) {
	return view.Confirm{
		Title: "Resume " + h.Name, Button: "Resume " + h.Name,
		Effects: []string{"Deliveries go on. " + format.Plural(h.Info.Status.Queued, "event") + " queued."},
		Command: view.Command("POST", h.path(v.Root)+"/resume", nil),
	}, nil
}

func askRetry(v *Visit, h holder) (view.Confirm, error) {
	return view.Confirm{
		Title: "Try " + h.Name + " now", Button: "Try " + h.Name + " now",
		Effects: []string{
			"The next delivery to " + h.Name + " is tried at once, and does not wait for its next turn. " + format.Plural(h.Info.Status.Queued, "event") + " queued.",
			"If it fails, it counts as every failure does.",
		},
		Command: view.Command("POST", h.path(v.Root)+"/retry", nil),
	}, nil
}

func askTest(v *Visit, h holder) (view.Confirm, error) {
	return view.Confirm{
		Title: "Send a test event to " + h.Name, Button: "Send a test event to " + h.Name,
		Effects: []string{"It goes to " + h.Info.Callback + " at once, and only once, whatever waits."},
		Command: view.Command("POST", h.path(v.Root)+"/test", nil),
	}, nil
}

func askUnsubscribe(v *Visit, h holder) (c view.Confirm, err error) {
	topic := v.Path("topic")
	if !slices.Contains(h.Info.Topics, topic) {
		return c, Refuse(http.StatusNotFound, "", h.Name+" is not subscribed to "+topic+".")
	}
	title := "Unsubscribe " + h.Name + " from " + topic
	return view.Confirm{
		Title: title, Button: title,
		Effects: []string{
			h.Name + " gets no event of " + topic + " that is published from now on. What waits is delivered.",
			"Services subscribe anew when they start: the next start of " + h.Name + " may overrule this.",
		},
		Command: view.Command("DELETE", h.tokenPath(v.Root)+"/topics"+view.Path(topic), nil),
	}, nil
}

func askDelete(v *Visit, h holder) (view.Confirm, error) {
	s := h.Info.Status
	c := view.Confirm{
		Title: "Delete the subscriber " + h.Name, Button: "Delete " + h.Name, Name: h.Name,
		Effects: []string{h.Name + " is unsubscribed from " + format.Plural(int64(len(h.Info.Topics)), "topic") + ". Its token stays good."},
		Command: view.Command("DELETE", h.tokenPath(v.Root), nil),
	}
	if s.Queued > 0 {
		c.Button += " and drop " + format.Plural(s.Queued, "event")
		c.Effects = append(c.Effects, "It loses its queue of "+format.Plural(s.Queued, "event")+".")
	}
	if s.DeadLetters.Letters > 0 {
		c.Effects = append(c.Effects, "It loses "+format.Plural(s.DeadLetters.Letters, "dead letter")+", with "+format.Plural(s.DeadLetters.Events, "event")+".")
	}
	return c, nil
}

func askRemoveBatch(v *Visit, h holder) (c view.Confirm, err error) {
	batch, err := h.Batch(v.Context(), v.Path("batch"), 0)
	if err != nil {
		return c, err
	}
	fate := "They are lost."
	if h.Info.DeadLetters != nil {
		fate = "They become a dead letter."
	}
	what, n := eventsOf(len(batch.Events))
	return view.Confirm{
		Title: "Remove a batch of " + h.Name, Button: "Remove " + what + " of " + h.Name, Name: nameIfMany(h, n),
		Effects: []string{"The queue of " + h.Name + " loses " + what + ". " + fate},
		Command: view.Command("DELETE", h.path(v.Root)+"/batches"+view.Path(batch.ID), nil),
	}, nil
}

func askCancelReplay(v *Visit, h holder) (c view.Confirm, err error) {
	all, err := h.Replays(v.Context())
	if err != nil {
		return c, err
	}
	i := slices.IndexFunc(all, func(r subscriber.Replay) bool { return r.ID == v.Path("replay") })
	if i < 0 {
		return c, Refuse(http.StatusNotFound, "", "There is no such replay.")
	}
	return view.Confirm{
		Title: "Stop the replay of " + all[i].Topic + " to " + h.Name, Button: "Stop the replay to " + h.Name,
		Effects: []string{"The queue got " + format.Plural(all[i].Copied, "event") + " so far. These are delivered, and nothing more is."},
		Command: view.Command("DELETE", h.path(v.Root)+"/replays"+view.Path(all[i].ID), nil),
	}, nil
}

// nameIfMany returns the name, which must be typed before many events are lost; empty for few.
func nameIfMany(h holder, events int) string {
	if events > view.ManyEvents {
		return h.Name
	}
	return ""
}

// maxRead is how many events of a batch or a dead letter one request of the API reads.
const maxRead = 1000

// eventsOf describes the number of events, of which one request has read as many as it may.
func eventsOf(read int) (text string, n int) {
	if read >= maxRead {
		return format.Count(maxRead) + " or more events", read
	}
	return format.Plural(int64(read), "event"), read
}

// fieldOf is an integer of the URL or the form, 0 if it is none.
func fieldOf(v *Visit, name string) int64 {
	n, err := strconv.ParseInt(v.Request.FormValue(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
