package stores

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Keys is the key of how many partitions a bus has, under a namespace. It is of no partition, not
// of the founding layout, and a bus without partitions has none.
type Keys struct{ Namespace string }

// Partitions is a string: how many partitions the bus has. Written once.
func (k Keys) Partitions() string { return k.Namespace + "partitions" }

// Errors that callers branch on.
var (
	// ErrNoBus means that there is no bus with partitions.
	ErrNoBus = errors.New("there is no bus with partitions")
	// ErrExists means that there is one.
	ErrExists = errors.New("there is a bus with partitions already")
)

// Create makes a bus of so many partitions, from 1 to [rdb.MaxPartitions], which never changes. It
// fails with [ErrExists] or [bus.ErrUnavailable], and can be repeated after that.
func Create(ctx context.Context, redis *rdb.Client, namespace string, count int) error {
	_, err := readCount(ctx, redis, namespace)
	if !errors.Is(err, ErrNoBus) {
		if err == nil {
			err = ErrExists
		}
		return err
	}
	for _, p := range redis.Partitions(namespace, count) {
		if err := p.Release(ctx); err != nil {
			return err
		}
	}
	// It comes last: nobody uses a bus before it is complete.
	key := Keys{namespace}.Partitions()
	created, err := redis.At(key).SetNX(ctx, key, count, 0).Result()
	if err == nil && !created {
		return ErrExists
	}
	return rdb.Wrap("create the bus", err)
}

// Open opens the stores of a bus with partitions. It fails with [ErrNoBus] or [bus.ErrUnavailable].
func Open(ctx context.Context, redis *rdb.Client, namespace string, o store.Options) (*Stores, error) {
	count, err := readCount(ctx, redis, namespace)
	if err != nil {
		return nil, err
	}
	var all []*store.Store
	for _, p := range redis.Partitions(namespace, count) {
		all = append(all, store.New(p, o))
	}
	return New(all...), nil
}

func readCount(ctx context.Context, redis *rdb.Client, namespace string) (int, error) {
	key := Keys{namespace}.Partitions()
	text, err := redis.At(key).Get(ctx, key).Result()
	if errors.Is(err, rdb.Nil) {
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
