package overview

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestStatesOfSubscribers(t *testing.T) {
	var (
		works   = point{Succeeded: 10, Queued: 5, Health: 100}
		stuck   = point{Queued: 5}
		failed  = point{Failed: 1, Queued: 5}
		mixed   = point{Succeeded: 9, Failed: 1, Queued: 5}
		nothing = point{}
		moment  = afterStart(-1)
		longAgo = afterStart(-1000)
		ancient = afterStart(-10_000)
		soon    = afterStart(10)
		counts  = func(succeeded, failed int64) Counts {
			return Counts{Succeeded: succeeded, Failed: failed}
		}
		growing  = []part{{60, point{Succeeded: 1, Oldest: 100}}, {30, point{Succeeded: 1, Oldest: 600}}}
		old      = point{Succeeded: 1, Oldest: 600}
		recovers = []part{minutes(10, failed), minutes(3, works)}
	)
	for _, test := range []struct {
		name string
		sub  SubscriberState
		past []part
		want State
	}{
		{"it takes all", SubscriberState{Queued: 5, OldestAt: moment, AttemptedAt: moment}, []part{minutes(15, works)}, OK},
		{"its last answer was 410", SubscriberState{Failure: "410", Queued: 5, Paused: soon}, nil, Gone},
		{"paused", SubscriberState{Queued: 5, Paused: soon, OldestAt: ancient, Failure: "503"}, nil, PausedState},
		{"no longer paused", SubscriberState{Queued: 5, Paused: moment, AttemptedAt: moment}, nil, OK},
		{"nothing for 15 min", SubscriberState{Queued: 5, OldestAt: moment, Throttled: soon}, []part{minutes(15, stuck)}, Stalled},
		{"nothing for 14 min", SubscriberState{Queued: 5, OldestAt: moment, Throttled: soon}, []part{minutes(1, works), minutes(14, stuck)}, Failing},
		{"nothing for 14 min, and older than that", SubscriberState{Queued: 5, OldestAt: longAgo}, []part{minutes(1, works), minutes(14, stuck)}, OK},
		{"young history, and the oldest is older", SubscriberState{Queued: 5, OldestAt: longAgo}, []part{minutes(2, stuck)}, Stalled},
		{"young history, and the oldest is not", SubscriberState{Queued: 5, OldestAt: moment}, []part{minutes(2, stuck)}, Idle},
		{"no history, and the oldest is old", SubscriberState{Queued: 5, OldestAt: longAgo}, nil, Stalled},
		{"no history, and its last attempt succeeded", SubscriberState{Queued: 5, OldestAt: longAgo, AttemptedAt: moment}, nil, OK},
		{"no history, and its last attempt failed", SubscriberState{Queued: 5, OldestAt: longAgo, AttemptedAt: moment, Failure: "503"}, nil, Stalled},
		{"no history, and it was not tried for long", SubscriberState{Queued: 5, OldestAt: longAgo, AttemptedAt: longAgo}, nil, Stalled},
		{"young history, and it took something", SubscriberState{Queued: 5, OldestAt: longAgo}, []part{minutes(1, works), minutes(2, stuck)}, OK},
		{"an old event for one that had nothing to do", SubscriberState{Queued: 1, OldestAt: longAgo}, []part{minutes(14, nothing), minutes(1, stuck)}, OK},
		{"an event for one that had nothing to do", SubscriberState{Queued: 1, OldestAt: moment}, []part{minutes(15, nothing)}, OK},
		{"events wait for others in a batch", SubscriberState{Queued: 1, OldestAt: longAgo, Timeout: time.Hour}, []part{minutes(15, stuck)}, OK},
		{"throttled", SubscriberState{Queued: 5, Throttled: soon}, []part{minutes(15, works)}, Failing},
		{"throttled and blocked", SubscriberState{Queued: 5, Throttled: soon, Blocked: true}, []part{minutes(15, works)}, Failing},
		{"throttled, and nothing waits", SubscriberState{Throttled: soon, AttemptedAt: moment}, []part{minutes(15, works)}, OK},
		{"failures alone", SubscriberState{Queued: 5, Counts: counts(0, 3)}, []part{minutes(15, works)}, Failing},
		{"a success among failures", SubscriberState{Queued: 5, Counts: counts(1, 3)}, []part{minutes(15, works)}, OK},
		{"it acknowledges what workers have not counted yet", SubscriberState{Queued: 5, Counts: counts(0, 3), Sent: 1}, nil, OK},
		{"the oldest is old, and it grew", SubscriberState{Queued: 5, OldestAt: afterStart(-600)}, growing, Behind},
		{"old, and it did not grow", SubscriberState{Queued: 5, OldestAt: afterStart(-600)}, []part{minutes(15, old)}, OK},
		{"not old yet", SubscriberState{Queued: 5, OldestAt: afterStart(-290)}, growing, OK},
		{"some fail", SubscriberState{AttemptedAt: moment}, []part{minutes(15, mixed)}, Flaky},
		{"some failed 6 min ago", SubscriberState{AttemptedAt: moment}, []part{minutes(9, mixed), minutes(6, works)}, OK},
		{"it has recovered", SubscriberState{AttemptedAt: moment}, recovers, OK},
		{"nothing waits, and nothing was sent", SubscriberState{AttemptedAt: longAgo}, nil, Idle},
		{"never sent anything", SubscriberState{}, nil, Idle},
		{"nothing waits, and something was sent", SubscriberState{AttemptedAt: moment}, nil, OK},
	} {
		test.sub.Name = "shop"
		if test.want == Idle && test.sub.Queued > 0 {
			test.want = OK // something waits
		}
		before := test.sub
		before.Sent, before.Counts = 0, Counts{}
		now := atStart(0, test.sub)
		f := lastProblem(atStart(-10, before), now)
		Judge(&f, now, fast(shop, test.past...).tracks)
		assert.Equal(t, test.want, f.Subscribers[0].State, test.name)
	}
}

func TestStatesOfTopics(t *testing.T) {
	widgets := Subject{Topic: "widgets"}
	in := func(rate float32, minutes int) []part { return []part{{6 * minutes, point{In: rate}}} }
	busy := []part{{180, point{In: 2}}}
	for _, test := range []struct {
		name   string
		topic  TopicState
		heard  bool
		recent []part
		hours  []part
		want   State
	}{
		{"never published to", TopicState{}, true, nil, nil, Unclaimed},
		{"nobody is subscribed", TopicState{Publisher: "w", Events: 9}, false, in(1, 1), nil, Unheard},
		{"nor does anything come", TopicState{Publisher: "w", Events: 9}, false, in(0, 15), nil, OK},
		{"nothing for 5 min", TopicState{Publisher: "w", Events: 9}, true, in(0, 5), busy, Quiet},
		{"something 5 min ago", TopicState{Publisher: "w", Events: 9}, true, append(in(1, 1), in(0, 4)...), busy, OK},
		{"there is never much", TopicState{Publisher: "w", Events: 9}, true, in(0, 5), []part{{180, point{In: 1}}}, OK},
		{"nothing is known", TopicState{Publisher: "w", Events: 9}, true, nil, busy, OK},
	} {
		test.topic.Name = "widgets"
		s := atStart(0)
		s.Topics = []TopicState{test.topic}
		if test.heard {
			s.Subscribers = []SubscriberState{{Name: "shop", Topics: []string{"widgets"}}}
		}
		f := lastProblem(Sample{At: afterStart(-10), Topics: s.Topics}, s)
		Judge(&f, s, past{widgets: {Fast.Name: test.recent, Slow.Name: test.hours}}.tracks)
		assert.Equal(t, test.want, f.Topics[0].State, test.name)
	}
}
