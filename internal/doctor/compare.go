package doctor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Comparison compares the partitions that were examined.
type Comparison struct {
	all     *store.Bus
	options examOptions
	views   map[rdb.Number]view
}

// view is the part of a partition's scan that other partitions must match.
type view struct {
	tokens map[string]string
	// subscribed are the topics that have subscribers there.
	subscribed map[string]bool
	// relayed are the partitions to which the topics are relayed, as the home says.
	relayed map[string]map[string]string
	topics  map[string]string
	// definitions are the state machines' definitions.
	definitions map[string]string
}

// newComparison begins a comparison, of no partition yet.
func newComparison(all *store.Bus, options examOptions) *Comparison {
	return &Comparison{all, options, map[rdb.Number]view{}}
}

// Add adds the scan of an examined partition.
func (c *Comparison) Add(e *Examination) {
	v := view{
		tokens: e.Elements[keys.Tokens()], topics: e.Elements[keys.Topics()], definitions: e.Elements[definitionsKey],
		subscribed: map[string]bool{}, relayed: map[string]map[string]string{},
	}
	for topic, tokens := range e.Each(keys.TopicSubscribers("")) {
		v.subscribed[topic] = len(tokens) > 0
	}
	for topic, numbers := range e.Each(keys.Outboxes("")) {
		v.relayed[topic] = numbers
	}
	c.views[e.Redis.Number()] = v
}

// misfit is something that does not fit between two partitions.
type misfit interface {
	// key is the token or topic.
	key() string
	// partitions returns the partition that decides and the other one.
	partitions() [2]rdb.Number
	// ask queues the reads of one of them.
	ask(ctx context.Context, c *Comparison, of rdb.Number, pipe rdb.Commands)
	// state describes the replies, and reports whether they match.
	state() (state string, fits bool)
	// judge returns the findings and their repair, which is nil if there is none.
	judge(ctx context.Context, c *Comparison) (findings []Finding, repair func() error, err error)
}

// looks is how often a candidate is looked at again during the pause.
const looks = 10

// Find looks for mismatches between partitions and repairs them. It reports a partition that
// becomes unavailable meanwhile and skips its mismatches.
func (c *Comparison) Find(ctx context.Context) error {
	states := map[misfit]string{}
	candidates := slices.Concat(c.tokens(), c.topics(), c.definitions())
	for n := 0; n <= looks && len(candidates) > 0; n++ {
		if n > 0 {
			if err := wait(ctx, c.options.Pause/looks); err != nil {
				return err
			}
		}
		if err := c.look(ctx, candidates); err != nil {
			return err
		}
		candidates = slices.DeleteFunc(candidates, func(x misfit) bool {
			if !c.has(x) {
				return true
			}
			state, fits := x.state()
			before, seen := states[x]
			states[x] = state
			return fits || seen && state != before
		})
	}
	return c.settle(ctx, candidates)
}

func wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

// has reports whether both partitions of a candidate are still there.
func (c *Comparison) has(x misfit) bool {
	for _, number := range x.partitions() {
		if _, there := c.views[number]; !there {
			return false
		}
	}
	return true
}

// look reads the state of the candidates from their partitions.
func (c *Comparison) look(ctx context.Context, candidates []misfit) error {
	for _, st := range c.all.All() {
		number := st.Partition().Number()
		var of []misfit
		for _, x := range candidates {
			if both := x.partitions(); both[0] == number || both[1] == number {
				of = append(of, x)
			}
		}
		for some := range slices.Chunk(of, rdb.KeysPerTrip) {
			if err := c.read(ctx, st.Partition(), func(pipe rdb.Commands) {
				for _, x := range some {
					x.ask(ctx, c, number, pipe)
				}
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads from a partition. One that is away, or held, is left out from then on: it may say
// anything.
func (c *Comparison) read(ctx context.Context, p *rdb.Partition, gather func(rdb.Commands)) error {
	if _, there := c.views[p.Number()]; !there {
		return nil
	}
	var open rdb.Reply[int64]
	err := p.Reads(ctx, "compare", func(pipe rdb.Commands) {
		gather(pipe)
		open = pipe.Exists(ctx, p.Namespace()+keys.Partition()) // last, so that the others were read before
	})
	problem := ""
	switch {
	case errors.Is(err, bus.ErrUnavailable) && ctx.Err() == nil:
		problem = "has gone away: not compared with the others"
	case err != nil:
		return err
	case open.Val() == 0:
		problem = "is missing: the partition is held, and was not compared with the others"
	default:
		return nil
	}
	delete(c.views, p.Number())
	c.options.Observe(Finding{Partition: p.NumberIfSeveral(), Key: keys.Partition(), Problem: problem})
	return nil
}

// settle repairs and reports the candidates whose state has not changed.
func (c *Comparison) settle(ctx context.Context, candidates []misfit) error {
	slices.SortFunc(candidates, func(a, b misfit) int {
		x, y := a.partitions(), b.partitions()
		return cmp.Or(slices.Compare(x[:], y[:]), strings.Compare(a.key(), b.key()))
	})
	for _, x := range candidates {
		if !c.has(x) {
			continue
		}
		findings, repair, err := x.judge(ctx, c)
		if err == nil && c.options.Fix && repair != nil {
			err = repair()
		}
		if err != nil && (ctx.Err() != nil || !errors.Is(err, bus.ErrUnavailable)) {
			return err
		}
		for _, f := range findings {
			f.Fixed = c.options.Fix && err == nil && f.Remedy != ""
			c.options.Observe(f)
		}
	}
	return nil
}

// partition is the one of a number.
func (c *Comparison) partition(number rdb.Number) *rdb.Partition {
	return c.all.All()[number].Partition()
}

// keysOf are the keys of the partition of a number.
func (c *Comparison) keysOf(number rdb.Number) layout.Keys {
	return layout.Keys{Namespace: c.partition(number).Namespace()}
}
