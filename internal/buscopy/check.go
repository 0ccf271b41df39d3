package buscopy

import (
	"context"
	"fmt"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/doctor"
	"routemaster/internal/format"
	"routemaster/internal/layout"
	"routemaster/internal/overview/samples"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

// The keys without a namespace.
var (
	keys = layout.Keys{}
)

// maxShown is how many keys an error shows.
const maxShown = 5

func list(shown []string) string { return strings.Join(shown, ", ") }

// check fails if processes run, or if some data cannot be copied.
func (c *copying) check(ctx context.Context) error {
	for _, side := range c.sides() {
		for _, p := range side.all {
			held, err := p.IsHeld(ctx)
			if err != nil {
				return err
			}
			if held {
				return fmt.Errorf("partition %d of the %s is held, or has come back without its keys: see `rtm cluster status`", p.Number(), side.name)
			}
		}
	}
	if err := c.requireAllStopped(ctx); err != nil {
		return err
	}
	if err := c.readNames(ctx); err != nil {
		return err
	}
	marked, err := c.From[0].Exists(ctx, c.From[0].Namespace()+keys.Copying()).Result()
	if err != nil {
		return rdb.Wrap("look for a copy", err)
	}
	if marked > 0 {
		return fmt.Errorf("the source is itself a copy that has not ended: copy it again from its own source, with --restart")
	}
	if err := c.requireKnown(ctx); err != nil {
		return err
	}
	if c.isSame {
		return nil
	}
	return c.requireSettled(ctx)
}

// side is one of the two buses.
type side struct {
	name string
	all  rdb.Partitions
}

func (c *copying) sides() []side { return []side{{"source", c.From}, {"target", c.To}} }

// requireAllStopped fails if processes of either bus were seen lately.
func (c *copying) requireAllStopped(ctx context.Context) error {
	for _, side := range c.sides() {
		if err := c.requireStopped(ctx, side.name, side.all); err != nil {
			return err
		}
	}
	return nil
}

// requireStopped fails if processes of a bus were seen lately.
func (c *copying) requireStopped(ctx context.Context, side string, all rdb.Partitions) error {
	if c.Force {
		return nil
	}
	running, err := samples.Processes(ctx, all[0], c.Now())
	if err != nil && !rdb.IsWrongType(err) {
		return err
	}
	const advice = "stop all web and worker processes first; if they have stopped, wait a minute, until they are forgotten, or use --force"
	if len(running) > 0 {
		var shown []string
		for _, p := range running[:min(len(running), maxShown)] {
			shown = append(shown, fmt.Sprintf("%s %d on %s", p.Kind, p.PID, p.Host))
		}
		return fmt.Errorf("the %s is in use: %s; %s", side, list(shown), advice)
	}
	for _, p := range all {
		active, _, err := queue.NewLook(p).Workers(ctx, c.Now().Add(-bus.DeadAfter))
		if err != nil {
			return err
		}
		if active > 0 {
			return fmt.Errorf("the %s is in use: %s of workers seen in the last %v; %s", side, format.Plural(int64(active), "thread"), bus.DeadAfter, advice)
		}
	}
	return nil
}

// readNames reads the names of clients.
func (c *copying) readNames(ctx context.Context) error {
	for _, p := range c.From {
		note := rdb.Pairs(func(token, name string) {
			c.names[token] = string(bus.PublicName(bus.Token(token), bus.ClientName(name)))
		})
		if err := p.EachPage(ctx, p.Namespace()+keys.Tokens(), rdb.Hash, 0, note); err != nil {
			return err
		}
	}
	return nil
}

// nameOf is the name of a client, by token.
func (c *copying) nameOf(token string) string {
	return string(bus.PublicName(bus.Token(token), bus.ClientName(c.names[token])))
}

// show is a key with the name of a client in place of its token. Of one that the layout does not
// know the end is left out, which may be a token too.
func (c *copying) show(key string) string {
	f, rest := doctor.FamilyOf(key)
	switch end := strings.LastIndexByte(key, ':'); {
	case f.Whose == layout.OfToken:
		return f.Prefix + c.nameOf(layout.TokenOf(rest))
	case f.Kind == "" && end >= 0:
		return key[:end+1] + "…"
	}
	return key
}

// requireKnown counts the keys of the source, and fails if there are some that the layout does not
// know, or that are in the wrong partition.
func (c *copying) requireKnown(ctx context.Context) error {
	unknown, shown := 0, []string{}
	for _, p := range c.From {
		err := eachKey(ctx, p, func(keys []string) error {
			c.keys += len(keys)
			for _, key := range keys {
				f, rest := doctor.FamilyOf(key)
				if err := c.requireNothingOnItsWay(p, f, rest); err != nil {
					return err
				}
				if f.Kind != "" && isAtHome(p, f, rest) {
					continue
				}
				if unknown++; len(shown) < maxShown {
					shown = append(shown, c.show(key))
				}
			}
			c.Progress("reading", c.keys, -1)
			return nil
		})
		if err != nil {
			return err
		}
	}
	switch {
	case c.keys == 0:
		return fmt.Errorf("the source has no keys: give the URL, the number of the database and the namespace (--from-namespace) that its web and worker have")
	case unknown == 0:
		return nil
	}
	return fmt.Errorf("the source has %s that the layout does not know, or that belongs to another partition, such as %s: "+
		"`rtm doctor` says more; remove what is not the bus's, or give the bus a namespace of its own", format.Plural(int64(unknown), "key"), list(shown))
}

// isAtHome reports whether a key is in the partition that owns it, as far as the key says it.
func isAtHome(p *rdb.Partition, f layout.Family, rest string) bool {
	if !p.IsOneOfSeveral() {
		return true
	}
	if f.Whose == layout.First {
		return p.Number() == 0
	}
	name := f.Whose.Name(rest)
	return name == "" || p.Owns(name)
}

// requireSettled fails if there is something under way that is bound to the partitions of the
// source.
func (c *copying) requireSettled(ctx context.Context) error {
	for _, p := range c.From {
		var migration rdb.Reply[int64]
		var rotations rdb.Reply[[]string]
		err := p.Pipelined(ctx, "look what is under way", func(pipe rdb.Commands) {
			migration = pipe.Exists(ctx, p.Namespace()+keys.Migration())
			rotations = pipe.HKeys(ctx, p.Namespace()+keys.Rotations())
		})
		switch {
		case err != nil:
			return err
		case migration.Val() > 0:
			return fmt.Errorf("the Ruby original may run on the source: run `rtm migrate --apply` until nothing is left to do, and wait until the key %s expires, "+
				"a day after; or copy to one Redis, as it is", keys.Migration())
		case len(rotations.Val()) > 0:
			return fmt.Errorf("a rotation of tokens is under way on the source: finish it first, with %s", bus.Commands("token rotate", c.namesOf(rotations.Val())))
		}
	}
	return nil
}

func (c *copying) namesOf(tokens []string) (names []string) {
	for _, token := range tokens {
		if name := c.names[token]; name != "" {
			names = append(names, name)
		}
	}
	if names == nil {
		return []string{"OLD"}
	}
	return names
}

// requireNothingOnItsWay fails for an outbox with events, which are numbered by partition.
func (c *copying) requireNothingOnItsWay(p *rdb.Partition, f layout.Family, rest string) error {
	const advice = "start a worker on the source, without web, until they are gone, and stop it; or copy to as many partitions"
	switch {
	case c.isSame:
		return nil
	case f.Prefix == keys.MachineOutbox(""):
		return fmt.Errorf("moves of the machine %s are still to be published, and are numbered by partition: %s", rest, advice)
	case f.Prefix == "relay:":
		return fmt.Errorf("events are on their way from partition %v to partition %s: %s", p.Number(), rest, advice)
	}
	return nil
}
