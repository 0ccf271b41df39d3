package doctor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// scan is what a run has read. Nothing in it is certain while the bus runs.
type scan struct {
	redis  *rdb.Partition
	keys   store.Keys
	jobs   queue.Keys
	layout layout

	names       map[string]string // client's name, by token
	rotations   map[string]string // the new token, by the one whose place it takes
	subscribers map[string]bool
	topics      map[string]bool
	callbacks   map[string]bool // of each subscriber that has a hash: whether it has a callback
	failing     map[string]bool // the subscribers that have failed since their last success
	topicHashes map[string]bool
	// The two sides of the subscriptions: topics by token, tokens by topic.
	topicsOf, subscribersOf map[string]map[string]bool

	batches map[string]batch // by UID
	current map[listing]bool
	lanes   map[listing]bool // by packed jobs
	queues  map[bus.Queue]*queueScan
	gauges  map[string]gauges // by token
	newest  float64           // when the newest batch known was created (ms)

	strange map[string]family // keys that are not of their type, or that the layout does not know
	hashes  map[string]family // hashes that have more fields than the layout knows
	renamed []candidate
	tokens  map[string]string // one copy of each token of a batch
}

// batch is a UID that Redis names somewhere.
type batch struct {
	token  string
	events int64
	// there: it has its list. indexed: it is in the index. original: it is the Ruby original's.
	there, indexed, original bool
}

// listing is a batch, or a job, that is listed under a subscriber.
type listing struct{ token, of string }

// gauges are what the gauges say of a subscriber, empty for nothing.
type gauges struct{ batches, events string }

func newScan(partition *rdb.Partition) *scan {
	k, jobs := store.Keys{Namespace: partition.Namespace()}, queue.Keys{Namespace: partition.Namespace()}
	s := &scan{
		redis: partition, keys: k, jobs: jobs, layout: layoutOf(k, jobs),
		names: map[string]string{}, rotations: map[string]string{}, subscribers: map[string]bool{},
		topics: map[string]bool{}, callbacks: map[string]bool{}, failing: map[string]bool{},
		topicHashes: map[string]bool{}, topicsOf: map[string]map[string]bool{},
		subscribersOf: map[string]map[string]bool{}, batches: map[string]batch{}, current: map[listing]bool{},
		lanes: map[listing]bool{}, queues: map[bus.Queue]*queueScan{}, gauges: map[string]gauges{},
		strange: map[string]family{}, hashes: map[string]family{}, tokens: map[string]string{},
	}
	for _, q := range bus.Queues {
		s.queues[q] = newQueueScan()
	}
	return s
}

// read reads everything once. What lists other things comes before them, so that most of what is
// being delivered meanwhile is seen in the end as it was at first: not at all.
func (s *scan) read(ctx context.Context) error {
	k := s.keys
	members := func(key string, set map[string]bool) error {
		return s.redis.EachPage(ctx, key, rdb.Set, 0, func(page []string) error {
			for _, member := range page {
				set[member] = true
			}
			return nil
		})
	}
	pairs := func(key string, kind rdb.Kind, each func(name, value string)) error {
		return s.redis.EachPage(ctx, key, kind, 0, rdb.Pairs(each))
	}
	err := errors.Join(
		pairs(k.Tokens(), rdb.Hash, func(token, name string) { s.names[token] = name }),
		pairs(k.Rotations(), rdb.Hash, func(old, token string) { s.rotations[old] = token }),
		members(k.Subscribers(), s.subscribers),
		members(k.Topics(), s.topics),
		pairs(k.BatchGauge(), rdb.Hash, func(token, value string) {
			s.gauges[token] = gauges{value, s.gauges[token].events}
		}),
		pairs(k.EventGauge(), rdb.Hash, func(token, value string) {
			s.gauges[token] = gauges{s.gauges[token].batches, value}
		}),
		pairs(k.BatchesIndex(), rdb.SortedSet, func(bid, score string) {
			b := s.batches[bid]
			b.indexed = true
			s.batches[bid] = b
			s.sawBatchOf(score)
		}),
	)
	for _, q := range bus.Queues {
		if err == nil {
			err = s.readQueue(ctx, q, s.queues[q])
		}
	}
	if err != nil {
		return err
	}
	return s.redis.EachKey(ctx, k.Namespace+"*", func(page []string) error { return s.readPage(ctx, page) })
}

// sawBatchOf notes when a batch was created. One that is said to be of the future does not count.
func (s *scan) sawBatchOf(score string) {
	created, err := strconv.ParseFloat(score, 64)
	if err == nil {
		s.newest = max(s.newest, min(created, float64(time.Now().UnixMilli())))
	}
}

// reading is a key under way: what was asked, and what to do with the replies.
type reading struct {
	key     string
	replies []rdb.AnyReply
	take    func() error
}

func (s *scan) readPage(ctx context.Context, page []string) error {
	var readings []reading
	err := s.redis.Reads(ctx, "scan", func(pipe rdb.Commands) {
		for _, key := range page {
			readings = append(readings, s.ask(ctx, pipe, key))
		}
	})
	if err != nil {
		return err
	}
	for _, r := range readings {
		for _, reply := range r.replies {
			if err := reply.Err(); rdb.HasCode(err, "WRONGTYPE") {
				s.strange[r.key], _ = s.layout.family(s.keys, r.key)
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
func (s *scan) ask(ctx context.Context, pipe rdb.Commands, key string) reading {
	f, rest := s.layout.family(s.keys, key)
	switch f.of {
	case batchKeys, originalKeys:
		token, length := pipe.LIndex(ctx, key, 0), pipe.LLen(ctx, key)
		return reading{key, []rdb.AnyReply{token, length}, func() error {
			s.takeBatch(rest, token.Val(), length.Val(), f.of == originalKeys)
			return nil
		}}
	case subscriberKeys, topicKeys, deliveryKeys:
		names := fields[f.of]
		if f.of == subscriberKeys {
			names = slices.Concat(names, oldFields)
		}
		values, length := pipe.HMGet(ctx, key, names...), pipe.HLen(ctx, key)
		return reading{key, []rdb.AnyReply{values, length}, func() error {
			s.takeHash(f, key, rest, values.Val(), length.Val())
			return nil
		}}
	case topicSubscribersKeys, subscriberTopicsKeys, currentKeys, laneKeys:
		page := rdb.Page(ctx, pipe, key, f.kind, 0)
		return reading{key, []rdb.AnyReply{page}, func() error {
			each := s.taker(f.of, rest)
			members, cursor := page.Val()
			if err := each(members); err != nil || cursor == 0 {
				return err
			}
			return s.redis.EachPage(ctx, key, f.kind, cursor, each)
		}}
	case pendingKeys:
		jobs := pipe.LRange(ctx, key, -rdb.ElementsPerTrip, -1)
		return reading{key, []rdb.AnyReply{jobs}, func() error {
			name, worker, _ := strings.Cut(rest, ":")
			s.queues[bus.Queue(name)].takePending(worker, jobs.Val())
			return nil
		}}
	default:
		is := pipe.Type(ctx, key)
		return reading{key, []rdb.AnyReply{is}, func() error {
			s.takeOther(f, key, rest, rdb.Kind(is.Val()))
			return nil
		}}
	}
}

func (s *scan) takeBatch(bid, token string, length int64, original bool) {
	if length == 0 { // gone since the scan
		return
	}
	b := s.batches[bid]
	b.token = s.holder(token)
	if original {
		b.original = true
	} else {
		b.there, b.events = true, max(0, length-store.BatchHeader)
	}
	s.batches[bid] = b
}

// holder is the token that a batch's subscriber has now, one copy for all of its batches.
func (s *scan) holder(token string) string {
	token = cmp.Or(s.rotations[token], token)
	if _, ok := s.tokens[token]; !ok {
		s.tokens[token] = token
	}
	return s.tokens[token]
}

// takeHash takes in a hash: the values of the fields that were asked for, and how many it has.
func (s *scan) takeHash(f family, key, rest string, values []any, length int64) {
	if length == 0 { // gone since the scan
		return
	}
	for _, value := range values {
		if value != nil {
			length--
		}
	}
	if length > 0 {
		s.hashes[key] = f
	}
	switch f.of {
	case topicKeys:
		s.topicHashes[rest] = true
	case deliveryKeys:
		s.failing[rest] = s.failing[rest] || values[2] != nil
	case subscriberKeys:
		callback, _ := values[0].(string)
		s.callbacks[rest] = callback != ""
		old := values[len(fields[subscriberKeys]):]
		if slices.ContainsFunc(old, func(value any) bool { return value != nil }) {
			s.failing[rest] = s.failing[rest] || old[1] != nil
			s.renamed = append(s.renamed, candidate{key, rest, []any{"fields", rest}})
		}
	}
}

func (s *scan) takeOther(f family, key, rest string, is rdb.Kind) {
	switch {
	case is == "none":
	case is != f.kind:
		s.strange[key] = f
	case f.of == oldTraceparentsKeys:
		s.renamed = append(s.renamed, candidate{key, rest, []any{"traceparents", rest}})
	case f.of == oldLaneKeys:
		s.renamed = append(s.renamed, candidate{key, rest, []any{"lane", rest}})
	}
}

// taker returns what takes in the members of a key.
func (s *scan) taker(of familyName, owner string) func(members []string) error {
	note := func(set map[listing]bool) func(string) {
		return func(member string) { set[listing{owner, member}] = true }
	}
	side := func(sets map[string]map[string]bool) func(string) {
		if sets[owner] == nil {
			sets[owner] = map[string]bool{}
		}
		return func(member string) { sets[owner][member] = true }
	}
	var take func(string)
	switch of {
	case laneKeys:
		take = note(s.lanes)
		return rdb.Pairs(func(job, _ string) { take(job) })
	case currentKeys:
		take = note(s.current)
	case subscriberTopicsKeys:
		take = side(s.topicsOf)
	default:
		take = side(s.subscribersOf)
	}
	return func(members []string) error {
		for _, member := range members {
			take(member)
		}
		return nil
	}
}
