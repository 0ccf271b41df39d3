package buscopy

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"routemaster/internal/doctor"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// The limits of one round trip: elements of a list, and bytes. Keys are of very different sizes, so
// a trip takes twice as many as the last while it is small, and half as many once it is large.
const (
	elementsPerTrip = 100
	smallTrip       = 1 << 20
	largeTrip       = 4 << 20
)

// item is a key that is being copied.
type item struct {
	key  string // without the namespace
	f    layout.Family
	rest string // the key after the family's prefix

	isBegun bool
	owner   owner // of the key, if it has one
	ttl     rdb.Reply[int64]

	cursor   uint64 // of the next page
	position int64  // of the next part of a list
	page     rdb.PageReply
	part     rdb.Reply[[]string]
	text     rdb.Reply[string]
}

// copyKeys copies keys of a partition.
func (c *copying) copyKeys(ctx context.Context, from *rdb.Partition, names []string) error {
	var waiting []*item
	for _, key := range names {
		f, rest := doctor.FamilyOf(key)
		if !c.isCopied(from, f, rest) {
			continue
		}
		if !c.isSame && isEach(f) {
			if c.split[from.Namespace()+key] {
				continue
			}
			c.split[from.Namespace()+key] = true
		}
		waiting = append(waiting, &item{key: key, f: f, rest: rest})
	}
	for size := 16; len(waiting) > 0; {
		size = min(size, len(waiting))
		trip, left := waiting[:size], waiting[size:]
		bytes, unfinished, err := c.copySome(ctx, from, trip)
		if err != nil {
			return err
		}
		waiting = append(unfinished, left...)
		switch {
		case bytes < smallTrip:
			size *= 2
		case bytes > largeTrip:
			size = max(1, size/2)
		}
	}
	return nil
}

// isCopied reports whether a key is copied rather than made anew.
func (c *copying) isCopied(from *rdb.Partition, f layout.Family, rest string) bool {
	switch {
	case f.Whose == layout.Never:
		return false
	case c.isSame:
		return true
	case f.Whose == layout.Own || f.Whose == layout.Counted:
		return false
	}
	return !isOfOwnQueue(f, rest)
}

// copySome copies a part of each of some keys, and returns the unfinished ones.
func (c *copying) copySome(ctx context.Context, from *rdb.Partition, items []*item) (bytes int, unfinished []*item, err error) {
	err = from.Reads(ctx, "read", func(pipe rdb.Commands) {
		for _, it := range items {
			c.ask(ctx, pipe, from, it)
		}
	})
	if err != nil {
		return 0, nil, err
	}
	w := newWriting(c, from)
	for _, it := range items {
		elements, more, err := it.take()
		if err != nil {
			return 0, nil, fmt.Errorf("%s of partition %v cannot be read, see `rtm doctor`: %w", c.show(it.key), from.Number(), err)
		}
		for _, element := range elements {
			bytes += len(element)
		}
		if more {
			unfinished = append(unfinished, it)
		}
		if len(elements) > 0 || it.isBegun { // the last part may have none
			w.add(it, elements, !more)
		}
		it.isBegun = true
	}
	return bytes, unfinished, w.run(ctx)
}

// ask asks for the next part of a key.
func (c *copying) ask(ctx context.Context, pipe rdb.Commands, from *rdb.Partition, it *item) {
	full := from.Namespace() + it.key
	if !it.isBegun {
		it.ttl = rdb.Expiry(ctx, pipe, full)
		if !c.isSame {
			it.owner = askOwner(ctx, pipe, from, it.f.Whose, it.rest)
		}
	}
	switch it.f.Kind {
	case rdb.String:
		it.text = pipe.Get(ctx, full)
	case rdb.List:
		it.part = pipe.LRange(ctx, full, it.position, it.position+elementsPerTrip-1)
	default:
		it.page = rdb.Page(ctx, pipe, full, it.f.Kind, it.cursor)
	}
}

// take returns the part that was read, none of a key that has expired, and whether there is more.
func (it *item) take() (elements []string, more bool, err error) {
	switch it.f.Kind {
	case rdb.String:
		text, err := it.text.Result()
		if err == rdb.Nil {
			return nil, false, nil
		}
		return []string{text}, false, err
	case rdb.List:
		elements, err = it.part.Result()
		it.position += elementsPerTrip
		return elements, len(elements) == elementsPerTrip, err
	default:
		elements, it.cursor, err = it.page.Result()
		return elements, it.cursor != 0, err
	}
}

// writing is the pending writes of a part of some keys.
type writing struct {
	*copying
	from    *rdb.Partition
	pending []part
	// commands go to each partition of the target, in order.
	commands [][]func(rdb.Commands) rdb.AnyReply
}

// part is a part of a key whose owners are known once they were asked for.
type part struct {
	*item
	elements []string
	isFirst  bool
	isLast   bool
	owners   []owner // of each element
}

func newWriting(c *copying, from *rdb.Partition) *writing {
	return &writing{copying: c, from: from, commands: make([][]func(rdb.Commands) rdb.AnyReply, len(c.To))}
}

// add adds a part of a key.
func (w *writing) add(it *item, elements []string, isLast bool) {
	w.pending = append(w.pending, part{item: it, elements: elements, isFirst: !it.isBegun, isLast: isLast})
}

// run finds out where everything belongs, and writes it.
func (w *writing) run(ctx context.Context) error {
	if !w.isSame {
		if err := w.findOwners(ctx); err != nil {
			return err
		}
		if err := w.refuseTwins(ctx); err != nil {
			return err
		}
	}
	for i := range w.pending {
		if err := w.route(ctx, &w.pending[i]); err != nil {
			return err
		}
	}
	var group errgroup.Group
	for number, commands := range w.commands {
		if len(commands) > 0 {
			group.Go(func() error { return write(ctx, w.To[number], commands) })
		}
	}
	return group.Wait()
}

// write runs commands in one round trip.
func write(ctx context.Context, to *rdb.Partition, commands []func(rdb.Commands) rdb.AnyReply) error {
	replies := make([]rdb.AnyReply, len(commands))
	err := to.Pipelined(ctx, "write to the target", func(pipe rdb.Commands) {
		for i, command := range commands {
			replies[i] = command(pipe)
		}
	})
	for _, reply := range replies {
		if err == nil {
			err = rdb.Wrap("write to the target", reply.Err())
		}
	}
	return err
}

// do adds a command for a partition of the target.
func (w *writing) do(number int, command func(rdb.Commands) rdb.AnyReply) {
	w.commands[number] = append(w.commands[number], command)
}

// put adds elements to a key of the target. If Redis has returned a key twice, it starts over.
func (w *writing) put(ctx context.Context, number int, p *part, elements []string) {
	full := w.To[number].Namespace() + p.key
	if p.isFirst && p.f.Kind == rdb.List && p.owners == nil {
		w.do(number, func(pipe rdb.Commands) rdb.AnyReply { return pipe.Del(ctx, full) })
	}
	if len(elements) > 0 {
		w.do(number, func(pipe rdb.Commands) rdb.AnyReply { return rdb.Add(ctx, pipe, full, p.f.Kind, elements) })
	}
	w.expire(ctx, number, p)
}

// expire has a key expire when its source does.
func (w *writing) expire(ctx context.Context, number int, p *part) {
	if ms := p.ttl.Val(); ms > 0 && p.isLast {
		full := w.To[number].Namespace() + p.key
		w.do(number, func(pipe rdb.Commands) rdb.AnyReply { return rdb.ExpireIn(ctx, pipe, full, ms) })
	}
}
