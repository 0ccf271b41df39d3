package overview

import (
	"fmt"
	"time"

	"routemaster/internal/bus"
)

// Problems of a subscriber.

// drains says that the queue drains when a subscriber responds again.
const drains = "When it answers, all that waits follows at once."

func gone(j *judge, _ rule) []Problem {
	return j.subscribers(in(Gone), func(sub Subscriber) Problem {
		return Problem{
			Title: sub.Name + " wants no more events.",
			Detail: sentences("It answers 410 Gone.", waits(sub),
				"The bus does not unsubscribe it, and tries it once a minute at most. Correct its endpoint, or delete the subscriber."),
			Since: j.nothingSince(sub),
		}
	})
}

// nothingSince returns since when a subscriber has acknowledged no event, though events waited.
func (j *judge) nothingSince(sub Subscriber) Time {
	return j.since(Subject{Subscriber: sub.Name}, 0, takesNothing)
}

func stalled(j *judge, r rule) []Problem {
	return j.subscribers(in(Stalled), func(sub Subscriber) Problem {
		since, took := j.nothingSince(sub), r.Over
		if !since.IsZero() {
			took = max(j.At.Sub(since.Time), took)
		}
		return Problem{
			Title:  fmt.Sprintf("%s has taken nothing for %s.", sub.Name, spanOf(took)),
			Detail: sentences(waits(sub), failure(sub), j.tries(sub), drains), Since: since,
		}
	})
}

// tries says when a subscriber was tried, and when it will be.
func (j *judge) tries(sub Subscriber) string {
	if sub.SinceAttempt == nil {
		return ""
	}
	text := "It was tried " + span(*sub.SinceAttempt) + " ago"
	if next := sub.HoldUntil.Sub(j.At); sub.Hold == Throttled && next > 0 {
		text += ", and will be again in " + spanOf(next)
	}
	return text + "."
}

func noHealth(j *judge, r rule) []Problem {
	none := is(Health, func(points float32) bool { return points == 0 })
	has := func(sub Subscriber) bool {
		if sub.Health != 0 || sub.State == PausedState {
			return false
		}
		long, _ := j.fast(Subject{Subscriber: sub.Name}).all(r.Over, none)
		return long
	}
	return j.subscribers(has, func(sub Subscriber) Problem {
		return Problem{
			Title:  sub.Name + " has no health points left.",
			Detail: sentences(failure(sub), waits(sub), j.tries(sub), "Each success adds to its health."),
			Since:  j.since(Subject{Subscriber: sub.Name}, 0, none),
		}
	})
}

func failing(j *judge, _ rule) []Problem {
	return j.subscribers(in(Failing), func(sub Subscriber) Problem {
		return Problem{
			Title:  sub.Name + " fails.",
			Detail: sentences(failure(sub), waits(sub), j.tries(sub), drains),
			Since:  j.nothingSince(sub),
		}
	})
}

func behind(j *judge, r rule) []Problem {
	old := is(Oldest, func(age float32) bool { return float64(age) > r.Above })
	return j.subscribers(in(Behind), func(sub Subscriber) Problem {
		rate := ""
		if sub.Rate != nil {
			rate = "It acknowledges " + perSecond(*sub.Rate) + "."
		}
		return Problem{
			Title: sub.Name + " falls behind.",
			Detail: sentences(waits(sub), rate, "Its oldest event grows older: it takes events more slowly than they are published.",
				"A larger max or max_in_flight may help, or a faster endpoint."),
			Since: j.since(Subject{Subscriber: sub.Name}, 0, old),
		}
	})
}

// blocked and paused go by the age of the oldest event: since when they hold is not known.
func blocked(j *judge, r rule) []Problem {
	is := func(sub Subscriber) bool {
		return sub.Hold == Blocked && older(sub, r.Over.Seconds())
	}
	return j.subscribers(is, func(sub Subscriber) Problem {
		return Problem{
			Title: "A failed batch holds up " + sub.Name + ".",
			Detail: sentences("It asks for strict_order, so later events wait.", waits(sub), failure(sub),
				"The bus tries the batch until it is acknowledged; with dead_letters it gives up."),
			Since: j.waitedSince(sub),
		}
	})
}

// waitedSince returns when the oldest event came that waits.
func (j *judge) waitedSince(sub Subscriber) Time {
	return Time{Time: j.At.Add(-time.Duration(*sub.OldestAge * float64(time.Second)))}
}

func paused(j *judge, r rule) []Problem {
	is := func(sub Subscriber) bool {
		return sub.State == PausedState && older(sub, r.Over.Seconds())
	}
	return j.subscribers(is, func(sub Subscriber) Problem {
		until := "It stays paused until somebody resumes it."
		if next := sub.HoldUntil.Sub(j.At); !sub.HoldUntil.IsZero() {
			until = "Deliveries go on in " + spanOf(next) + "."
		}
		return Problem{
			Title: sub.Name + " is paused, and events wait.", Detail: sentences(waits(sub), until), Since: j.waitedSince(sub),
		}
	})
}

// deadLetters shows also subscribers that something else is wrong with.
func deadLetters(j *judge, _ rule) (found []Problem) {
	for _, sub := range j.Subscribers {
		if sub.Dead != nil && *sub.Dead > 0 {
			found = append(found, Problem{
				Title: "The bus has given up on events for " + sub.Name + ".",
				Detail: many(*sub.Dead, "event is", "events are") + " in its dead letters, which are kept for a while. " +
					bus.Command("dead list --subscriber=", sub.Name) + " says why each could not be delivered. Redeliver or discard them.",
				Subscriber: sub.Name,
			})
		}
	}
	return found
}
