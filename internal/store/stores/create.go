package stores

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

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Keys is the key of how many partitions a bus has, under a namespace. It is of no partition, not
// of the founding layout, and a bus without partitions has none.
type Keys struct{ Namespace string }

// Partitions is a string: how many partitions the bus has, which never changes; with "creating "
// before it until all are there.
func (k Keys) Partitions() string { return k.Namespace + "partitions" }

// Errors that callers branch on.
var (
	// ErrNoBus means that there is no bus with partitions.
	ErrNoBus = errors.New("there is no bus with partitions")
	// ErrExists means that there is one.
	ErrExists = errors.New("there is a bus with partitions already")
)

// DefaultPartitions is how many partitions a bus has unless somebody says otherwise. That many
// masters are of use at most.
const DefaultPartitions = 12

// begun, before their number, says that partitions are being made.
const begun = "creating "

// Create makes a bus of so many partitions, from 1 to [rdb.MaxPartitions], which never changes. It
// fails with [ErrExists] or [bus.ErrUnavailable], and can be repeated after that, with the same
// number.
func Create(ctx context.Context, redis *rdb.Client, namespace string, count int) error {
	key := Keys{namespace}.Partitions()
	at, mark := redis.At(key), begun+strconv.Itoa(count)
	// It is claimed first, so that nobody else makes partitions of another number meanwhile.
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
	// It comes last: nobody uses a bus before it is complete.
	return rdb.Wrap("create the bus", at.Set(ctx, key, count, 0).Err())
}

// requireMark fails with [ErrExists], unless a bus is being made as a mark says.
func requireMark(ctx context.Context, at *rdb.Partition, key, mark string) error {
	text, err := at.Get(ctx, key).Result()
	if count, isBegun := strings.CutPrefix(text, begun); isBegun && text != mark {
		return fmt.Errorf("somebody has begun to create a bus with %s partitions: create it with that number", count)
	}
	if err == nil && text != mark {
		return ErrExists
	}
	return err
}

// lookTimeout is how long [OpenOne] waits for Redis.
const lookTimeout = time.Second

// OpenOne opens the store of a bus without partitions. It does not need Redis; but if that answers,
// and is a node of a cluster, it fails.
func OpenOne(ctx context.Context, redis *rdb.Client, namespace string, o store.Options) (*Stores, error) {
	p := redis.Partition(namespace)
	looking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if err := p.RefuseClusterNode(looking); err != nil && !errors.Is(err, bus.ErrUnavailable) && looking.Err() == nil {
		return nil, err
	}
	return New(store.New(p, o)), nil
}

// Open opens the stores of a bus with partitions. It fails with [ErrNoBus] or [bus.ErrUnavailable].
func Open(ctx context.Context, redis *rdb.Client, namespace string, o store.Options) (*Stores, error) {
	count, err := Count(ctx, redis, namespace)
	if err != nil {
		return nil, err
	}
	return openCounted(redis, count, namespace, o), nil
}

func openCounted(redis *rdb.Client, count int, namespace string, o store.Options) *Stores {
	var all []*store.Store
	for _, p := range redis.Partitions(namespace, count) {
		all = append(all, store.New(p, o))
	}
	return New(all...)
}

// awaitInterval is the pause between two looks for a bus.
const awaitInterval = time.Second

// Await is [Open] once there is a bus, and a part of Redis answers that has one of its partitions.
// Until then it says in the log what it waits for. Finder is another client of the same Redis,
// which logs nothing: it asks for partitions that may not be there. Await fails when its context
// ends.
func Await(ctx context.Context, redis, finder *rdb.Client, namespace string, o store.Options, log *slog.Logger) (*Stores, error) {
	at := redis.At(Keys{namespace}.Partitions())
	for told := false; ; {
		count, err := readCountFor(ctx, findTimeout, at, namespace)
		if errors.Is(err, bus.ErrUnavailable) {
			count, err = findCount(ctx, finder, namespace, err)
		}
		isMissing := errors.Is(err, ErrNoBus)
		switch {
		case err == nil:
			return openCounted(redis, count, namespace, o), nil
		case !isMissing && !errors.Is(err, bus.ErrUnavailable):
			return nil, err
		}
		if isMissing && !told {
			log.Error("there is no bus on this cluster yet: `rtm cluster create` makes one", "namespace", namespace)
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(awaitInterval):
		}
	}
}

// Count is how many partitions a bus has. It fails with [ErrNoBus] or [bus.ErrUnavailable].
func Count(ctx context.Context, redis *rdb.Client, namespace string) (int, error) {
	return readCount(ctx, redis.At(Keys{namespace}.Partitions()), namespace)
}

func readCount(ctx context.Context, at *rdb.Partition, namespace string) (int, error) {
	key := Keys{namespace}.Partitions()
	text, err := at.Get(ctx, key).Result()
	if errors.Is(err, rdb.Nil) || strings.HasPrefix(text, begun) {
		return 0, ErrNoBus
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

// readCountFor is readCount, for so long at most.
func readCountFor(ctx context.Context, timeout time.Duration, at *rdb.Partition, namespace string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return readCount(ctx, at, namespace)
}

// findTimeout is how long [FindCount] waits for a node.
const findTimeout = 2 * time.Second

// FindCount is [Count], for operators. If the node is away that has the number, it takes it from
// the partitions, each of which says how many there are.
func FindCount(ctx context.Context, redis *rdb.Client, namespace string) (int, error) {
	count, err := readCountFor(ctx, findTimeout, redis.At(Keys{namespace}.Partitions()), namespace)
	if errors.Is(err, bus.ErrUnavailable) {
		return findCount(ctx, redis, namespace, err)
	}
	return count, err
}

// findCount asks partitions how many there are. It fails with a failure if none says that, or not
// all say the same.
func findCount(ctx context.Context, redis *rdb.Client, namespace string, failure error) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	var asking sync.WaitGroup
	var found [rdb.MaxPartitions + 1]atomic.Bool
	for count := range found {
		for _, p := range someOf(redis, namespace, count) {
			asking.Go(func() {
				if isThere(ctx, p) {
					found[count].Store(true)
				}
			})
		}
	}
	asking.Wait()
	only := 0
	for count := range found {
		switch {
		case !found[count].Load():
		case only != 0:
			return 0, failure
		default:
			only = count
		}
	}
	if only == 0 {
		return 0, failure
	}
	return only, nil
}

// someOf returns partitions of a bus that has so many, if there is one: all of the usual number, or
// else three, which are on different nodes.
func someOf(redis *rdb.Client, namespace string, count int) rdb.Partitions {
	if count == 0 {
		return nil
	}
	all := redis.Partitions(namespace, count)
	if count == DefaultPartitions {
		return all
	}
	return rdb.Partitions{all[0], all[count/2], all[count-1]}
}

// isThere is whether a partition says what it is. One that is held does not.
func isThere(ctx context.Context, p *rdb.Partition) bool {
	name, err := p.Get(ctx, p.Namespace()+rdb.PartitionKey).Result()
	return err == nil && name == p.Name()
}
