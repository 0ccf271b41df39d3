package store

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

// ruling is what is told of a violation that a script has confirmed, and what the script does about it; {} stands for
// what was checked.
type ruling struct{ problem, remedy string }

// suspect is something to be checked by a script.
type suspect struct {
	args []any
	// key is where a violation is, about what the rulings' {} stands for.
	key   func(code string) string
	about string
}

// notOurs tells of a key that is only named like one of the bus.
const notOurs = "is not as the bus writes it, so it is somebody else's"

// scriptsPerTrip bounds how many short scripts one round trip runs.
const scriptsPerTrip = 50

// verify has a script check suspects, one each, and tells what it confirms.
func (e *examination) verify(ctx context.Context, script *rdb.Script, suspects []suspect, rulings map[string]ruling) error {
	for some := range slices.Chunk(suspects, scriptsPerTrip) {
		calls := make([]rdb.Call, len(some))
		for i, s := range some {
			calls[i] = script.Call(append([]any{e.fix}, s.args...)...)
		}
		for i, result := range e.store.redis.RunAll(ctx, calls...) {
			codes, err := result.Strings()
			if err := e.excuse(some[i].about, err); err != nil {
				return err
			}
			for _, code := range codes {
				r := rulings[code]
				e.found(some[i].key(code), r.remedy, "%s", strings.ReplaceAll(r.problem, "{}", some[i].about))
			}
		}
	}
	return nil
}

// excuse turns an error that is Redis' answer into a violation that is left alone: a script met something that
// is not of its type. Others are returned.
func (e *examination) excuse(what string, err error) error {
	if err == nil || !rdb.Answered(err) {
		return rdb.Wrap("check", err)
	}
	e.leave(what, "cannot be checked: %v", err)
	return nil
}

func fixed(key string) func(string) string { return func(string) string { return key } }

// checkSingleKeys tells which keys that everything depends on are not of their type.
func (e *examination) checkSingleKeys(ctx context.Context) error {
	for key := range e.layout.singles {
		e.strange[key] = true
	}
	err := e.checkKeys(ctx)
	clear(e.strange)
	return err
}

// checkKeys tells which of the strange keys are there, and are not what the layout says. It also counts what the Ruby original
// has left.
func (e *examination) checkKeys(ctx context.Context) error {
	for some := range slices.Chunk(sorted(e.strange), rdb.KeysPerTrip) {
		types := make([]rdb.Reply[string], len(some))
		err := e.store.redis.Pipelined(ctx, "check", func(pipe rdb.Commands) {
			for i, key := range some {
				types[i] = pipe.Type(ctx, key)
			}
		})
		if err != nil {
			return err
		}
		for i, key := range some {
			f, _ := e.layout.family(e.keys, key)
			switch is := types[i].Val(); {
			case is == "none" || is == string(f.kind):
			case f.kind == "":
				e.leave(key, "is not a key of the layout")
			default:
				e.leave(key, "is a %s, must be a %s", is, f.kind)
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
		e.leave(e.keys.Original("{uid}"), "%d batches of the Ruby original, which rtm migrate moves; they, and what belongs to them, are left alone", originals)
	}
	return nil
}

func (e *examination) checkTopics(ctx context.Context) error {
	var suspects []suspect
	for _, name := range sorted(e.topicHashes) {
		if !e.topics[name] || !e.topicHashes[name] {
			suspects = append(suspects, suspect{[]any{name}, fixed(e.keys.Topic(bus.TopicName(name))), name})
		}
	}
	return e.verify(ctx, scriptCheckTopic, suspects, map[string]ruling{
		"topic_unlisted":       {problem: "is not in " + Keys{}.Topics(), remedy: "added there"},
		"topic_foreign":        {problem: notOurs},
		"topic_foreign_listed": {problem: notOurs + ", though " + Keys{}.Topics() + " lists it"},
	})
}

func (e *examination) checkSubscribers(ctx context.Context) error {
	tokens := map[string]bool{}
	for token, callback := range e.callbacks {
		tokens[token] = callback == "" || !e.subscribers[token]
	}
	for token := range e.subscribers {
		tokens[token] = tokens[token] || e.callbacks[token] == ""
	}
	var suspects []suspect
	for _, token := range sorted(tokens) {
		if !tokens[token] || e.strange[e.keys.Subscriber(bus.Token(token))] { // the latter was told
			continue
		}
		args := []any{token}
		for name, subscribers := range e.subscribersOf {
			if subscribers[token] {
				args = append(args, name)
			}
		}
		suspects = append(suspects, suspect{args, fixed(e.keys.Subscriber(bus.Token(token))), e.name(token)})
	}
	return e.verify(ctx, scriptCheckSubscriber, suspects, map[string]ruling{
		"subscriber_unlisted": {problem: "is not in " + Keys{}.Subscribers(), remedy: "added there"},
		"subscriber_remains":  {problem: "is what remains of a subscriber that is not in " + Keys{}.Subscribers(), remedy: "removed, with its subscriptions"},
		"subscriber_silent":   {problem: "has no callback", remedy: "removed, with its subscriptions"},
		"subscriber_idle":     {problem: "is not in " + Keys{}.Subscribers() + ", is subscribed to nothing, and nobody has its token: it may be somebody else's"},

		"subscriber_foreign":        {problem: notOurs},
		"subscriber_foreign_listed": {problem: notOurs + ", though " + Keys{}.Subscribers() + " lists it"},
	})
}

func (e *examination) checkSubscriptions(ctx context.Context) error {
	type subscription struct{ token, name string }
	doubtful := map[subscription]bool{}
	e.leaveForeignSets()
	for token, names := range e.topicsOf {
		for name := range names {
			if !e.subscribersOf[name][token] || !e.topics[name] || !e.subscribers[token] {
				doubtful[subscription{token, name}] = true
			}
		}
	}
	for name, tokens := range e.subscribersOf {
		for token := range tokens {
			if !e.topicsOf[token][name] || !e.topics[name] || !e.subscribers[token] {
				doubtful[subscription{token, name}] = true
			}
		}
	}
	var suspects []suspect
	told := func(key string) bool { return e.foreign[key] || e.strange[key] }
	for s := range doubtful {
		if told(e.keys.SubscriberTopics(bus.Token(s.token))) || told(e.keys.TopicSubscribers(bus.TopicName(s.name))) {
			continue
		}
		suspects = append(suspects, suspect{
			[]any{s.token, s.name},
			func(code string) string {
				if code == "subscribers_foreign" {
					return e.keys.TopicSubscribers(bus.TopicName(s.name))
				}
				return e.keys.SubscriberTopics(bus.Token(s.token))
			}, s.name,
		})
	}
	return e.verify(ctx, scriptCheckSubscription, inOrder(suspects), map[string]ruling{
		"subscription_half":      {problem: "and " + Keys{}.TopicSubscribers("{}") + " differ", remedy: "added to both"},
		"subscription_topicless": {problem: "names {}, or is named there, which is not in " + Keys{}.Topics(), remedy: "added there"},
		"subscription_dead":      {problem: "names {}, or is named there, and there is no such subscriber", remedy: "removed from both"},
		"topics_foreign":         {problem: nobodys},
		"subscribers_foreign":    {problem: nobodys},
	})
}

// nobodys tells of a key that may be left over, if it is not somebody else's.
const nobodys = "is named after nothing that the bus knows: it may be somebody else's"

// leaveForeignSets tells of sets that are only named like one side of the subscriptions.
func (e *examination) leaveForeignSets() {
	isTopic := func(text string) bool { return bus.TopicName(text).Validate() == nil }
	isToken := func(text string) bool { return bus.Token(text).Validate() == nil }
	look := func(key string, ours, listed bool, members map[string]bool, valid func(string) bool) {
		for member := range members {
			ours = ours && valid(member)
		}
		switch {
		case ours:
			return
		case listed:
			e.leave(key, "%s, though the bus lists whom it is named after", notOurs)
		default:
			e.leave(key, notOurs)
		}
		e.foreign[key] = true
	}
	for _, token := range sorted(e.topicsOf) {
		look(e.keys.SubscriberTopics(bus.Token(token)), isToken(token), e.subscribers[token], e.topicsOf[token], isTopic)
	}
	for _, name := range sorted(e.subscribersOf) {
		look(e.keys.TopicSubscribers(bus.TopicName(name)), isTopic(name), e.topics[name], e.subscribersOf[name], isToken)
	}
}

// longestPause is for how long the first of a line may be put off, unless its subscriber is left alone: a job that cannot be taken
// waits a minute, by a clock that may go ahead of ours.
const longestPause = 2 * time.Minute

func (e *examination) checkListed(ctx context.Context) error {
	var suspects []suspect
	latest := time.Now().Add(longestPause).UnixMilli()
	currents := map[string]int{}
	for l := range e.listed {
		currents[l.token]++
	}
	for l, inLine := range e.listed {
		waits := inLine && e.queues[bus.QueueMain].jobs[jobOf(l.bid)].scheduled
		if b := e.batches[l.bid]; b.there && b.token == l.token && currents[l.token] == 1 && !waits {
			continue
		}
		suspects = append(suspects, suspect{
			[]any{l.token, l.bid, latest},
			func(code string) string {
				if strings.HasPrefix(code, "line") {
					return e.jobs.Lane(bus.JobBatch, l.token)
				}
				return e.keys.Current(bus.Token(l.token))
			}, l.bid,
		})
	}
	return e.verify(ctx, scriptCheckListed, inOrder(suspects), map[string]ruling{
		"current_gone":    {problem: "lists {}, which is not there", remedy: "removed"},
		"current_alien":   {problem: "lists {}, another subscriber's", remedy: "removed"},
		"current_many":    {problem: "lists {} and a newer batch, must list one", remedy: "removed"},
		"current_foreign": {problem: nobodys},
		"line_foreign":    {problem: nobodys},

		"line_gone":  {problem: "lists {}, which is not there", remedy: "removed; the next in line is called"},
		"line_alien": {problem: "lists {}, another subscriber's", remedy: "removed; the next in line is called"},

		"line_uncalled": {problem: "begins with {}, which waits for its turn, though nobody is before it", remedy: "called, to be run now"},
	})
}

func (e *examination) checkWorkers(ctx context.Context) error {
	var suspects []suspect
	for _, q := range bus.Queues {
		for worker, jobs := range e.queues[q].holders {
			if jobs > 1 || !e.queues[q].registered[worker] {
				suspects = append(suspects, suspect{
					[]any{string(q), worker}, fixed(e.jobs.Pending(q, bus.WorkerID(worker))), string(q),
				})
			}
		}
	}
	return e.verify(ctx, scriptCheckWorker, inOrder(suspects), map[string]ruling{
		"worker_unlisted": {problem: "belongs to a worker that is not in " + queue.Keys{}.PendingIndex("{}"), remedy: "added there"},
		"worker_foreign":  {problem: notOurs},
		"worker_busy":     {problem: "has several jobs, must have one", remedy: "put back, all but the last"},
	})
}

// inOrder sorts suspects, so that what is told has an order.
func inOrder(suspects []suspect) []suspect {
	slices.SortFunc(suspects, func(a, b suspect) int {
		if d := strings.Compare(a.args[0].(string), b.args[0].(string)); d != 0 {
			return d
		}
		return strings.Compare(a.args[1].(string), b.args[1].(string))
	})
	return suspects
}

func sorted[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
