package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// checkSingleKeys reports which keys that everything depends on are not of their type.
func (e *examination) checkSingleKeys(ctx context.Context) error {
	for key, kind := range e.layout.singles {
		e.strange[key] = family{otherKeys, key, kind}
	}
	err := e.checkKeys(ctx)
	clear(e.strange)
	return err
}

// checkKeys reports which of the strange keys are there, and are not what the layout says. It also
// counts what the Ruby original has left.
func (e *examination) checkKeys(ctx context.Context) error {
	for some := range slices.Chunk(sorted(e.strange), rdb.KeysPerTrip) {
		types := make([]rdb.Reply[string], len(some))
		err := e.redis.Pipelined(ctx, "types", func(pipe rdb.Commands) {
			for i, key := range some {
				types[i] = pipe.Type(ctx, key)
			}
		})
		if err != nil {
			return err
		}
		for i, key := range some {
			switch is, want := types[i].Val(), e.strange[key].kind; {
			case is == "none" || is == string(want):
			case want == "":
				e.skip(key, "is not a key of the layout")
			default:
				e.skip(key, "is a %s, must be a %s", is, want)
				e.unreadable = e.unreadable || e.layout.singles[key] != ""
			}
		}
	}
	originals := 0
	for _, b := range e.batches {
		if b.original {
			originals++
		}
	}
	if originals > 0 {
		e.skip(e.keys.Original("{uid}"), "%d batches of the Ruby original, which rtm migrate moves; "+
			"they, and what belongs to them, are skipped", originals)
	}
	return nil
}

// checkFields reports the fields of hashes that the layout does not know.
func (e *examination) checkFields(ctx context.Context) error {
	for _, key := range sorted(e.hashes) {
		var unknown []string
		err := e.redis.EachPage(ctx, key, rdb.Hash, 0, rdb.Pairs(func(field, _ string) {
			old := e.hashes[key].of == subscriberKeys && slices.Contains(oldFields, field)
			if !old && !slices.Contains(fields[e.hashes[key].of], field) {
				unknown = append(unknown, fmt.Sprintf("%q", field))
			}
		}))
		if err := e.excuse(key, err); err != nil {
			return err
		}
		slices.Sort(unknown)
		if unknown = slices.Compact(unknown); len(unknown) > 0 {
			e.skip(key, "has fields that the layout does not know: %s", strings.Join(unknown, ", "))
		} else {
			delete(e.hashes, key)
		}
	}
	return nil
}

// checkRenamed reports what an earlier version of the bus had under other names.
func (e *examination) checkRenamed(ctx context.Context) error {
	remedies := map[string]remedy{
		"traceparents": {"is what is " + store.Keys{}.Traceparents("{}") + " today", "moved there"},
		"lane":         {"is a lane of jobs today", "moved there"},
		"fields":       {"has fields that are in another key today", "moved there"},
	}
	if err := e.confirm(ctx, scriptRenamed, e.renamed, remedies); err != nil || !e.fix {
		return err
	}
	for _, c := range e.renamed { // a long lane is moved in parts
		for c.args[0] == "lane" && e.redis.Exists(ctx, c.key).Val() == 1 {
			if err := e.redis.Run(ctx, scriptRenamed, true, "lane", c.about).Err(); err != nil {
				return e.excuse(c.key, err)
			}
		}
	}
	return nil
}

func (e *examination) checkTopics(ctx context.Context) error {
	var candidates []candidate
	for name := range e.topicHashes {
		if !e.topics[name] {
			key := e.keys.Topic(bus.TopicName(name))
			candidates = append(candidates, candidate{key, name, []any{key, e.keys.Topics(), name}})
		}
	}
	return e.confirm(ctx, scriptUnlisted, candidates, map[string]remedy{
		"unlisted": {"is not in " + store.Keys{}.Topics(), "added there"},
	})
}

func (e *examination) checkSubscribers(ctx context.Context) error {
	tokens := map[string]bool{}
	for token, callback := range e.callbacks {
		tokens[token] = !callback || !e.subscribers[token]
	}
	for token := range e.subscribers {
		tokens[token] = tokens[token] || !e.callbacks[token]
	}
	var candidates []candidate
	for token, doubtful := range tokens {
		key := e.keys.Subscriber(bus.Token(token))
		_, strange := e.strange[key]
		_, unknown := e.hashes[key]
		if doubtful && !strange && (!unknown || e.callbacks[token]) { // the others were reported
			candidates = append(candidates, candidate{key, e.name(token), []any{token}})
		}
	}
	return e.confirm(ctx, scriptSubscriber, candidates, map[string]remedy{
		"unlisted": {"is not in " + store.Keys{}.Subscribers(), "added there"},
		"silent":   {"has no callback", "removed, with its subscriptions"},
		"remains": {
			"is what remains of a subscriber that is not in " + store.Keys{}.Subscribers(),
			"removed, with its subscriptions",
		},
	})
}

func (e *examination) checkSubscriptions(ctx context.Context) error {
	doubtful := map[listing]bool{}
	for token, names := range e.topicsOf {
		for name := range names {
			if !e.subscribersOf[name][token] || !e.topics[name] || !e.subscribers[token] {
				doubtful[listing{token, name}] = true
			}
		}
	}
	for name, tokens := range e.subscribersOf {
		for token := range tokens {
			if !e.topicsOf[token][name] || !e.topics[name] || !e.subscribers[token] {
				doubtful[listing{token, name}] = true
			}
		}
	}
	var candidates []candidate
	for s := range doubtful {
		key := e.keys.SubscriberTopics(bus.Token(s.token))
		_, strange := e.strange[key]
		_, also := e.strange[e.keys.TopicSubscribers(bus.TopicName(s.of))]
		if !strange && !also {
			candidates = append(candidates, candidate{key, s.of, []any{s.token, s.of}})
		}
	}
	return e.confirm(ctx, scriptSubscription, candidates, map[string]remedy{
		"half": {"and " + store.Keys{}.TopicSubscribers("{}") + " differ", "added to both"},
		"topicless": {
			"names {}, or is named there, which is not in " + store.Keys{}.Topics(), "added there",
		},
		"dead": {"names {}, or is named there, and there is no such subscriber", "removed from both"},
	})
}

func (e *examination) checkCurrent(ctx context.Context) error {
	many := map[string]int{}
	for l := range e.current {
		many[l.token]++
	}
	var candidates []candidate
	for l := range e.current {
		if b := e.batches[l.of]; !b.there || b.token != l.token || many[l.token] > 1 {
			key := e.keys.Current(bus.Token(l.token))
			candidates = append(candidates, candidate{key, l.of, []any{l.token, l.of}})
		}
	}
	return e.confirm(ctx, scriptCurrent, candidates, map[string]remedy{
		"gone":  {"lists {}, which is not there", "removed"},
		"alien": {"lists {}, another subscriber's", "removed"},
		"many":  {"lists {} and a newer batch, must list one", "removed"},
	})
}

// longestPause is for how long the first of a lane may be put off, unless its subscriber is
// throttled: a job that cannot be taken waits a minute, by a clock that may go ahead of ours.
const longestPause = 2 * time.Minute

func (e *examination) checkLanes(ctx context.Context) error {
	latest := time.Now().Add(longestPause).UnixMilli()
	var candidates []candidate
	for l := range e.lanes {
		about := wire.ShowJob(l.of)
		bid, _ := batchOf(bus.QueueMain, l.of)
		if bid != "" {
			about = bid
		}
		waits := e.queues[bus.QueueMain].jobs[l.of].scheduled
		if b := e.batches[bid]; !b.there || b.token != l.token || waits {
			key := e.jobs.Lane(bus.JobBatch, l.token)
			candidates = append(candidates, candidate{key, about, []any{l.token, l.of, latest}})
		}
	}
	return e.confirm(ctx, scriptLane, candidates, map[string]remedy{
		"gone":    {"lists {}, which is not there", "removed; the next in the lane is woken"},
		"alien":   {"lists {}, another subscriber's", "removed; the next in the lane is woken"},
		"unwoken": {"begins with {}, which waits for its turn, though nobody is before it", "woken"},
	})
}

func (e *examination) checkWorkers(ctx context.Context) error {
	var candidates []candidate
	for _, q := range bus.Queues {
		for worker, jobs := range e.queues[q].holders {
			if jobs > 1 || !e.queues[q].registered[worker] {
				key := e.jobs.Pending(q, bus.WorkerID(worker))
				candidates = append(candidates, candidate{key, string(q), []any{string(q), worker}})
			}
		}
	}
	return e.confirm(ctx, scriptPending, candidates, map[string]remedy{
		"unlisted": {
			"belongs to a worker that is not in " + queue.Keys{}.PendingIndex("{}"), "added there",
		},
		"busy": {"has several jobs, must have one", "put back, all but the last"},
	})
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
