package inspect

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Bus reads all partitions of a bus. It is safe for concurrent use.
type Bus struct {
	all  *store.Bus
	each []*Inspector // by number of the partition
}

// OfBus returns the stats of a bus.
func OfBus(all *store.Bus) *Bus {
	b := &Bus{all: all}
	for _, st := range all.All() {
		b.each = append(b.each, Of(st))
	}
	return b
}

// EachTopics is [Inspector.EachTopics] of all partitions.
func (b *Bus) EachTopics(ctx context.Context, p Page, each func([]bus.Topic) error) (damaged []string, err error) {
	return merge(b.each, p, func(of *Inspector, each func([]bus.Topic) error) ([]string, error) {
		return of.EachTopics(ctx, p, each)
	}, func(t bus.Topic) string { return string(t.Name) }, each)
}

// EachSubscribers is [Inspector.EachSubscribers] of all partitions.
func (b *Bus) EachSubscribers(ctx context.Context, p Page, each func([]bus.Subscriber) error) (damaged []string, err error) {
	nameOf, err := b.namer(ctx)
	if err != nil {
		return nil, err
	}
	return merge(b.each, p, func(of *Inspector, each func([]bus.Subscriber) error) ([]string, error) {
		return of.EachSubscribers(ctx, p, each)
	}, nameOf, each)
}

// namer returns the public names of subscribers' clients.
func (b *Bus) namer(ctx context.Context) (func(bus.Subscriber) string, error) {
	if len(b.each) == 1 {
		return nil, nil // nothing is merged
	}
	names, err := b.all.Tokens(ctx)
	return func(sub bus.Subscriber) string { return string(bus.PublicName(sub.Token, names[sub.Token])) }, err
}

// TopicDetail is [Inspector.TopicDetail], with the subscribers of all partitions.
func (b *Bus) TopicDetail(ctx context.Context, topic bus.TopicName) (d TopicDetail, damaged []string, err error) {
	home := b.all.Partitions().Home(topic).Number()
	d, damaged, err = b.each[home].TopicDetail(ctx, topic)
	if err != nil || len(b.each) == 1 {
		return d, damaged, err
	}
	nameOf, err := b.namer(ctx)
	if err != nil {
		return d, damaged, err
	}
	var mu sync.Mutex
	var group errgroup.Group
	for number, of := range b.each {
		if rdb.Number(number) == home {
			continue
		}
		group.Go(func() error {
			there, more, err := of.TopicDetail(ctx, topic)
			mu.Lock()
			defer mu.Unlock()
			d.Subscribers, damaged = append(d.Subscribers, there.Subscribers...), append(damaged, more...)
			if errors.Is(err, bus.ErrTopicUnknown) {
				return nil // no client there was ever subscribed to it
			}
			return err
		})
	}
	err = group.Wait()
	slices.SortFunc(d.Subscribers, func(a, b bus.Subscriber) int {
		return cmp.Or(cmp.Compare(nameOf(a), nameOf(b)), cmp.Compare(a.Token, b.Token))
	})
	return d, damaged, err
}

// perCall is the maximum number of items in one call of a function with a merged list.
const perCall = 100

// merge calls a function with the items of a page, some at a time. The items come from the lists of
// several inspectors, each in the order of names. Items of one name are on one page.
func merge[T any](
	all []*Inspector, p Page, list func(of *Inspector, each func([]T) error) (damaged []string, err error),
	name func(T) string, each func([]T) error,
) (damaged []string, err error) {
	if len(all) == 1 {
		return list(all[0], each)
	}
	sources := make([]*source[T], len(all))
	var filling sync.WaitGroup
	for i, of := range all {
		sources[i] = newSource(func(each func([]T) error) ([]string, error) { return list(of, each) })
		defer sources[i].stop()
		filling.Go(sources[i].fill)
	}
	filling.Wait()
	var some []T
	for listed, last := 0, ""; ; listed++ {
		var least *source[T]
		for _, s := range sources {
			if s.err != nil {
				return damaged, s.err
			}
			if len(s.items) > 0 && (least == nil || name(s.items[0]) < name(least.items[0])) {
				least = s
			}
		}
		if least == nil || p.Limit > 0 && listed >= p.Limit && name(least.items[0]) != last {
			break
		}
		last, some = name(least.items[0]), append(some, least.items[0])
		least.items = least.items[1:]
		if len(least.items) == 0 {
			least.fill()
		}
		if len(some) == perCall {
			if err := each(some); err != nil {
				return damaged, err
			}
			some = nil
		}
	}
	for _, s := range sources {
		s.stop()
		damaged = append(damaged, s.damaged...)
	}
	if len(some) > 0 {
		err = each(some)
	}
	return damaged, err
}

// source is one of the lists that are merged, read as far as it is needed.
type source[T any] struct {
	items   []T
	next    func() ([]T, bool)
	stop    func()
	damaged []string
	err     error
}

var errStopped = errors.New("the rest of the list is not needed")

func newSource[T any](list func(each func([]T) error) (damaged []string, err error)) *source[T] {
	s := &source[T]{}
	s.next, s.stop = iter.Pull(func(yield func([]T) bool) {
		s.damaged, s.err = list(func(items []T) error {
			if !yield(items) {
				return errStopped
			}
			return nil
		})
	})
	return s
}

// fill reads the next items, unless these were the last or there is an error.
func (s *source[T]) fill() {
	for more := true; more && len(s.items) == 0; {
		s.items, more = s.next()
	}
}
