package inspect

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
)

// Backlog is the queue of one subscriber.
type Backlog struct {
	Client bus.ClientName
	// Token is the subscriber's token; for a joined backlog, the token of one of its subscribers.
	Token           bus.Token
	Events, Batches int64
	// DeadLetterEvents is the number of events in dead letters.
	DeadLetterEvents int64
	// Subscribed is false for a subscriber that is gone, or whose health cannot be read. Then it
	// has no health and no lanes.
	Subscribed bool
	Health     int
	// Timeout is how long a batch may wait for more events.
	Timeout time.Duration
	// Sent is the number of events ever acknowledged.
	Sent int64
	// AttemptedAt is when the last delivery was attempted, zero if none was.
	AttemptedAt time.Time
	// OldestAt is when the oldest event was received; zero if there is none, or it was not found
	// among the oldest batches.
	OldestAt time.Time
	Lanes    overview.Lanes
	Holds    Holds
}

// Holds are until when nothing is delivered to a subscriber, for each reason: it is paused, its
// deliveries have failed, or it is held to its pace. The times may be zero, or in the past.
type Holds struct{ Paused, Throttled, Paced time.Time }

// JobCounts is how many jobs of a queue are in each state.
type JobCounts struct{ Instant, Scheduled int64 }

// snapshotSearches is how many of the oldest batches [Inspector.FindOldest] looks at.
const snapshotSearches = 2000

// RunningReplays counts the replays that copy, or whose events are still queued.
func (in *Inspector) RunningReplays(ctx context.Context) (int64, error) {
	n, err := in.redis.SCard(ctx, in.keys.RunningReplays()).Result()
	return n, rdb.Wrap("count replays", err)
}

// Memory asks Redis about its memory: nil where Redis does not report it.
func (in *Inspector) Memory(ctx context.Context) (*rdb.Memory, error) {
	memory, err := in.redis.Memory(ctx)
	if errors.Is(err, rdb.ErrMemoryUnknown) {
		return nil, nil
	}
	return &memory, err
}

// CountJobs counts the jobs of all queues, and the deliveries that are due now or until a time.
func (in *Inspector) CountJobs(ctx context.Context, until time.Time) (jobs map[bus.Queue]JobCounts, due int64, err error) {
	instant, scheduled := map[bus.Queue]rdb.Reply[int64]{}, map[bus.Queue]rdb.Reply[int64]{}
	var soon rdb.Reply[int64]
	err = in.redis.Pipelined(ctx, "count jobs", func(pipe rdb.Commands) {
		for _, q := range bus.Queues {
			instant[q], scheduled[q] = pipe.LLen(ctx, in.keys.Instant(q)), pipe.ZCard(ctx, in.keys.Scheduled(q))
		}
		soon = pipe.ZCount(ctx, in.keys.Scheduled(bus.QueueMain), "-inf", strconv.FormatInt(until.UnixMilli(), 10))
	})
	jobs = make(map[bus.Queue]JobCounts, len(bus.Queues))
	for _, q := range bus.Queues {
		jobs[q] = JobCounts{instant[q].Val(), scheduled[q].Val()}
	}
	return jobs, instant[bus.QueueMain].Val() + soon.Val(), err
}

// Backlogs reads the backlogs of all subscribers, and of others that have something queued, except
// OldestAt and Lanes. Damaged are the keys of subscribers whose health or holds cannot be read,
// because another program has written there: they name clients, never a token. Known conditions
// save reading them again.
func (in *Inspector) Backlogs(ctx context.Context, known *Conditions) (backlogs []Backlog, damaged []string, err error) {
	var subscribed rdb.Reply[[]string]
	var events, batches, dead rdb.Reply[map[string]string]
	err = in.redis.Pipelined(ctx, "list backlogs", func(pipe rdb.Commands) {
		subscribed = pipe.SMembers(ctx, in.keys.Subscribers())
		events, batches = pipe.HGetAll(ctx, in.keys.EventGauge()), pipe.HGetAll(ctx, in.keys.BatchGauge())
		dead = pipe.HGetAll(ctx, in.keys.DeadLetterEvents())
	})
	if err != nil {
		return nil, nil, err
	}
	tokens, isSubscribed := make([]bus.Token, 0, len(batches.Val())), make(map[string]bool, len(subscribed.Val()))
	for _, token := range subscribed.Val() {
		tokens, isSubscribed[token] = append(tokens, bus.Token(token)), true
	}
	for token := range batches.Val() {
		if !isSubscribed[token] {
			tokens = append(tokens, bus.Token(token))
		}
	}
	slices.Sort(tokens)
	if err := in.readConditions(ctx, tokens, known); err != nil {
		return nil, nil, err
	}
	backlogs = make([]Backlog, len(tokens))
	for i, c := range known.all {
		if !c.isSubscriber {
			damaged = append(damaged, layout.Keys{}.Subscriber(bus.Token(c.client)))
		}
		if c.isNone {
			damaged = append(damaged, layout.Keys{}.Delivery(bus.Token(c.client)))
		}
		token := string(c.token)
		backlogs[i] = Backlog{
			Client: c.client, Token: c.token,
			Events: rdb.Integer(events.Val()[token], 0), Batches: rdb.Integer(batches.Val()[token], 0),
			DeadLetterEvents: rdb.Integer(dead.Val()[token], 0),
			Subscribed:       isSubscribed[token] && c.isSubscriber, Health: c.points, Holds: c.holds,
			Timeout: c.timeout, Sent: c.sent, AttemptedAt: c.attemptedAt,
		}
	}
	return backlogs, damaged, nil
}
