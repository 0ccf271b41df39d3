package migrate

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// renameCounters puts clients' public names in the place of their tokens, which the original has in
// its counters.
func (r *run) renameCounters(ctx context.Context) error {
	names, err := r.names(ctx)
	if err != nil {
		return err
	}
	renamed, odd := map[string]string{}, map[string]bool{}
	err = r.redis.EachPage(ctx, r.keys.Counters(), rdb.Hash, 0, rdb.Pairs(func(field, value string) {
		if public := publicCounter(field, names); public != field {
			if _, err := strconv.ParseInt(value, 10, 64); err != nil { // it cannot be added to another
				odd[field] = true
			} else {
				renamed[field] = public
			}
		}
	}))
	if err != nil {
		return err
	}
	if len(odd) > 0 {
		r.report(r.keys.Counters(), fmt.Sprintf(
			"%d counters with a token in their name whose value is no integer", len(odd)), false)
	}
	for _, field := range slices.Sorted(maps.Keys(renamed)) {
		if err := r.fix(ctx, &r.result.Renamed, scriptCounter, field, renamed[field]); err != nil {
			return err
		}
	}
	return nil
}

// publicCounter is a counter with names for tokens, both packed. One that cannot be read stays as
// it is.
func publicCounter(field string, names map[string]string) string {
	c, err := wire.UnpackCounter(field)
	if err != nil {
		return field
	}
	secret := false
	for i := range c.Tags {
		token := c.Tags[i].Value
		name, known := names[token]
		if known || madeTokens.MatchString(token) { // perhaps of a client that is gone
			c.Tags[i].Value = string(bus.PublicName(bus.Token(token), bus.ClientName(name)))
			secret = true
		}
	}
	if !secret {
		return field
	}
	return wire.PackCounter(c)
}

// madeTokens are the tokens that the bus makes, of either kind.
var madeTokens = regexp.MustCompile(`--[0-9a-f]{32}\z`)

// removeGauges removes the gauges that are 0.
func (r *run) removeGauges(ctx context.Context) error {
	for _, gauge := range []string{r.keys.BatchGauge(), r.keys.EventGauge()} {
		var zero []string
		err := r.redis.EachPage(ctx, gauge, rdb.Hash, 0, rdb.Pairs(func(token, value string) {
			if value == "0" {
				zero = append(zero, token)
			}
		}))
		if err != nil {
			return err
		}
		for _, token := range zero {
			if err := r.fix(ctx, &r.result.Removed, scriptGauge, token); err != nil {
				return err
			}
		}
	}
	return nil
}

// fix runs a script, which returns how much it has done; a dry run counts one.
func (r *run) fix(ctx context.Context, done *int, script *rdb.Script, args ...any) error {
	if !r.Apply {
		*done++
		return nil
	}
	n, err := r.redis.Run(ctx, script, args...).Int()
	*done += n
	return rdb.Wrap("migrate", err)
}
