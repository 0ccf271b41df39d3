package store

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// The limits of one step, so that it does not block Redis for long.
const (
	droppedPerStep       = 100
	droppedEventsPerStep = 1000
)

// subscribersPerTrip is how many subscribers one round trip of [Letters.Trim] looks at.
const subscribersPerTrip = 50

// DroppedLetters is how many letters were dropped, and how many events of each subscriber were in
// them.
type DroppedLetters struct {
	Letters int
	Events  map[bus.Token]int
	// Gone is how many letters of subscribers that are gone were removed besides.
	Gone int
}

// Add adds the letters of other.
func (d *DroppedLetters) Add(other DroppedLetters) {
	d.Letters += other.Letters
	d.Gone += other.Gone
	for token, events := range other.Events {
		if d.Events == nil {
			d.Events = map[bus.Token]int{}
		}
		d.Events[token] += events
	}
}

// add adds the numbers of letters and of events that a script has dropped.
func (d *DroppedLetters) add(token string, counts []any) {
	if letters := int(counts[0].(int64)); letters > 0 {
		d.Add(DroppedLetters{Letters: letters, Events: map[bus.Token]int{bus.Token(token): int(counts[1].(int64))}})
	}
}

// Trim drops the oldest dead letters of each subscriber that has more than its options allow,
// letters that are too old, and all letters of subscribers that are gone. It takes steps while
// goesOn returns true, and returns what it has dropped, also with an error.
func (l *Letters) Trim(ctx context.Context, now time.Time, goesOn func() bool) (dropped DroppedLetters, err error) {
	sums, err := l.redis.HKeys(ctx, l.keys.DeadLetterEvents()).Result()
	if err != nil {
		return dropped, rdb.Wrap("trim dead letters", err)
	}
	for some := range slices.Chunk(sums, subscribersPerTrip) {
		limits, err := l.limits(ctx, some)
		for err == nil && len(limits) > 0 {
			if !goesOn() {
				return dropped, nil
			}
			err = l.trim(ctx, now, limits, &dropped)
		}
		if err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}

// limits reads the limits of subscribers. A subscriber that is gone may keep nothing.
func (l *Letters) limits(ctx context.Context, tokens []string) (map[string]bus.DeadLetters, error) {
	subscribed, options := make([]rdb.Reply[bool], len(tokens)), make([]rdb.Reply[string], len(tokens))
	err := l.redis.Reads(ctx, "trim dead letters", func(pipe rdb.Commands) {
		for i, token := range tokens {
			subscribed[i] = pipe.SIsMember(ctx, l.keys.Subscribers(), token)
			options[i] = pipe.HGet(ctx, l.keys.Options(bus.Token(token)), optionName)
		}
	})
	limits := map[string]bus.DeadLetters{}
	for i, token := range tokens {
		limits[token] = limitsOf(options[i].Val())
		if subscribed[i].Err() == nil && !subscribed[i].Val() {
			limits[token] = gone
		}
	}
	return limits, err
}

// gone are the limits of a subscriber that is gone.
var gone = bus.DeadLetters{}

// optionName is the option that has the limits.
const optionName = "dead_letters"

// limitsOf parses the option. If it is off or cannot be read, the default limits apply, so existing
// letters age out.
func limitsOf(option string) bus.DeadLetters {
	o, _ := bus.ParseOptions(map[string]string{optionName: option})
	if o.DeadLetters == nil {
		return bus.DeadLetters{
			KeepEvents: bus.DefaultKeepEvents, KeepBytes: bus.DefaultKeepBytes, KeepAge: bus.DefaultKeepAge,
		}
	}
	return *o.DeadLetters
}

// trimArgs are the arguments of lua/letter_trim.lua, under the same names there.
type trimArgs struct {
	Token                 string
	KeptEvents, KeptBytes int   // at most
	KeptSince             int64 // the time of death (ms)
	// MaxCount is how many letters are removed at most; none is, once MaxEvents events were.
	MaxCount, MaxEvents int
	Now                 int64  // ms
	Seed                string // of the UID of a gap notice
}

func (a trimArgs) list() []any {
	return []any{a.Token, a.KeptEvents, a.KeptBytes, a.KeptSince, a.MaxCount, a.MaxEvents, a.Now, a.Seed}
}

// trim takes one step for each subscriber, and removes from limits the subscribers that are done.
// It skips subscribers whose letters cannot be read: doctor repairs them.
func (l *Letters) trim(ctx context.Context, now time.Time, limits map[string]bus.DeadLetters, dropped *DroppedLetters) error {
	tokens := slices.Sorted(maps.Keys(limits))
	calls := make([]rdb.Call, len(tokens))
	for i, token := range tokens {
		keep, since := limits[token], int64(math.MaxInt64)
		if keep != gone {
			since = now.Add(-keep.KeepAge).UnixMilli()
		}
		calls[i] = scriptLetterTrim.Call(trimArgs{
			Token: token, KeptEvents: keep.KeepEvents, KeptBytes: keep.KeepBytes, KeptSince: since,
			MaxCount: droppedPerStep, MaxEvents: droppedEventsPerStep, Now: now.UnixMilli(), Seed: bus.NewBatchSeed(),
		}.list()...)
	}
	for i, result := range l.redis.RunAll(ctx, calls...) {
		reply, err := result.List()
		if !rdb.Answered(err) {
			return rdb.Wrap("trim dead letters", err)
		}
		token := tokens[i]
		if err == nil && limits[token] == gone {
			dropped.Gone += int(reply[0].(int64))
		} else if err == nil {
			dropped.add(token, reply)
		}
		if err != nil || reply[2] == int64(0) {
			delete(limits, token)
		}
	}
	return nil
}
