package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/bus"
)

// Violation is something in Redis that contradicts the data layout's invariants.
type Violation struct {
	Key     string
	Problem string
}

func (v Violation) String() string { return v.Key + ": " + v.Problem }

// Check reads all keys of the namespace, a slice at a time, and returns what is wrong between them:
//
//   - a batch has its list and its index entry, a subscriber, and exactly one job in exactly one state;
//   - the index of a queue's jobs is the union of the three states;
//   - a worker has at most one pending job, and is in the index of those that may have one;
//   - a current batch is listed under its own subscriber, one at a time, and so is one in line;
//   - gauges equal what is there;
//   - topics and subscribers name each other;
//   - there is no key that the layout does not know.
//
// It takes no snapshot: while the bus runs it may report what is merely on its way.
func (s *Store) Check(ctx context.Context) ([]Violation, error) {
	c := &check{store: s, keys: s.keys, batches: map[string]batchHeader{}}
	if err := c.read(ctx); err != nil {
		return nil, err
	}
	c.checkBatches()
	for _, q := range bus.Queues {
		c.checkJobs(q)
	}
	c.checkGauges()
	c.checkSubscriptions()
	slices.SortFunc(c.found, func(a, b Violation) int { return strings.Compare(a.String(), b.String()) })
	return c.found, nil
}

// check is one run of the checker: what it has read, and what it found.
type check struct {
	store *Store
	keys  keys
	found []Violation

	batches map[string]batchHeader // by UID
	values  map[string][]string    // members of every other list, set and sorted set, by key
	hashes  map[string]map[string]string
}

type batchHeader struct {
	token  string
	events int64
}

func (c *check) report(key, format string, args ...any) {
	c.found = append(c.found, Violation{strings.TrimPrefix(key, c.keys.ns), fmt.Sprintf(format, args...)})
}

// keysPerTrip bounds what one round trip of the checker asks of Redis.
const keysPerTrip = 500

func (c *check) read(ctx context.Context) error {
	c.values, c.hashes = map[string][]string{}, map[string]map[string]string{}
	seen := map[string]bool{} // SCAN may return a key twice
	var cursor uint64
	for {
		found, next, err := c.store.redis.Scan(ctx, cursor, c.keys.ns+"*", keysPerTrip).Result()
		if err != nil {
			return wrap("check", err)
		}
		found = slices.DeleteFunc(found, func(key string) bool { return seen[key] })
		for _, key := range found {
			seen[key] = true
		}
		if err := c.readKeys(ctx, found); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

func (c *check) readKeys(ctx context.Context, found []string) error {
	types := make([]*redis.StatusCmd, len(found))
	if len(found) == 0 {
		return nil
	}
	err := c.store.pipelined(ctx, "check", func(pipe redis.Pipeliner) {
		for i, key := range found {
			types[i] = pipe.Type(ctx, key)
		}
	})
	if err != nil {
		return err
	}
	for i, key := range found {
		want := c.keys.kind(key)
		switch kind := types[i].Val(); {
		case want == "":
			c.report(key, "is not a key of the layout")
		case kind == "none": // gone since the scan
		case kind != want:
			c.report(key, "is a %s, must be a %s", kind, want)
		default:
			if err := c.readKey(ctx, key, kind); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *check) readKey(ctx context.Context, key, kind string) (err error) {
	db := c.store.redis
	switch kind {
	case "hash":
		c.hashes[key], err = db.HGetAll(ctx, key).Result()
	case "set":
		c.values[key], err = db.SMembers(ctx, key).Result()
	case "zset":
		c.values[key], err = db.ZRange(ctx, key, 0, -1).Result()
	case "list":
		if bid, ok := strings.CutPrefix(key, c.keys.batch("")); ok {
			return c.readBatch(ctx, key, bid)
		}
		c.values[key], err = db.LRange(ctx, key, 0, -1).Result()
	}
	return wrap("check", err)
}

func (c *check) readBatch(ctx context.Context, key, bid string) error {
	const header = 3 // subscriber, creation time, attempts
	var token *redis.StringCmd
	var length *redis.IntCmd
	err := c.store.pipelined(ctx, "check", func(pipe redis.Pipeliner) {
		token, length = pipe.LIndex(ctx, key, 0), pipe.LLen(ctx, key)
	})
	if err != nil {
		return err
	}
	if length.Val() <= header {
		c.report(key, "has %d items: no event", length.Val())
	}
	c.batches[bid] = batchHeader{token.Val(), length.Val() - header}
	return nil
}

func (c *check) checkBatches() {
	indexed := asSet(c.values[c.keys.batchesIndex()])
	jobs := c.jobStates(bus.QueueMain)
	for bid, header := range c.batches {
		key := c.keys.batch(bus.BatchID(bid))
		if !indexed[bid] {
			c.report(key, "is not in %s", c.keys.batchesIndex())
		}
		if n := len(jobs[packJob(bus.Job{Name: bus.JobBatch, Args: []string{bid}})]); n != 1 {
			c.report(key, "has %d jobs, must have one", n)
		}
		if header.token == "" {
			c.report(key, "has no subscriber")
		}
	}
	for bid := range indexed {
		if _, ok := c.batches[bid]; !ok {
			c.report(c.keys.batchesIndex(), "lists %s, which is not there", bid)
		}
	}
	for key, bids := range c.values {
		if token, ok := strings.CutPrefix(key, c.keys.current("")); ok {
			if len(bids) > 1 {
				c.report(key, "lists %d batches, must list one", len(bids))
			}
			c.checkListed(key, token, bids)
		} else if token, ok := strings.CutPrefix(key, c.keys.line("")); ok {
			c.checkListed(key, token, bids)
		}
	}
}

// checkListed checks that batches listed under a subscriber are there, and its own.
func (c *check) checkListed(key, token string, bids []string) {
	for _, bid := range bids {
		if header, ok := c.batches[bid]; !ok {
			c.report(key, "lists %s, which is not there", bid)
		} else if header.token != token {
			c.report(key, "lists %s, another subscriber's", bid)
		}
	}
}

// jobStates returns, for every job in one of the three states, the keys that hold it.
func (c *check) jobStates(q bus.Queue) map[string][]string {
	states := map[string][]string{}
	for key, jobs := range c.values {
		pending := strings.HasPrefix(key, c.keys.pending(q, ""))
		if key == c.keys.instant(q) || key == c.keys.scheduled(q) || pending {
			for _, job := range jobs {
				states[job] = append(states[job], key)
			}
		}
	}
	return states
}

func (c *check) checkJobs(q bus.Queue) {
	states := c.jobStates(q)
	index := asSet(c.values[c.keys.jobsIndex(q)])
	for packed, in := range states {
		if !index[packed] {
			c.report(c.keys.jobsIndex(q), "lacks %q, which is in %s", packed, in[0])
		}
		if len(in) > 1 {
			c.report(in[0], "has %q, which is also in %s", packed, in[1])
		}
		if job, err := unpackJob(packed); err != nil {
			c.report(in[0], "has %q: %v", packed, err)
		} else if job.Name == bus.JobBatch && len(job.Args) == 1 {
			if _, ok := c.batches[job.Args[0]]; !ok {
				c.report(in[0], "has a job for batch %s, which is not there", job.Args[0])
			}
		}
	}
	for packed := range index {
		if len(states[packed]) == 0 {
			c.report(c.keys.jobsIndex(q), "lists %q, which is in no state", packed)
		}
	}
	workers := asSet(c.values[c.keys.pendingIndex(q)])
	for key, jobs := range c.values {
		worker, ok := strings.CutPrefix(key, c.keys.pending(q, ""))
		if !ok {
			continue
		}
		if len(jobs) > 1 {
			c.report(key, "has %d jobs, must have one", len(jobs))
		}
		if !workers[worker] {
			c.report(key, "belongs to a worker that is not in %s", c.keys.pendingIndex(q))
		}
	}
}

func (c *check) checkGauges() {
	batches, events := map[string]int64{}, map[string]int64{}
	for _, header := range c.batches {
		batches[header.token]++
		events[header.token] += header.events
	}
	c.checkGauge(c.keys.batchGauge(), batches)
	c.checkGauge(c.keys.eventGauge(), events)
}

func (c *check) checkGauge(key string, want map[string]int64) {
	gauge := c.hashes[key]
	for token, n := range want {
		if integer(gauge[token], 0) != n {
			c.report(key, "has %q for %s, must be %d", gauge[token], token, n)
		}
	}
	for token, value := range gauge {
		if want[token] == 0 {
			c.report(key, "has %q for %s, who has no batch", value, token)
		}
	}
}

func (c *check) checkSubscriptions() {
	topics, subscribers := asSet(c.values[c.keys.topics()]), asSet(c.values[c.keys.subscribers()])
	for token := range subscribers {
		if c.hashes[c.keys.subscriber(bus.Token(token))]["callback"] == "" {
			c.report(c.keys.subscriber(bus.Token(token)), "has no callback")
		}
	}
	for key := range c.hashes {
		if token, ok := strings.CutPrefix(key, c.keys.subscriber("")); ok && !subscribers[token] {
			c.report(key, "is not in %s", c.keys.subscribers())
		} else if name, ok := strings.CutPrefix(key, c.keys.topic("")); ok && !topics[name] {
			c.report(key, "is not in %s", c.keys.topics())
		}
	}
	for key, members := range c.values {
		if token, ok := strings.CutPrefix(key, c.keys.subscriberTopics("")); ok {
			c.checkMirror(key, token, members, subscribers, topics, func(name string) string {
				return c.keys.topicSubscribers(bus.TopicName(name))
			})
		} else if name, ok := strings.CutPrefix(key, c.keys.topicSubscribers("")); ok {
			c.checkMirror(key, name, members, topics, subscribers, func(token string) string {
				return c.keys.subscriberTopics(bus.Token(token))
			})
		}
	}
}

// checkMirror checks one side of the subscriptions: that its owner and its members exist, and
// that each member lists the owner in turn.
func (c *check) checkMirror(key, owner string, members []string, owners, others map[string]bool, mirror func(string) string) {
	if !owners[owner] {
		c.report(key, "belongs to %s, which is not there", owner)
	}
	for _, member := range members {
		if !others[member] {
			c.report(key, "lists %s, which is not there", member)
		}
		if !slices.Contains(c.values[mirror(member)], owner) {
			c.report(key, "lists %s, which does not list it", member)
		}
	}
}

func asSet(members []string) map[string]bool {
	set := make(map[string]bool, len(members))
	for _, member := range members {
		set[member] = true
	}
	return set
}

// kind is the type of a key by the layout, empty for a key that it does not know.
func (k keys) kind(key string) string {
	switch key {
	case k.topics(), k.subscribers():
		return "set"
	case k.batchesIndex():
		return "zset"
	case k.tokens(), k.batchGauge(), k.eventGauge(), k.workers(), k.ns + "counters":
		return "hash"
	}
	families := []struct{ prefix, kind string }{ // a longer prefix before the shorter one it begins with
		{k.topic(""), "hash"}, {k.subscriber(""), "hash"},
		{k.topicSubscribers(""), "set"}, {k.subscriberTopics(""), "set"}, {k.current(""), "set"},
		{k.line(""), "zset"}, {k.batch(""), "list"},
		{k.jobsIndex(""), "set"}, {k.scheduled(""), "zset"}, {k.instant(""), "list"},
		{k.ns + "idempotency:", "string"},
		{k.pendingIndex(""), "set"}, {k.ns + "jobs:pending:", "list"},
	}
	for _, family := range families {
		if strings.HasPrefix(key, family.prefix) {
			return family.kind
		}
	}
	return ""
}
