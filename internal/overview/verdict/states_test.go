package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/overview"
)

func TestStatesOfSubscribers(t *testing.T) {
	var (
		works   = point{overview.Succeeded: 10, overview.Queued: 5, overview.Health: 100}
		stuck   = point{overview.Queued: 5}
		failed  = point{overview.Failed: 1, overview.Queued: 5}
		mixed   = point{overview.Succeeded: 9, overview.Failed: 1, overview.Queued: 5}
		nothing = point{}
		moment  = after(-1)
		longAgo = after(-1000)
		ancient = after(-10_000)
		soon    = after(10)
		counts  = func(succeeded, failed int64) overview.Counts {
			return overview.Counts{Succeeded: succeeded, Failed: failed}
		}
		growing  = []part{{60, point{overview.Succeeded: 1, overview.Oldest: 100}}, {30, point{overview.Succeeded: 1, overview.Oldest: 600}}}
		old      = point{overview.Succeeded: 1, overview.Oldest: 600}
		recovers = []part{minutes(10, failed), minutes(3, works)}
	)
	for _, test := range []struct {
		name string
		sub  overview.SubscriberState
		past []part
		want overview.State
	}{
		{"it takes all", overview.SubscriberState{Queued: 5, OldestAt: moment, AttemptedAt: moment}, []part{minutes(15, works)}, overview.OK},
		{"its last answer was 410", overview.SubscriberState{Failure: "410", Queued: 5, Paused: soon}, nil, overview.Gone},
		{"paused", overview.SubscriberState{Queued: 5, Paused: soon, OldestAt: ancient, Failure: "503"}, nil, overview.PausedState},
		{"no longer paused", overview.SubscriberState{Queued: 5, Paused: moment, AttemptedAt: moment}, nil, overview.OK},
		{"nothing for 15 min", overview.SubscriberState{Queued: 5, OldestAt: moment, Throttled: soon}, []part{minutes(15, stuck)}, overview.Stalled},
		{"nothing for 14 min", overview.SubscriberState{Queued: 5, OldestAt: moment, Throttled: soon}, []part{minutes(1, works), minutes(14, stuck)}, overview.Failing},
		{"nothing for 14 min, and older than that", overview.SubscriberState{Queued: 5, OldestAt: longAgo}, []part{minutes(1, works), minutes(14, stuck)}, overview.OK},
		{"young history, and the oldest is older", overview.SubscriberState{Queued: 5, OldestAt: longAgo}, []part{minutes(2, stuck)}, overview.Stalled},
		{"young history, and the oldest is not", overview.SubscriberState{Queued: 5, OldestAt: moment}, []part{minutes(2, stuck)}, overview.Idle},
		{"no history, and the oldest is old", overview.SubscriberState{Queued: 5, OldestAt: longAgo}, nil, overview.Stalled},
		{"no history, and its last attempt succeeded", overview.SubscriberState{Queued: 5, OldestAt: longAgo, AttemptedAt: moment}, nil, overview.OK},
		{"no history, and its last attempt failed", overview.SubscriberState{Queued: 5, OldestAt: longAgo, AttemptedAt: moment, Failure: "503"}, nil, overview.Stalled},
		{"no history, and it was not tried for long", overview.SubscriberState{Queued: 5, OldestAt: longAgo, AttemptedAt: longAgo}, nil, overview.Stalled},
		{"young history, and it took something", overview.SubscriberState{Queued: 5, OldestAt: longAgo}, []part{minutes(1, works), minutes(2, stuck)}, overview.OK},
		{"an old event for one that had nothing to do", overview.SubscriberState{Queued: 1, OldestAt: longAgo}, []part{minutes(14, nothing), minutes(1, stuck)}, overview.OK},
		{"an event for one that had nothing to do", overview.SubscriberState{Queued: 1, OldestAt: moment}, []part{minutes(15, nothing)}, overview.OK},
		{"events wait for others in a batch", overview.SubscriberState{Queued: 1, OldestAt: longAgo, Timeout: time.Hour}, []part{minutes(15, stuck)}, overview.OK},
		{"throttled", overview.SubscriberState{Queued: 5, Throttled: soon}, []part{minutes(15, works)}, overview.Failing},
		{"throttled and blocked", overview.SubscriberState{Queued: 5, Throttled: soon, Blocked: true}, []part{minutes(15, works)}, overview.Failing},
		{"throttled, and nothing waits", overview.SubscriberState{Throttled: soon, AttemptedAt: moment}, []part{minutes(15, works)}, overview.OK},
		{"failures alone", overview.SubscriberState{Queued: 5, Counts: counts(0, 3)}, []part{minutes(15, works)}, overview.Failing},
		{"a success among failures", overview.SubscriberState{Queued: 5, Counts: counts(1, 3)}, []part{minutes(15, works)}, overview.OK},
		{"it acknowledges what workers have not counted yet", overview.SubscriberState{Queued: 5, Counts: counts(0, 3), Sent: 1}, nil, overview.OK},
		{"the oldest is old, and it grew", overview.SubscriberState{Queued: 5, OldestAt: after(-600)}, growing, overview.Behind},
		{"old, and it did not grow", overview.SubscriberState{Queued: 5, OldestAt: after(-600)}, []part{minutes(15, old)}, overview.OK},
		{"not old yet", overview.SubscriberState{Queued: 5, OldestAt: after(-290)}, growing, overview.OK},
		{"some fail", overview.SubscriberState{AttemptedAt: moment}, []part{minutes(15, mixed)}, overview.Flaky},
		{"some failed 6 min ago", overview.SubscriberState{AttemptedAt: moment}, []part{minutes(9, mixed), minutes(6, works)}, overview.OK},
		{"it has recovered", overview.SubscriberState{AttemptedAt: moment}, recovers, overview.OK},
		{"nothing waits, and nothing was sent", overview.SubscriberState{AttemptedAt: longAgo}, nil, overview.Idle},
		{"never sent anything", overview.SubscriberState{}, nil, overview.Idle},
		{"nothing waits, and something was sent", overview.SubscriberState{AttemptedAt: moment}, nil, overview.OK},
	} {
		test.sub.Name = "shop"
		if test.want == overview.Idle && test.sub.Queued > 0 {
			test.want = overview.OK // something waits
		}
		before := test.sub
		before.Sent, before.Counts = 0, overview.Counts{}
		now := at(0, test.sub)
		f := last(at(-10, before), now)
		Judge(&f, now, fast(shop, test.past...).tracks)
		assert.Equal(t, test.want, f.Subscribers[0].State, test.name)
	}
}

func TestStatesOfTopics(t *testing.T) {
	widgets := overview.Subject{Topic: "widgets"}
	in := func(rate float32, minutes int) []part { return []part{{6 * minutes, point{overview.In: rate}}} }
	busy := []part{{180, point{overview.In: 2}}}
	for _, test := range []struct {
		name   string
		topic  overview.TopicState
		heard  bool
		recent []part
		hours  []part
		want   overview.State
	}{
		{"never published to", overview.TopicState{}, true, nil, nil, overview.Unclaimed},
		{"nobody is subscribed", overview.TopicState{Publisher: "w", Events: 9}, false, in(1, 1), nil, overview.Unheard},
		{"nor does anything come", overview.TopicState{Publisher: "w", Events: 9}, false, in(0, 15), nil, overview.OK},
		{"nothing for 5 min", overview.TopicState{Publisher: "w", Events: 9}, true, in(0, 5), busy, overview.Quiet},
		{"something 5 min ago", overview.TopicState{Publisher: "w", Events: 9}, true, append(in(1, 1), in(0, 4)...), busy, overview.OK},
		{"there is never much", overview.TopicState{Publisher: "w", Events: 9}, true, in(0, 5), []part{{180, point{overview.In: 1}}}, overview.OK},
		{"nothing is known", overview.TopicState{Publisher: "w", Events: 9}, true, nil, busy, overview.OK},
	} {
		test.topic.Name = "widgets"
		s := at(0)
		s.Topics = []overview.TopicState{test.topic}
		if test.heard {
			s.Subscribers = []overview.SubscriberState{{Name: "shop", Topics: []string{"widgets"}}}
		}
		f := last(overview.Sample{At: after(-10), Topics: s.Topics}, s)
		Judge(&f, s, past{widgets: {overview.Fast.Name: test.recent, overview.Slow.Name: test.hours}}.tracks)
		assert.Equal(t, test.want, f.Topics[0].State, test.name)
	}
}
