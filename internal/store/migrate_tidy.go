package store

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// renameCounters puts clients' public names in the place of their tokens, which the original has in its counters.
func (r *migrationRun) renameCounters(ctx context.Context) error {
	if r.Back {
		return nil
	}
	names, err := r.store.Tokens(ctx)
	if err != nil {
		return err
	}
	renamed, odd := map[string]string{}, map[string]bool{}
	err = r.hash(ctx, r.keys.Counters(), func(field, value string) {
		if public := publicCounter(field, names); public != field {
			if _, err := strconv.ParseInt(value, 10, 64); err != nil { // it cannot be added to another
				odd[field] = true
			} else {
				renamed[field] = public
			}
		}
	})
	if err != nil {
		return err
	}
	if len(odd) > 0 {
		r.leave(r.keys.Counters(), fmt.Sprintf("%d counters with a token in their name whose value is no integer", len(odd)), false)
	}
	for _, field := range sorted(renamed) {
		if err := r.fix(ctx, &r.done.Renamed, scriptMigrateCounter, field, renamed[field]); err != nil {
			return err
		}
	}
	return nil
}

// publicCounter is a counter with names for tokens, both packed. One that cannot be read stays as it is.
func publicCounter(field string, names map[bus.Token]bus.ClientName) string {
	c, err := wire.UnpackCounter(field)
	if err != nil {
		return field
	}
	secret := false
	for i := range c.Tags {
		token := bus.Token(c.Tags[i].Value)
		name, known := names[token]
		if known || madeTokens.MatchString(string(token)) { // perhaps of a client that is gone
			c.Tags[i].Value, secret = string(bus.PublicName(token, name)), true
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
func (r *migrationRun) removeGauges(ctx context.Context) error {
	if r.Back {
		return nil
	}
	for _, gauge := range []string{r.keys.BatchGauge(), r.keys.EventGauge()} {
		var zero []string
		err := r.hash(ctx, gauge, func(token, value string) {
			if value == "0" {
				zero = append(zero, token)
			}
		})
		if err != nil {
			return err
		}
		for _, token := range zero {
			if err := r.fix(ctx, &r.done.Removed, scriptMigrateGauge, token); err != nil {
				return err
			}
		}
	}
	return nil
}

// hash reads a hash, a page at a time.
func (r *migrationRun) hash(ctx context.Context, key string, each func(field, value string)) error {
	return rdb.Wrap("migrate", r.store.redis.EachPage(ctx, key, rdb.Hash, 0, rdb.Pairs(each)))
}

// fix runs a script, which returns how much it has done; a dry run counts one.
func (r *migrationRun) fix(ctx context.Context, done *int, script *rdb.Script, args ...any) error {
	if !r.Apply {
		*done++
		return nil
	}
	n, err := r.store.redis.Run(ctx, script, args...).Int()
	*done += n
	return rdb.Wrap("migrate", err)
}
