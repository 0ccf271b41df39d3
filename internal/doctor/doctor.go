// Package doctor finds what contradicts the data layout's invariants in a bus's Redis, and repairs
// it. It requires that the namespace is the bus's own: a key that the layout does not know is
// reported and skipped, and everything else is taken for the bus's.
//
// The bus may run meanwhile. A first pass reads all keys in slices. What it reads is no snapshot,
// so what does not fit is only a candidate. After a pause the candidates are looked at again, and
// each that still does not fit is confirmed by a script that looks at this one thing in one atomic
// step, and repairs it in the same step. So nothing is reported that is only under way, and no
// repair acts on what has changed in the meantime.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Finding is something in Redis that contradicts the data layout's invariants. It shows clients by
// name, never a token.
type Finding struct {
	Key     string
	Problem string
	// Remedy is what was done about it or, if it was not fixed, what would be; empty if it is
	// skipped.
	Remedy string
	Fixed  bool
}

func (f Finding) String() string { return f.Key + ": " + f.Problem }

// Stats are the counts of an examination.
type Stats struct {
	Batches, Jobs, Subscribers, Topics int
	// Failing is how many subscribers have failed since their last success.
	Failing int
	// Unchecked names what changed too fast to be checked.
	Unchecked []string
}

// Doctor examines one partition.
type Doctor struct {
	redis *rdb.Partition
	pause func(context.Context) error
	// maxSearched is the longest list of instant jobs that one step searches.
	maxSearched int
}

// defaultMaxSearched entries of a list are searched by Redis in some 2 ms.
const defaultMaxSearched = 100_000

// New makes a doctor for a partition. Before it looks again at what does not fit it waits for a
// pause, so that what is under way meanwhile comes to an end; a pause of 0 is for tests.
func New(partition *rdb.Partition, pause time.Duration) *Doctor {
	return &Doctor{redis: partition, pause: sleep(pause), maxSearched: defaultMaxSearched}
}

// Pause is a good pause for [New].
const Pause = time.Second

// sleep returns what waits for a time. It fails when its context ends before.
func sleep(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}
}

// Examine reads all keys of the partition, a slice at a time, and reports what is wrong:
//
//   - a batch has its list and its index entry, a subscriber, and exactly one job in exactly one
//     state;
//   - the index of a queue's jobs is the union of the three states;
//   - a worker has at most one pending job, and is in the index of those that may have one;
//   - a current batch is listed under its own subscriber, one at a time;
//   - what is in a lane has a batch of its subscriber, and the first does not wait for its turn;
//   - gauges equal what is there;
//   - topics and subscribers name each other;
//   - hashes of topics, subscribers and deliveries have the layout's fields, under today's names;
//   - there is no key that the layout does not know.
//
// With fix it repairs what it finds, unless that might take an event from somebody who is still to
// receive it. What cannot be judged is skipped: unknown keys and fields, jobs that cannot be read,
// and batches of the Ruby original with all that points to them. It fails with
// [bus.ErrUnavailable], when its context ends, and on a node of a Redis Cluster.
func (d *Doctor) Examine(ctx context.Context, fix bool, observe func(Finding)) (Stats, error) {
	e := &examination{
		scan: newScan(d.redis), doctor: d, fix: fix, observe: observe, skipped: map[Finding]bool{},
	}
	if err := e.refuseCluster(ctx); err != nil {
		return Stats{}, err
	}
	for _, step := range []func(context.Context) error{
		e.checkSingleKeys, // without which nothing else can be read
		e.read,
		e.checkKeys,
		e.checkFields,
		e.checkRenamed,
		e.checkTopics,
		e.checkSubscribers,
		e.checkSubscriptions,
		e.checkJobs,
		e.checkCurrent,
		e.checkLanes,
		e.checkWorkers,
		e.checkGauges, // which a repair may have changed
	} {
		if err := step(ctx); err != nil {
			return e.stats(), rdb.Wrap("examine", err)
		}
		if e.unreadable {
			break
		}
	}
	return e.stats(), nil
}

// errCluster says that nothing is to be expected of this Redis.
var errCluster = errors.New("this Redis is a node of a Redis Cluster, which the bus does not support")

func (e *examination) refuseCluster(ctx context.Context) error {
	is, err := e.redis.Client().IsClusterNode(ctx)
	if is {
		return errCluster
	}
	return err
}

// examination is one run.
type examination struct {
	*scan
	doctor  *Doctor
	fix     bool
	observe func(Finding)
	// unreadable is set when a key that everything depends on is not of its type.
	unreadable bool
	// paused is set once it was waited for what is under way to come to an end.
	paused    bool
	unchecked []string
	// skipped is what was reported and is skipped.
	skipped map[Finding]bool
}

func (e *examination) stats() Stats {
	s := Stats{Subscribers: len(e.subscribers), Topics: len(e.topics), Unchecked: e.unchecked}
	for token := range e.failing {
		if e.subscribers[token] {
			s.Failing++
		}
	}
	for _, b := range e.batches {
		if b.there {
			s.Batches++
		}
	}
	for _, q := range bus.Queues {
		s.Jobs += len(e.queues[q].jobs)
	}
	return s
}

// found reports something that has a remedy.
func (e *examination) found(key, remedy, format string, args ...any) {
	f := Finding{
		Key: e.show(key), Problem: fmt.Sprintf(format, args...), Remedy: remedy, Fixed: e.fix && remedy != "",
	}
	if remedy == "" { // one key may be met several times
		if e.skipped[f] {
			return
		}
		e.skipped[f] = true
	}
	e.observe(f)
}

// skip reports something that is left as it is.
func (e *examination) skip(key, format string, args ...any) { e.found(key, "", format, args...) }

// show is a key without its namespace, and with a client's name for its token.
func (e *examination) show(key string) string {
	key = strings.TrimPrefix(key, e.keys.Namespace)
	k := store.Keys{}
	for _, prefix := range []string{
		k.Subscriber(""), k.SubscriberTopics(""), k.Current(""), k.Delivery(""), k.Failed(""),
		queue.Keys{}.Lane(bus.JobBatch, ""), oldLane,
	} {
		if token, ok := strings.CutPrefix(key, prefix); ok {
			return prefix + e.name(token)
		}
	}
	for i := range len(key) { // a key that the layout does not know may have a token all the same
		if key[i] == ':' && e.isToken(key[i+1:]) {
			return key[:i+1] + e.name(key[i+1:])
		}
	}
	return key
}

func (e *examination) isToken(text string) bool {
	_, known := e.names[text]
	return known || e.subscribers[text]
}

// name is a client's name, which does not tell its token. What can be no token is shown as it is.
func (e *examination) name(token string) string {
	if bus.Token(token).Validate() != nil && !e.isToken(token) {
		return token
	}
	return string(bus.PublicName(bus.Token(token), bus.ClientName(e.names[token])))
}

// remedy is what is reported of a problem that a script has confirmed, and what the script does
// about it; {} stands for what was checked.
type remedy struct{ problem, done string }

// candidate is something that does not fit, to be confirmed by a script.
type candidate struct {
	key   string
	about string
	args  []any
}

// scriptsPerTrip bounds how many short scripts one round trip runs.
const scriptsPerTrip = 50

// confirm has a script look at candidates, one each, and reports what it confirms. The script
// returns codes of remedies.
func (e *examination) confirm(
	ctx context.Context, script *rdb.Script, candidates []candidate, remedies map[string]remedy,
) error {
	if len(candidates) == 0 {
		return nil
	}
	if err := e.pauseOnce(ctx); err != nil {
		return err
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return strings.Compare(a.key+"\n"+a.about, b.key+"\n"+b.about)
	})
	for some := range slices.Chunk(candidates, scriptsPerTrip) {
		calls := make([]rdb.Call, len(some))
		for i, c := range some {
			calls[i] = script.Call(append([]any{e.fix}, c.args...)...)
		}
		for i, result := range e.redis.RunAll(ctx, calls...) {
			codes, err := result.Strings()
			if err := e.excuse(some[i].key, err); err != nil {
				return err
			}
			for _, code := range codes {
				r := remedies[code]
				e.found(some[i].key, r.done, "%s", strings.ReplaceAll(r.problem, "{}", some[i].about))
			}
		}
	}
	return nil
}

// excuse turns an error that is Redis' reply into a finding that is skipped: a script met something
// that is not of its type. Others are returned.
func (e *examination) excuse(key string, err error) error {
	if err == nil || !rdb.Answered(err) {
		return err
	}
	e.skip(key, "cannot be checked: %v", err)
	return nil
}

// pauseOnce waits when something does not fit, before it is looked at again.
func (e *examination) pauseOnce(ctx context.Context) error {
	if e.paused {
		return nil
	}
	e.paused = true
	return e.doctor.pause(ctx)
}
