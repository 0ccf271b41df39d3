package store

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// survey is what a run of the checks has read. Nothing in it is certain while the bus runs.
type survey struct {
	store  *Store
	keys   Keys
	jobs   queue.Keys
	layout layout

	names       map[string]string // client's name, by token
	rotations   map[string]string // the new token, by the one whose place it takes
	subscribers map[string]bool
	topics      map[string]bool
	callbacks   map[string]string // of each subscriber that has a hash
	failing     map[string]bool   // the subscribers that have failed since their last success
	topicHashes map[string]bool   // of each topic that has a hash: whether there is in it what makes it one
	// The two sides of the subscriptions: topics by token, tokens by topic.
	topicsOf, subscribersOf map[string]map[string]bool

	batches map[string]batch // by UID
	listed  map[listing]bool // whether it is in line
	queues  map[bus.Queue]*queueScan
	gauges  map[string]gauges // by token
	newest  creation          // of the batches there were at first

	// strange are the keys that are not of their type, or that the layout does not know.
	strange map[string]bool
	tokens  map[string]string // one copy of each token of a batch
}

// batch is a UID that Redis names somewhere.
type batch struct {
	token  string
	events int64
	// there: it has its list. indexed: it is in the index. original: it is the Ruby original's.
	there, indexed, original bool
}

// listing is a batch that is a subscriber's current one, or in its line.
type listing struct{ token, bid string }

// queue is a queue's jobs.
type queueScan struct {
	jobs map[string]job // by their bytes
	// registered are the workers in the index, holders those that have a list; with its length.
	registered map[string]bool
	holders    map[string]int
	instant    *instantList
}

// job is where a job was seen.
type job struct {
	listed, scheduled bool
	pending           int
	instant           []int64 // places, see instantList
}

// gauges are what the gauges say of a subscriber.
type gauges struct{ batches, events string }

func newSurvey(s *Store) *survey {
	v := &survey{
		store: s, keys: s.keys, jobs: s.jobs, layout: s.keys.layout(),
		names: map[string]string{}, rotations: map[string]string{}, subscribers: map[string]bool{}, topics: map[string]bool{},
		callbacks: map[string]string{}, failing: map[string]bool{}, topicHashes: map[string]bool{},
		topicsOf: map[string]map[string]bool{}, subscribersOf: map[string]map[string]bool{},
		batches: map[string]batch{}, listed: map[listing]bool{}, queues: map[bus.Queue]*queueScan{},
		gauges: map[string]gauges{}, strange: map[string]bool{}, tokens: map[string]string{},
	}
	for _, q := range bus.Queues {
		jobs := map[string]job{}
		v.queues[q] = &queueScan{jobs: jobs, registered: map[string]bool{}, holders: map[string]int{},
			instant: &instantList{store: s, queue: q, jobs: jobs}}
	}
	return v
}

// read reads everything once. What lists other things comes before them, so that most of what
// is being delivered meanwhile is seen in the end as it was at first: not at all.
func (v *survey) read(ctx context.Context) error {
	k := v.keys
	add := func(set map[string]bool) func([]string) error {
		return func(page []string) error {
			for _, member := range page {
				set[member] = true
			}
			return nil
		}
	}
	gauge := func(set func(*gauges, string)) func([]string) error {
		return rdb.Pairs(func(token, value string) {
			g := v.gauges[token]
			set(&g, value)
			v.gauges[token] = g
		})
	}
	newest, err := v.store.redis.ZRevRangeWithScores(ctx, k.BatchesIndex(), 0, 0).Result()
	if err != nil {
		return rdb.Wrap("check", err)
	}
	for _, entry := range newest {
		v.newest.saw(entry.Score)
	}
	err = errors.Join(
		v.store.redis.EachPage(ctx, k.Tokens(), rdb.Hash, 0, rdb.Pairs(func(token, name string) { v.names[token] = name })),
		v.store.redis.EachPage(ctx, k.Rotations(), rdb.Hash, 0, rdb.Pairs(func(old, token string) { v.rotations[old] = token })),
		v.store.redis.EachPage(ctx, k.Subscribers(), rdb.Set, 0, add(v.subscribers)),
		v.store.redis.EachPage(ctx, k.Topics(), rdb.Set, 0, add(v.topics)),
		v.store.redis.EachPage(ctx, k.BatchGauge(), rdb.Hash, 0, gauge(func(g *gauges, value string) { g.batches = value })),
		v.store.redis.EachPage(ctx, k.EventGauge(), rdb.Hash, 0, gauge(func(g *gauges, value string) { g.events = value })),
		v.store.redis.EachPage(ctx, k.BatchesIndex(), rdb.SortedSet, 0, rdb.Pairs(func(bid, _ string) {
			b := v.batches[bid]
			b.indexed = true
			v.batches[bid] = b
		})),
	)
	for _, q := range bus.Queues {
		if err == nil {
			err = v.readQueue(ctx, q, add(v.queues[q].registered))
		}
	}
	if err != nil {
		return rdb.Wrap("check", err)
	}
	return rdb.Wrap("check", v.store.redis.EachKey(ctx, v.keys.Namespace+"*", func(page []string) error { return v.readPage(ctx, page) }))
}

func (v *survey) readQueue(ctx context.Context, q bus.Queue, register func([]string) error) error {
	jobs := v.queues[q].jobs
	err := v.queues[q].instant.extend(ctx)
	if errors.Is(err, errMoved) { // what is in doubt for that is looked for later
		err = nil
	}
	return errors.Join(err,
		v.store.redis.EachPage(ctx, v.jobs.JobsIndex(q), rdb.Set, 0, func(page []string) error {
			for _, packed := range page {
				j := jobs[packed]
				j.listed = true
				jobs[packed] = j
			}
			return nil
		}),
		v.store.redis.EachPage(ctx, v.jobs.Scheduled(q), rdb.SortedSet, 0, rdb.Pairs(func(packed, _ string) {
			j := jobs[packed]
			j.scheduled = true
			jobs[packed] = j
		})),
		v.store.redis.EachPage(ctx, v.jobs.PendingIndex(q), rdb.Set, 0, register),
	)
}

// reading is a key under way: what was asked, and what to do with the answer.
type reading struct {
	key     string
	answers []rdb.AnyReply
	take    func() error
}

func (v *survey) readPage(ctx context.Context, page []string) error {
	var readings []reading
	// Its error is that of one of the commands, each of which is looked at.
	_ = v.store.redis.Pipelined(ctx, "check", func(pipe rdb.Commands) {
		for _, key := range page {
			answers, take := v.ask(ctx, pipe, key)
			readings = append(readings, reading{key, answers, take})
		}
	})
	for _, r := range readings {
		for _, answer := range r.answers {
			if err := answer.Err(); rdb.HasCode(err, "WRONGTYPE") {
				v.strange[r.key] = true
				r.take = func() error { return nil }
			} else if err != nil && !errors.Is(err, rdb.Nil) {
				return err
			}
		}
		if err := r.take(); err != nil {
			return err
		}
	}
	return nil
}

// ask asks for what is to be known of a key.
func (v *survey) ask(ctx context.Context, pipe rdb.Commands, key string) (answers []rdb.AnyReply, take func() error) {
	f, rest := v.layout.family(v.keys, key)
	switch f.of {
	case batchKeys, originalKeys:
		token, length := pipe.LIndex(ctx, key, 0), pipe.LLen(ctx, key)
		return []rdb.AnyReply{token, length}, func() error {
			v.takeBatch(rest, token.Val(), length.Val(), f.of == originalKeys)
			return nil
		}
	case subscriberKeys:
		fields := pipe.HMGet(ctx, key, "callback", "throttled_until")
		return []rdb.AnyReply{fields}, func() error {
			v.callbacks[rest] = text(fields.Val()[0])
			if fields.Val()[1] != nil {
				v.failing[rest] = true
			}
			return nil
		}
	case topicKeys:
		fields := pipe.HMGet(ctx, key, "publisher", "counter")
		return []rdb.AnyReply{fields}, func() error {
			v.topicHashes[rest] = fields.Val()[0] != nil || fields.Val()[1] != nil
			return nil
		}
	case subscriberTopicsKeys, topicSubscribersKeys, currentKeys, lineKeys:
		page := rdb.Page(ctx, pipe, key, f.kind, 0)
		return []rdb.AnyReply{page}, func() error {
			each := v.taker(f.of, rest)
			members, cursor := page.Val()
			if err := each(members); err != nil || cursor == 0 {
				return err
			}
			return v.store.redis.EachPage(ctx, key, f.kind, cursor, each)
		}
	case pendingKeys:
		jobs := pipe.LRange(ctx, key, -rdb.ElementsPerTrip, -1)
		return []rdb.AnyReply{jobs}, func() error {
			v.takePending(rest, jobs.Val())
			return nil
		}
	default:
		is := pipe.Type(ctx, key)
		return []rdb.AnyReply{is}, func() error {
			if is.Val() != string(f.kind) && is.Val() != "none" {
				v.strange[key] = true
			}
			return nil
		}
	}
}

func (v *survey) takeBatch(bid, token string, length int64, original bool) {
	if length == 0 { // gone since the scan
		return
	}
	token = cmp.Or(v.rotations[token], token)
	if one, ok := v.tokens[token]; ok {
		token = one
	} else {
		v.tokens[token] = token
	}
	b := v.batches[bid]
	b.token = token
	if original {
		b.original = true
	} else {
		b.there, b.events = true, max(0, length-BatchHeader)
	}
	v.batches[bid] = b
}

// taker returns what takes in the members of a key.
func (v *survey) taker(of familyName, owner string) func(members []string) error {
	side := v.topicsOf
	switch of {
	case currentKeys:
		return func(members []string) error {
			for _, bid := range members {
				if l := (listing{owner, bid}); !v.listed[l] { // it may be in line, too
					v.listed[l] = false
				}
			}
			return nil
		}
	case lineKeys:
		return rdb.Pairs(func(packed, _ string) {
			if job, err := wire.UnpackJob(packed); err == nil && job.Name == bus.JobBatch && len(job.Args) == 1 {
				v.listed[listing{owner, job.Args[0]}] = true
			}
		})
	case topicSubscribersKeys:
		side = v.subscribersOf
	}
	return func(members []string) error {
		if side[owner] == nil {
			side[owner] = map[string]bool{}
		}
		for _, member := range members {
			side[owner][member] = true
		}
		return nil
	}
}

// takePending takes in a worker's pending jobs; of is its queue and its UID.
func (v *survey) takePending(of string, jobs []string) {
	name, worker, _ := strings.Cut(of, ":")
	q := v.queues[bus.Queue(name)]
	if len(jobs) == 0 {
		return
	}
	if _, seen := q.holders[worker]; seen { // SCAN may return a key twice
		return
	}
	q.holders[worker] = len(jobs)
	for _, packed := range jobs {
		j := q.jobs[packed]
		j.pending++
		q.jobs[packed] = j
	}
}
