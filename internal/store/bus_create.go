package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// Errors that callers branch on.
var (
	// ErrNoBus means that there is no bus with partitions.
	ErrNoBus = errors.New("there is no bus with partitions")
	// ErrBusExists means that there is one.
	ErrBusExists = errors.New("there is a bus with partitions already")
	// ErrCopying means that `rtm copy` has begun to copy a bus to this Redis, and has not ended.
	ErrCopying = errors.New("`rtm copy` has begun to copy a bus to this Redis, and has not ended: run it again, with --restart, " +
		"or empty this Redis")
	// ErrMoved means that `rtm move` of an earlier version has moved the bus away, or had begun to.
	// Events published here would be missing there.
	ErrMoved = errors.New("an earlier version has moved the bus off this Redis, or has begun to: use the Redis that it was moved to; " +
		"or, if the move is to be given up, remove the field `?!` of the key plans")
	// errUnfinished is an [ErrNoBus] too: partitions may be there, and not all of them.
	errUnfinished = fmt.Errorf("%w: its creation was begun, and has not ended", ErrNoBus)
)

// DefaultPartitions is the number of partitions of a bus unless one is given. A bus can use at most
// that many masters.
const DefaultPartitions = 12

// begun, before their number, says that partitions are being made.
const begun = "creating "

// CreateBus creates a bus of count partitions, from 1 to [rdb.MaxPartitions]; the number never
// changes. It fails with [ErrBusExists], also if there are partitions but no record of their
// number, or with [bus.ErrUnavailable]. After that it can be repeated with the same number.
func CreateBus(ctx context.Context, redis *rdb.Client, namespace string, count int) error {
	key := layout.Keys{Namespace: namespace}.Partitions()
	at, mark := redis.At(key), begun+strconv.Itoa(count)
	if err := requireNone(ctx, redis, at, namespace); err != nil {
		return err
	}
	// Claim it first, so that no other process creates a different number of partitions meanwhile.
	claimed, err := at.SetNX(ctx, key, mark, 0).Result()
	if err == nil && !claimed {
		if err = requireMark(ctx, at, key, mark); err != nil {
			return err
		}
	}
	if err != nil {
		return rdb.Wrap("create the bus", err)
	}
	for _, p := range redis.Partitions(namespace, count) {
		if err := p.Release(ctx); err != nil {
			return fmt.Errorf("partition %d was not made; create the bus again, with %d partitions: %w", p.Number(), count, err)
		}
	}
	// The number is written last: a bus is not used before it is complete.
	return rdb.Wrap("create the bus", at.Set(ctx, key, count, 0).Err())
}

// requireNone fails with [ErrBusExists] if there are partitions but no record of their number: the
// node that kept the record has lost it, and another number would hide existing data. It fails with
// [bus.ErrUnavailable] unless every partition that it asks answers.
func requireNone(ctx context.Context, redis *rdb.Client, at *rdb.Partition, namespace string) error {
	if _, err := readCount(ctx, at, namespace); !errors.Is(err, ErrNoBus) || errors.Is(err, errUnfinished) {
		return nil // the next step checks the record
	}
	counts, err := findCounts(ctx, createTimeout, redis, namespace)
	if len(counts) > 0 {
		return fmt.Errorf("%w, and a node has lost their number, which web and worker write again as they start", ErrBusExists)
	}
	return rdb.Wrap("look for partitions", err)
}

// requireMark fails with [ErrBusExists], unless a bus is being made as a mark says.
func requireMark(ctx context.Context, at *rdb.Partition, key, mark string) error {
	text, err := at.Get(ctx, key).Result()
	if count, isBegun := strings.CutPrefix(text, begun); isBegun && text != mark {
		return fmt.Errorf("somebody has begun to create a bus with %s partitions: create it with that number", count)
	}
	if err == nil && text != mark {
		return ErrBusExists
	}
	return err
}

// OpenOne opens the store of a bus without partitions. It fails if Redis is a node of a cluster,
// with [ErrCopying] or [ErrMoved], and with [bus.ErrUnavailable]: events accepted before Redis
// answers might be removed by a copy that starts over.
func OpenOne(ctx context.Context, redis *rdb.Client, namespace string, o Options) (*Bus, error) {
	p := redis.Partition(namespace)
	err := p.RefuseClusterNode(ctx)
	if err == nil {
		err = requireWhole(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	return NewBus(New(p, o)), nil
}

// AwaitOne is [OpenOne] once Redis answers. It fails when its context ends.
func AwaitOne(ctx context.Context, redis *rdb.Client, namespace string, o Options) (*Bus, error) {
	for {
		all, err := OpenOne(ctx, redis, namespace, o)
		if !errors.Is(err, bus.ErrUnavailable) {
			return all, err
		}
		if pause(ctx, awaitInterval); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// requireWhole fails with [ErrCopying] while a bus is being copied to a Redis, given one of its
// partitions, with [ErrMoved], and with [bus.ErrUnavailable].
func requireWhole(ctx context.Context, p *rdb.Partition) error {
	keys := layout.Keys{Namespace: p.Namespace()}
	var copying rdb.Reply[int64]
	var moved rdb.Reply[string]
	err := p.Reads(ctx, "look for a copy", func(pipe rdb.Commands) {
		copying, moved = pipe.Exists(ctx, keys.Copying()), pipe.HGet(ctx, keys.Plans(), movedField)
	})
	switch {
	case err != nil:
		return err
	case copying.Val() > 0:
		return ErrCopying
	case strings.HasPrefix(moved.Val(), "closed"):
		return ErrMoved
	}
	return nil
}

// movedField is the field of the key plans in which `rtm move` of an earlier version recorded its
// state.
const movedField = "?!"

// lookTimeout is how long partitions may take to answer whether they are being copied.
const lookTimeout = time.Second

// requireSomeWhole fails with [ErrCopying] or [ErrMoved] if one of the partitions says so, and with
// [bus.ErrUnavailable] if none answers. All are marked before the first key is copied.
func requireSomeWhole(ctx context.Context, all rdb.Partitions) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var asking sync.WaitGroup
	errs, answered := make([]error, len(all)), false
	for i, p := range all {
		asking.Go(func() { errs[i] = requireWhole(ctx, p) })
	}
	asking.Wait()
	for _, err := range errs {
		if errors.Is(err, ErrCopying) || errors.Is(err, ErrMoved) {
			return err
		}
		answered = answered || err == nil
	}
	if !answered {
		return bus.ErrUnavailable
	}
	return nil
}

// OpenBus opens the stores of a bus with partitions. It fails with [ErrNoBus] or
// [bus.ErrUnavailable].
func OpenBus(ctx context.Context, redis *rdb.Client, namespace string, o Options) (*Bus, error) {
	count, err := PartitionCount(ctx, redis, namespace)
	if err != nil {
		return nil, err
	}
	return openCounted(redis, count, namespace, o), nil
}

func openCounted(redis *rdb.Client, count int, namespace string, o Options) *Bus {
	var all []*Store
	for _, p := range redis.Partitions(namespace, count) {
		all = append(all, New(p, o))
	}
	return NewBus(all...)
}

// awaitInterval is the pause between two looks for a bus.
const awaitInterval = time.Second

// AwaitBus waits until there is a bus and a part of Redis with one of its partitions answers, then
// opens it as [OpenBus] does. It logs what it waits for. If the node that kept the number of
// partitions has lost it, AwaitBus writes it again, as the partitions report it. Finder is another
// client of the same Redis, which logs nothing because it asks for partitions that may not exist.
// AwaitBus fails when its context ends, and with [ErrCopying] or [ErrMoved].
func AwaitBus(ctx context.Context, redis, finder *rdb.Client, namespace string, o Options, log *slog.Logger) (*Bus, error) {
	at := redis.At(layout.Keys{Namespace: namespace}.Partitions())
	for told := false; ; {
		count, err := awaitedCount(ctx, at, finder, namespace, log)
		isMissing := errors.Is(err, ErrNoBus)
		switch {
		case err == nil:
			all := openCounted(redis, count, namespace, o)
			if err := requireSomeWhole(ctx, all.Partitions()); !errors.Is(err, bus.ErrUnavailable) {
				return all, err
			}
		case !isMissing && !errors.Is(err, bus.ErrUnavailable):
			return nil, err
		}
		if isMissing && !told {
			log.Error("there is no bus on this cluster yet: `rtm cluster create` makes one", "namespace", namespace)
			told = true
		}
		if pause(ctx, awaitInterval); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// awaitedCount is [FindPartitionCount], and writes a number again that was lost.
func awaitedCount(ctx context.Context, at *rdb.Partition, finder *rdb.Client, namespace string, log *slog.Logger) (int, error) {
	// It takes the time that a call may take: of a call with less no failure is logged.
	count, failure := readCount(ctx, at, namespace)
	if !canBeFound(failure) {
		return count, failure
	}
	count, err := findCount(ctx, finder, namespace, failure)
	if err != nil || !errors.Is(failure, ErrNoBus) {
		return count, err
	}
	key := layout.Keys{Namespace: namespace}.Partitions()
	log.Error("a node has lost its keys, as the number of partitions among them, which was written again: "+
		"rtm cluster status shows what it had", "key", key, "partitions", count)
	return count, rdb.Wrap("write the number of partitions", at.SetNX(ctx, key, count, 0).Err())
}

// PartitionCount returns the number of partitions of a bus. It fails with [ErrNoBus] or
// [bus.ErrUnavailable].
func PartitionCount(ctx context.Context, redis *rdb.Client, namespace string) (int, error) {
	return readCount(ctx, redis.At(layout.Keys{Namespace: namespace}.Partitions()), namespace)
}

func readCount(ctx context.Context, at *rdb.Partition, namespace string) (int, error) {
	key := layout.Keys{Namespace: namespace}.Partitions()
	text, err := at.Get(ctx, key).Result()
	switch {
	case errors.Is(err, rdb.Nil):
		return 0, ErrNoBus
	case strings.HasPrefix(text, begun):
		return 0, errUnfinished
	}
	if err != nil {
		return 0, rdb.Wrap("read the number of partitions", err)
	}
	count, err := strconv.Atoi(text)
	if err != nil || count < 1 || count > rdb.MaxPartitions {
		return 0, fmt.Errorf("%s must be a number from 1 to %d, and is %q", key, rdb.MaxPartitions, text)
	}
	return count, nil
}

const (
	// findTimeout is how long [FindPartitionCount] waits for a node.
	findTimeout = 2 * time.Second
	// createTimeout is how long [CreateBus] waits for answers of partitions, which must not exist.
	createTimeout = 10 * time.Second
)

// FindPartitionCount is [PartitionCount], for operators. If the node that keeps the number is down
// or has lost it, it reads the number from the partitions, each of which records it.
func FindPartitionCount(ctx context.Context, redis *rdb.Client, namespace string) (int, error) {
	looking, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	count, err := PartitionCount(looking, redis, namespace)
	if canBeFound(err) {
		return findCount(ctx, redis, namespace, err)
	}
	return count, err
}

// canBeFound reports whether the partitions may provide their number after a failure to read it.
func canBeFound(failure error) bool {
	return errors.Is(failure, bus.ErrUnavailable) || errors.Is(failure, ErrNoBus) && !errors.Is(failure, errUnfinished)
}

// findCount asks partitions how many there are. It fails with a failure if none says that.
func findCount(ctx context.Context, redis *rdb.Client, namespace string, failure error) (int, error) {
	counts, _ := findCounts(ctx, findTimeout, redis, namespace)
	switch {
	case len(counts) == 1:
		return counts[0], nil
	case len(counts) > 1 && errors.Is(failure, ErrNoBus):
		return 0, fmt.Errorf("there are partitions of several buses, of %v partitions: set the key %s to the number of the right one",
			counts, layout.Keys{Namespace: namespace}.Partitions())
	}
	return 0, failure
}

// findCounts asks partitions for their number, and returns the distinct answers, ascending: more
// than one if partitions of several buses exist. Its error is from a partition that did not answer.
func findCounts(ctx context.Context, timeout time.Duration, redis *rdb.Client, namespace string) (counts []int, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var asking errgroup.Group
	var found [rdb.MaxPartitions + 1]atomic.Bool
	for count := range found {
		for _, p := range someOf(redis, namespace, count) {
			asking.Go(func() error {
				name, err := p.Get(ctx, p.Namespace()+rdb.PartitionKey).Result()
				if err == nil && name == p.Name() {
					found[count].Store(true)
				}
				return rdb.Wrap("ask a partition", err)
			})
		}
	}
	err = asking.Wait()
	for count := range found {
		if found[count].Load() {
			counts = append(counts, count)
		}
	}
	return counts, err
}

// someOf returns candidate partitions of a bus with count of them: all if that is the usual number,
// or else three, which are on different nodes.
func someOf(redis *rdb.Client, namespace string, count int) rdb.Partitions {
	if count == 0 {
		return nil
	}
	if count == DefaultPartitions {
		return redis.Partitions(namespace, count)
	}
	var some rdb.Partitions
	for _, number := range []int{0, count / 2, count - 1} {
		some = append(some, redis.NumberedPartition(namespace, rdb.Number(number), count))
	}
	return some
}
