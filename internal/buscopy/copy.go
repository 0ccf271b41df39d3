// Package buscopy copies a whole bus from one Redis to another, while none of its processes runs.
//
// The source is only read. All keys of the layout are copied: [layout.Whose] says where each key
// belongs. Between two buses with the same number of partitions each key goes to the partition with
// the same number. Otherwise it goes to the partition that owns its name, element by element if
// each element has its own owner; keys about partitions themselves are made anew.
//
//	nothing -> marked, copying -> all is there, and doctor finds nothing new -> not marked
//
// While the target is marked, web and worker do not start there. A copy that was interrupted, or
// that differs from its source, leaves the mark; another copy starts over.
package buscopy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/doctor"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// Options are the source and target of a copy, and how to copy.
type Options struct {
	// From and To are the partitions of both buses.
	From, To rdb.Partitions
	// Restart first removes the data that an earlier copy has left in the target.
	Restart bool
	// Force copies although processes seem to run: they may have been killed.
	Force bool
	// Progress, if given, is called with the number of keys done and of all keys.
	Progress func(step string, done, all int)
	// Now is the clock; nil takes the host's.
	Now func() time.Time
}

// Report is the result of a copy.
type Report struct {
	// Rows compare the data on both sides, and are in order.
	Rows []Row `json:"rows"`
	// Findings are doctor's findings in the target that the source does not have.
	Findings []string `json:"findings,omitempty"`
}

// IsEqual reports whether the target has all data of the source, and is as sound.
func (r Report) IsEqual() bool {
	return len(r.Findings) == 0 && !slices.ContainsFunc(r.Rows, func(r Row) bool { return r.Source != r.Target })
}

// copying is a run.
type copying struct {
	Options
	// isSame is whether both buses have the same number of partitions, so that each key stays in its
	// own.
	isSame bool
	// names are the clients of the source, by token: no error shows a token.
	names map[string]string
	// keys is the number of keys of the source.
	keys int
	// split are the keys of each partition whose elements were shared out: Redis may return a key
	// twice, and some of these are lists.
	split map[string]bool
	// walks are the entries of walks over labels, which are in the queue of each partition.
	walks map[string]bool
}

// Run copies a bus. It reports on a completed copy. It fails if processes run, with a target that
// is not empty, with keys that the layout does not know, and with [bus.ErrUnavailable].
func Run(ctx context.Context, o Options) (Report, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	c := &copying{
		Options: o, names: map[string]string{}, split: map[string]bool{}, walks: map[string]bool{},
		isSame: len(o.From) == len(o.To) && o.From[0].IsOneOfSeveral() == o.To[0].IsOneOfSeveral(),
	}
	for _, step := range []func(context.Context) error{c.check, c.begin, c.copyAll} {
		if err := step(ctx); err != nil {
			return Report{}, err
		}
	}
	report, err := c.compare(ctx)
	if err == nil {
		err = c.requireAllStopped(ctx) // one that has started meanwhile may have taken events
	}
	if err != nil || !report.IsEqual() {
		return report, err
	}
	return report, c.end(ctx)
}

// mark is the key of a partition that says that the target is not complete.
func mark(p *rdb.Partition) string { return layout.Keys{Namespace: p.Namespace()}.Copying() }

// begin marks the target, which must be empty except for the data of an earlier copy, and removes
// that.
func (c *copying) begin(ctx context.Context) error {
	marked, err := c.To[0].Exists(ctx, mark(c.To[0])).Result()
	if err != nil {
		return rdb.Wrap("look for a copy", err)
	}
	switch {
	case marked > 0 && !c.Restart:
		return fmt.Errorf("an earlier copy to this Redis has not ended; --restart removes what it has left, and begins again")
	case marked > 0:
		err = c.requireUnused(ctx)
	default:
		err = c.requireEmpty(ctx)
	}
	if err != nil {
		return err
	}
	if err := c.setMarks(ctx); err != nil || marked == 0 {
		return err
	}
	return c.clear(ctx)
}

// requireUnused fails if a process has used the data of an earlier copy.
func (c *copying) requireUnused(ctx context.Context) error {
	for _, p := range c.To {
		used, err := p.IsUsed(ctx)
		if err != nil {
			return err
		}
		if used {
			return errors.New("web or worker has run on the target since the earlier copy, and may have accepted events that --restart would remove: " +
				"give another Redis, or namespace (--to-namespace), or empty the target yourself if you need none of it")
		}
	}
	return nil
}

// setMarks marks the target. It fails, without a mark, if the source would see that, and the keys
// that are copied, as its own.
func (c *copying) setMarks(ctx context.Context) error {
	text := fmt.Sprintf("%d %s", c.Now().UnixMilli(), rand.Text())
	for _, p := range c.To { // any may be the one that a process asks first
		if err := p.Set(ctx, mark(p), text, 0).Err(); err != nil {
			return rdb.Wrap("mark the target", err)
		}
	}
	seen, err := c.From[0].Get(ctx, mark(c.To[0])).Result()
	switch {
	case err != nil && err != rdb.Nil && !rdb.Answered(err):
		return rdb.Wrap("look for the mark", err)
	case seen == text && c.overlap():
		return errors.Join(fmt.Errorf("the target is on the same Redis as the source, and keys of one namespace would be keys of the other (%q and %q): "+
			"give another Redis, or another database of it", c.From[0].Namespace(), c.To[0].Namespace()), c.end(ctx))
	}
	return nil
}

// overlap reports whether keys of a partition of one bus would be keys of one of the other's, on
// one Redis.
func (c *copying) overlap() bool {
	return slices.ContainsFunc(c.From, func(from *rdb.Partition) bool {
		return slices.ContainsFunc(c.To, func(to *rdb.Partition) bool {
			return strings.HasPrefix(from.Namespace(), to.Namespace()) || strings.HasPrefix(to.Namespace(), from.Namespace())
		})
	})
}

// stays reports whether a key, without its namespace, is in a target to which nothing was copied.
func stays(key string) bool {
	return key == keys.Copying() || key == keys.Partition()
}

// requireEmpty fails if the target has keys.
func (c *copying) requireEmpty(ctx context.Context) error {
	count, shown := 0, []string{}
	for _, p := range c.To {
		err := eachKey(ctx, p, func(keys []string) error {
			for _, key := range keys {
				if stays(key) {
					continue
				}
				if count++; len(shown) < maxShown {
					shown = append(shown, c.show(key))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if count == 0 {
		return nil
	}
	return fmt.Errorf("the target is not empty: it has %d keys, such as %s; give an empty Redis, or another namespace (--to-namespace)",
		count, list(shown))
}

// clear removes the data of an earlier copy.
func (c *copying) clear(ctx context.Context) error {
	for _, p := range c.To {
		err := eachKey(ctx, p, func(keys []string) error {
			return p.Pipelined(ctx, "remove what was copied", func(pipe rdb.Commands) {
				for _, key := range keys {
					if f, _ := doctor.FamilyOf(key); f.Kind != "" && !stays(key) {
						pipe.Unlink(ctx, p.Namespace()+key)
					}
				}
			})
		})
		if err != nil {
			return err
		}
	}
	return c.requireEmpty(ctx)
}

// end has web and worker start on the target from now on. The first partition, which says whether a
// copy has ended, comes last.
func (c *copying) end(ctx context.Context) error {
	for _, p := range slices.Backward(c.To) {
		if err := p.Del(ctx, mark(p)).Err(); err != nil {
			return rdb.Wrap("end the copy", err)
		}
	}
	return nil
}

// copyAll copies all keys.
func (c *copying) copyAll(ctx context.Context) error {
	done := 0
	for _, p := range c.From {
		err := eachKey(ctx, p, func(keys []string) error {
			err := c.copyKeys(ctx, p, keys)
			done += len(keys)
			c.Progress("copying", min(done, c.keys), c.keys)
			return err
		})
		if err != nil {
			return err
		}
	}
	if c.isSame {
		return c.copyIdentities(ctx)
	}
	if err := c.addWalks(ctx); err != nil {
		return err
	}
	for _, p := range c.To {
		if err := doctor.CountAccounts(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// copyIdentities lets each partition continue the numbers of events in outboxes, by copying the
// notes that identify the bus.
func (c *copying) copyIdentities(ctx context.Context) error {
	if !c.To[0].IsOneOfSeveral() {
		return nil
	}
	for i, p := range c.From {
		if err := p.CopyIdentity(ctx, c.To[i]); err != nil {
			return err
		}
	}
	return nil
}

// addWalks lets each partition continue the walks over labels, from now on.
func (c *copying) addWalks(ctx context.Context) error {
	for _, p := range c.To {
		err := p.Pipelined(ctx, "add walks", func(pipe rdb.Commands) {
			for _, entry := range doctor.Sorted(c.walks) {
				pipe.SAdd(ctx, p.Namespace()+keys.JobsIndex(bus.QueueMachines), entry)
				pipe.LPush(ctx, p.Namespace()+keys.Instant(bus.QueueMachines), entry)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachKey calls a function with the keys of a partition, without the namespace, a page at a time.
// Redis may return a key twice.
func eachKey(ctx context.Context, p *rdb.Partition, each func(keys []string) error) error {
	return p.EachKey(ctx, p.Namespace()+"*", func(page []string) error {
		keys := make([]string, len(page))
		for i, key := range page {
			keys[i] = key[len(p.Namespace()):]
		}
		slices.Sort(keys)
		return each(slices.Compact(keys))
	})
}
