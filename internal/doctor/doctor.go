// Package doctor finds violations of the data layout's invariants in a bus's Redis and repairs
// them. The namespace must belong to the bus: a key that the layout does not know is reported and
// skipped, and every other key is treated as the bus's.
//
// The bus may run meanwhile. A scan reads all keys in slices. It is no snapshot, so a mismatch is
// only a candidate: the finding to report, the checks that prove it, and the commands that repair
// it. After a pause one script runs the checks of a candidate and, if all of them hold, the repair,
// in one atomic step. So doctor never reports work in progress as damage, and no repair acts on
// changed data.
//
// A [Scan] holds the data read from a partition, and an [Examination] judges it: rules.go has what
// most rules share, and a file a noun the rules of topics, subscribers, entries of queues, batches,
// letters, histories, replays, jobs, labels, accounts and outboxes. Counts, such as gauges, are
// counted again until nothing has changed meanwhile. A [Comparison] compares the partitions of a
// bus that has several.
package doctor

import (
	"context"
	"errors"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// keys are without a namespace, as findings show them.
var keys = layout.Keys{}

// Stats are the counts of an examination.
type Stats struct {
	Batches, Jobs, Subscribers, Topics int
	// Failing is how many subscribers have failed since their last success.
	Failing int
	// Risks are sentences that say which data a crash or a full Redis would lose.
	Risks []string
	// Unchecked names the keys that changed too fast to be checked.
	Unchecked []string
}

// Doctor examines one partition, or all of a bus.
type Doctor struct {
	partitions []*rdb.Partition
	all        *store.Bus // nil for one partition
	pause      time.Duration
}

// New makes a doctor for a partition. It waits for the pause before it checks candidates again, so
// that work in progress can finish; a pause of 0 is for tests.
func New(partition *rdb.Partition, pause time.Duration) *Doctor {
	return &Doctor{partitions: []*rdb.Partition{partition}, pause: pause}
}

// Of is [New] for all stores of a bus. If it has partitions, they are also compared.
func Of(all *store.Bus, pause time.Duration) *Doctor {
	d := New(all.First().Partition(), pause)
	if !d.partitions[0].IsOneOfSeveral() {
		return d
	}
	d.all, d.partitions = all, nil
	for _, st := range all.All() {
		d.partitions = append(d.partitions, st.Partition())
	}
	return d
}

// Pause is a good pause for [New].
const Pause = time.Second

// Examine reads all keys of each partition, a slice at a time, and reports violations of these
// rules:
//
//   - a batch has its list and its index entry, a subscriber, and exactly one job in exactly one
//     state;
//   - the index of a queue's jobs is the union of the three states;
//   - a worker has at most one pending job, and is in the index of workers that may have one;
//   - a current batch is listed under its own subscriber, one at a time;
//   - an entry of a lane has a batch of the lane's subscriber, and the first does not wait for its
//     turn;
//   - lanes, and their current batches, belong to a subscriber with such lanes; publishes use the
//     options' version of the lanes, and the options count the batches that a change waits for;
//   - gauges equal the data, including the gauges of dead letters;
//   - options and records of attempts have a subscriber, with the plan of the options; a batch's
//     state has its batch, and a gap record its notice;
//   - the housekeeping knows every subscriber that keeps batches for an age or a number of events;
//   - a dead letter and its entry in the subscriber's index exist together;
//   - a history has a topic that keeps it, and a limit; it ends with the topic's newest event, and
//     its size is the size of its entries;
//   - a replay has a subscriber and is in its set, and while it runs in the set of running ones;
//     only running ones have a set of batches;
//   - a service's job has a type, data and, until it has ended, its entry; it is in its type's
//     list, and counts against the limit of its type while it is in progress;
//   - a label has metadata and is in the list of its state only, and in the list of errored ones if
//     it is errored; it has an entry if it was asked for, if a trigger is not over, or if it is in
//     an action and not errored;
//   - a client's account equals the bytes of its job types and the labels it has made; a type
//     states the bytes of itself and its jobs;
//   - a machine's outbox has only moves, which are numbered, and an entry to publish them;
//   - topics and subscribers name each other;
//   - hashes of topics, subscribers and deliveries have the layout's fields, under today's names;
//   - every key is one that the layout knows;
//   - Redis runs scripts.
//
// On a bus with partitions also:
//
//   - a partition is not held;
//   - events for another partition have a relay; the record of events being relayed matches the
//     outbox; no generation is used twice;
//   - subscribers, topics' counters and histories, job types and labels are in their own partition;
//   - the definitions of state machines are the same everywhere;
//   - every partition has each token as the token's own partition has it;
//   - a topic with subscribers in a partition exists at its home, which relays it there. The bus
//     itself ends a relay that no subscriber needs any more.
//
// Examine reports a partition that is held or unavailable, and examines the others.
//
// With fix it repairs its findings, unless that might lose an event for a subscriber that is still
// to receive it. It skips what it cannot judge: unknown keys and fields, unreadable jobs, and
// batches of the Ruby original with everything that refers to them. It fails with
// [bus.ErrUnavailable], when its context ends, and for a bus without partitions on a node of a
// Redis Cluster.
func (d *Doctor) Examine(ctx context.Context, fix bool, observe func(Finding)) (Stats, error) {
	if p := d.partitions[0]; !p.IsOneOfSeveral() {
		if err := p.RefuseClusterNode(ctx); err != nil {
			return Stats{}, err
		}
	}
	options := examOptions{Fix: fix, Pause: d.pause, Observe: observe}
	compared := newComparison(d.all, options)
	var sum Stats
	for _, p := range d.partitions {
		e := newExamination(p, options)
		whole, err := examine(ctx, e)
		err = rdb.Wrap("examine", err)
		sum.add(e)
		sum.addRisks(ctx, p)
		if d.all != nil && errors.Is(err, bus.ErrUnavailable) && ctx.Err() == nil {
			e.Report(rdb.PartitionKey, "", "is away: not examined, or not to the end")
			continue
		}
		if err != nil {
			return sum, err
		}
		if whole {
			compared.Add(e)
		}
	}
	if d.all == nil {
		return sum, nil
	}
	return sum, rdb.Wrap("compare partitions", compared.Find(ctx))
}

// examine examines a partition. It reports whether that could be read.
func examine(ctx context.Context, e *Examination) (whole bool, err error) {
	if err := findCopying(ctx, e); err != nil {
		return false, err
	}
	if err := findLoss(ctx, e); err != nil { // it may be why the partition is held
		return false, err
	}
	if refusal := e.Redis.RefusesScripts(ctx); refusal != "" {
		e.Report("scripts", "", "redis refuses to run them (%s), so nothing was examined: publishers get 503, and nothing is delivered", refusal)
		return false, nil
	}
	if open, err := isOpenPartition(ctx, e); !open || err != nil {
		return false, err
	}
	// Without the single keys nothing else can be read.
	if sound, err := checkTypes(ctx, e, Sorted(layout.Singles)); !sound || err != nil {
		return false, err
	}
	return true, examineKeys(ctx, e)
}

// findCopying reports that a bus is being copied here, so that not all of it is there.
func findCopying(ctx context.Context, e *Examination) error {
	begun, err := e.Redis.Exists(ctx, e.Keys.Copying()).Result()
	if err == nil && begun > 0 {
		e.Report(keys.Copying(), "", "says that %v. Web and worker do not start until then", store.ErrCopying)
	}
	return rdb.Wrap("look for a copy", err)
}

// findLoss reports a data loss that a process has noticed. The remaining data may be consistent.
func findLoss(ctx context.Context, e *Examination) error {
	loss, err := e.Redis.Loss(ctx)
	if loss != nil {
		e.Report(keys.Identity(), "", "%s A process noticed it at %s. Restore a backup if you have one, then acknowledge the loss: `rtm doctor --accept-loss`",
			loss.Kind, loss.FoundAt.UTC().Format(time.RFC3339))
	}
	return err
}

func examineKeys(ctx context.Context, e *Examination) error {
	if err := e.Read(ctx); err != nil {
		return err
	}
	if _, err := checkTypes(ctx, e, Sorted(e.Strange)); err != nil {
		return err
	}
	reportSkipped(e)
	findRenamed(e)
	if _, err := e.Confirm(ctx); err != nil { // the rules below treat it as moved
		return err
	}
	findOfTopics(e)
	findOutboxes(e)
	findOfSubscribers(e)
	findCurrent(e)
	findLanes(e)
	findWorkers(e)
	findLetters(e)
	findHistories(e)
	findReplays(e)
	findJobs(e)
	findLabels(e)
	findAccounts(e)
	findLeftovers(e)
	findForeign(e)
	if _, err := e.Confirm(ctx); err != nil {
		return err
	}
	findEntries(e)
	findRelays(e)
	findWork(e)
	findLabelEntries(e)
	if _, err := e.Confirm(ctx); err != nil {
		return err
	}
	for _, check := range []func(context.Context, *Examination) error{
		checkGauges, checkGeneration, checkMoves, checkAccounts, checkLetters, checkHistories,
	} {
		if err := check(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// addRisks adds the risks that the Redis of a partition reports.
func (s *Stats) addRisks(ctx context.Context, p *rdb.Partition) {
	risks, _ := p.Risks(ctx) // if it is away, that is found elsewhere
	for _, risk := range risks {
		if !slices.Contains(s.Risks, risk) {
			s.Risks = append(s.Risks, risk)
		}
	}
}

// add adds the counts of a partition. A topic counts at its home.
func (s *Stats) add(e *Examination) {
	subscribers := e.Elements[keys.Subscribers()]
	s.Subscribers += len(subscribers)
	for topic := range e.Elements[keys.Topics()] {
		if !e.Redis.IsOneOfSeveral() || e.Redis.Owns(topic) {
			s.Topics++
		}
	}
	for _, what := range e.Unchecked {
		if number := e.Redis.NumberIfSeveral(); number != "" {
			what = number + " " + what
		}
		s.Unchecked = append(s.Unchecked, what)
	}
	for token := range subscribers {
		subscriber, delivery := keys.Subscriber(bus.Token(token)), keys.Delivery(bus.Token(token))
		if e.Has(delivery, "throttled_until") || e.Has(subscriber, "throttled_until") {
			s.Failing++
		}
	}
	for _, q := range e.Queues {
		for _, j := range q.Entries {
			if j.There {
				s.Batches++
			}
			if j.Listed || j.States() > 0 {
				s.Jobs++
			}
		}
	}
}
