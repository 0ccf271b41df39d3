package doctor

import (
	"context"
	"fmt"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/machines/engine"
	"routemaster/internal/rdb"
)

// definitionsKey is the key without a namespace.
var definitionsKey = keys.Definitions()

// edition is which definitions of state machines a partition has.
type edition struct{ version, appliedAt rdb.Reply[string] }

func (e edition) String() string { return e.version.Val() + " of " + e.appliedAt.Val() }

// strayDefinitions are definitions of a partition that differ from the first partition's.
type strayDefinitions struct {
	at           rdb.Number
	first, there edition
}

// definitions returns the definitions that differ in the scan.
func (c *Comparison) definitions() (candidates []misfit) {
	first, examined := c.views[0]
	if !examined {
		return nil
	}
	for number, v := range c.views {
		if v.definitions["version"] != first.definitions["version"] || v.definitions["applied_at"] != first.definitions["applied_at"] {
			candidates = append(candidates, &strayDefinitions{at: number})
		}
	}
	return candidates
}

func (*strayDefinitions) key() string { return definitionsKey }

func (d *strayDefinitions) partitions() [2]rdb.Number { return [2]rdb.Number{0, d.at} }

func (d *strayDefinitions) ask(ctx context.Context, c *Comparison, of rdb.Number, pipe rdb.Commands) {
	key := layout.Keys{Namespace: c.partition(of).Namespace()}.Definitions()
	read := edition{pipe.HGet(ctx, key, "version"), pipe.HGet(ctx, key, "applied_at")}
	if of == 0 {
		d.first = read
	} else {
		d.there = read
	}
}

func (d *strayDefinitions) state() (state string, fits bool) {
	return d.first.String() + ", " + d.there.String(), d.first.String() == d.there.String()
}

// judge has the partition and the first one agree, as workers do.
func (d *strayDefinitions) judge(ctx context.Context, c *Comparison) ([]Finding, func() error, error) {
	f := Finding{
		Partition: c.partition(d.at).NumberIfSeveral(), Key: definitionsKey, Remedy: "made the same",
		Problem: fmt.Sprintf("has version %q, and partition 00 has %q", d.there.version.Val(), d.first.version.Val()),
	}
	if d.there.version.Val() == d.first.version.Val() {
		f.Problem = fmt.Sprintf("has another version %s than partition 00", d.there.version.Val())
	}
	return []Finding{f}, func() error { return c.agree(ctx, d.at) }, nil
}

// agree makes all partitions follow the one with the newest definitions. It fails if a partition
// still differs from the first one afterwards: a client may be replacing them right now.
func (c *Comparison) agree(ctx context.Context, at rdb.Number) error {
	all := engine.NewBus(c.all.Partitions())
	if err := all.Settle(ctx, time.Now()); err != nil {
		return err
	}
	first, err := all.All()[0].Edition(ctx)
	if err != nil {
		return err
	}
	there, err := all.All()[at].Edition(ctx)
	if err == nil && !there.HasSame(first) {
		return fmt.Errorf("%w: definitions are being replaced", bus.ErrUnavailable)
	}
	return err
}
