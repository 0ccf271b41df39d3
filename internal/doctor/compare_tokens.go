package doctor

import (
	"context"
	"fmt"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// strayToken is a token that another partition does not know as its own does.
type strayToken struct {
	token   bus.Token
	own, at rdb.Number
	// The names of its client, empty where the token is not known.
	inOwn, there rdb.Reply[string]
}

// tokens returns the tokens that differ in the scan.
func (c *Comparison) tokens() (candidates []misfit) {
	all := map[string]bool{}
	for _, v := range c.views {
		for token := range v.tokens {
			all[token] = true
		}
	}
	for token := range all {
		own := c.all.Of(bus.Token(token)).Partition().Number()
		decides, examined := c.views[own]
		if !examined {
			continue
		}
		for number, v := range c.views {
			if v.tokens[token] != decides.tokens[token] {
				candidates = append(candidates, &strayToken{token: bus.Token(token), own: own, at: number})
			}
		}
	}
	return candidates
}

func (t *strayToken) key() string { return string(t.token) }

func (t *strayToken) partitions() [2]rdb.Number { return [2]rdb.Number{t.own, t.at} }

func (t *strayToken) ask(ctx context.Context, c *Comparison, of rdb.Number, pipe rdb.Commands) {
	name := pipe.HGet(ctx, c.keysOf(of).Tokens(), string(t.token))
	if of == t.own {
		t.inOwn = name
	} else {
		t.there = name
	}
}

func (t *strayToken) state() (state string, fits bool) {
	return fmt.Sprintf("%q %q", t.inOwn.Val(), t.there.Val()), t.inOwn.Val() == t.there.Val()
}

// judge has the other partitions follow the token's own. They keep one that their own lacks: a
// change that was broken off leaves no such thing, so data was lost, either the token or its end.
func (t *strayToken) judge(ctx context.Context, c *Comparison) ([]Finding, func() error, error) {
	own, name := t.inOwn.Val(), t.there.Val()
	f := Finding{Partition: c.partition(t.at).NumberIfSeveral(), Key: keys.Tokens()}
	switch {
	case name == "":
		f.Problem = fmt.Sprintf("lacks %s, of partition %v", bus.PublicName(t.token, bus.ClientName(own)), t.own)
		f.Remedy = "copied from there"
	case own != "":
		f.Problem = fmt.Sprintf("has a token of %q, which is of %q in its partition %v", name, own, t.own)
		f.Remedy = "copied from there"
	default:
		f.Problem = fmt.Sprintf("has %s, and its partition %v does not: register the token again, or delete it",
			bus.PublicName(t.token, bus.ClientName(name)), t.own)
		return []Finding{f}, nil, nil
	}
	replaceable, err := t.isReplaceable(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	if !replaceable {
		f.Remedy = ""
		return []Finding{f}, nil, nil
	}
	return []Finding{f}, func() error { return c.all.SyncToken(ctx, t.token) }, nil
}

// isReplaceable reports whether the name of a token may be replaced in other partitions than its
// own: that would remove a subscriber there.
func (t *strayToken) isReplaceable(ctx context.Context, c *Comparison) (bool, error) {
	for _, st := range c.all.All() {
		p := st.Partition()
		if p.Number() == t.own {
			continue
		}
		var callback rdb.Reply[int64]
		if err := c.read(ctx, p, func(pipe rdb.Commands) {
			callback = pipe.Exists(ctx, c.keysOf(p.Number()).Subscriber(t.token))
		}); err != nil {
			return false, err
		}
		if callback == nil || callback.Err() != nil || callback.Val() > 0 {
			return false, nil
		}
	}
	return true, nil
}
