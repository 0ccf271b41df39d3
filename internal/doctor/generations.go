package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// generations are those of a subscriber's lanes, as the options say.
type generations struct {
	said    string // older, as it is stored
	older   []generation
	current string
}

// generation is one of which a number of batches is left.
type generation struct {
	name, lanes string
	batches     int64
}

func (g generation) String() string { return fmt.Sprintf("%s/%s/%d", g.name, g.lanes, g.batches) }

func readGenerations(older, current string) generations {
	g := generations{said: older, current: current}
	for _, text := range strings.Fields(older) {
		if parts := strings.Split(text, "/"); len(parts) == 3 {
			g.older = append(g.older, generation{parts[0], parts[1], rdb.Integer(parts[2], 0)})
		}
	}
	return g
}

func (g generations) has(name string) bool { return name == g.current || g.left(name) > 0 }

// left is how many batches are said to be left of an older generation.
func (g generations) left(name string) int64 {
	for _, older := range g.older {
		if older.name == name {
			return older.batches
		}
	}
	return 0
}

// must is what older must say, given how many batches are left of each generation.
func (g generations) must(batches map[string]int64) string {
	var texts []string
	for _, older := range g.older {
		if older.batches = batches[older.name]; older.batches > 0 {
			texts = append(texts, older.String())
		}
	}
	return strings.Join(texts, " ")
}

// olderCount is a count of the batches that are left of a subscriber's older generations. These
// only leave, each in the step that counts it down.
type olderCount struct {
	before, after generations // what was said before and after it
	batches       map[string]int64
}

// fits reports whether as many were found as may be.
func (c olderCount) fits() bool {
	said := map[string]int64{}
	for _, older := range c.before.older {
		said[older.name] = older.batches
		if n := c.batches[older.name]; n > older.batches || n < c.after.left(older.name) {
			return false
		}
	}
	return c.before.said == c.before.must(said)
}

// steady reports whether nothing has changed meanwhile.
func (c olderCount) steady() bool {
	return c.before.said == c.after.said && c.before.current == c.after.current
}

// checkOlder compares the numbers of batches that are left of older generations with the batches
// there are.
func checkOlder(ctx context.Context, e *Examination) error {
	batches := batchesOfOlder(e)
	var doubtful []string
	for _, token := range Sorted(batches) {
		c, err := countOlder(ctx, e, token, batches[token])
		if err != nil {
			return err
		}
		if !c.fits() {
			doubtful = append(doubtful, token)
		}
	}
	show := func(token string) string { return "the lanes of " + e.Name(token) }
	return e.UntilSteady(ctx, show, doubtful, func(token string) (bool, error) {
		return checkOlderOf(ctx, e, token, batches[token])
	})
}

// batchesOfOlder are the batches of subscribers that have older generations, without those that
// have batches of the Ruby original.
func batchesOfOlder(e *Examination) batchesOf {
	batches := batchesOf{}
	for token, options := range e.Each(keys.Options("")) {
		if options["older"] != "" && e.IsSubscriber(token) {
			batches[token] = map[string]bool{}
		}
	}
	for packed, j := range e.Queues[bus.QueueMain].Entries {
		if bids := batches[j.Token]; bids != nil && j.There {
			bids[packed[len(packed)-bus.UIDLen:]] = true
		}
		if j.Original {
			delete(batches, j.Token)
		}
	}
	return batches
}

// checkOlderOf counts the batches of a subscriber's older generations. If all were known, and
// nothing has changed meanwhile, they are as many. Else it is not done.
func checkOlderOf(ctx context.Context, e *Examination, token string, bids map[string]bool) (done bool, err error) {
	c, err := countOlder(ctx, e, token, bids)
	if err != nil || c.fits() || !c.steady() {
		return c.fits(), err
	}
	known := len(bids)
	if err := readIndexed(ctx, e, token, bids); err != nil || len(bids) > known {
		return false, err
	}
	options, g, must := e.Keys.Options(bus.Token(token)), c.before, c.before.must(c.batches)
	e.Add(options, fmt.Sprintf("has older lanes %q, must be %q", g.said, must), "set right", []Check{
		Is(g.said, "HGET", options, "older"), Is(g.current, "HGET", options, "generation"),
	}, Command{"SET_OLDER", token, must})
	return e.Confirm(ctx)
}

func countOlder(ctx context.Context, e *Examination, token string, bids map[string]bool) (c olderCount, err error) {
	if c.before, err = storedGenerations(ctx, e, token); err != nil {
		return c, err
	}
	named, err := namedGenerations(ctx, e, token, bids)
	if err != nil {
		return c, err
	}
	c.batches = map[string]int64{}
	for _, name := range named {
		if !c.before.has(name) { // it is as one of the default lane
			name = ""
		}
		c.batches[name]++
	}
	c.after, err = storedGenerations(ctx, e, token)
	return c, err
}

func storedGenerations(ctx context.Context, e *Examination, token string) (generations, error) {
	stored, err := e.Redis.HMGet(ctx, e.Keys.Options(bus.Token(token)), "older", "generation").Result()
	if err != nil {
		return generations{}, err
	}
	return readGenerations(rdb.Text(stored[0]), rdb.Text(stored[1])), nil
}

// namedGenerations are those that a subscriber's batches name, one for each.
func namedGenerations(ctx context.Context, e *Examination, token string, bids map[string]bool) (named []string, err error) {
	for some := range slices.Chunk(Sorted(bids), rdb.KeysPerTrip) {
		owners, names := make([]rdb.Reply[string], len(some)), make([]rdb.Reply[string], len(some))
		err := e.Redis.Reads(ctx, "lanes", func(pipe rdb.Commands) {
			for i, bid := range some {
				owners[i] = pipe.LIndex(ctx, e.Keys.Batch(bus.BatchID(bid)), 0)
				names[i] = pipe.HGet(ctx, e.Keys.BatchState(bus.BatchID(bid)), "generation")
			}
		})
		if err != nil {
			return nil, err
		}
		for i := range some {
			if e.Holder(owners[i].Val()) == token {
				named = append(named, names[i].Val())
			}
		}
	}
	return named, nil
}

// readIndexed takes in a subscriber's batches that the scan has missed.
func readIndexed(ctx context.Context, e *Examination, token string, bids map[string]bool) error {
	return e.Redis.EachPage(ctx, e.Keys.BatchesIndex(), rdb.SortedSet, 0, func(page []string) error {
		var unknown []string
		for i := 0; i < len(page); i += 2 { // with scores
			if bid := page[i]; bus.IsUID(bid) && !e.Batch(bid).There {
				unknown = append(unknown, bid)
			}
		}
		if err := e.ReadKeys(ctx, batchKeys(e, unknown)); err != nil {
			return err
		}
		for _, bid := range unknown {
			if j := e.Batch(bid); j.There && j.Token == token {
				bids[bid] = true
			}
		}
		return nil
	})
}
