package account

import (
	"context"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

// Expiring returns the client of a field that says what of its account Redis removes by itself, and
// until when; ok is false for another field. A time that cannot be read is the zero time's.
func Expiring(field string) (client bus.ClientName, until time.Time, ok bool) {
	rest, ok := strings.CutPrefix(field, FieldExpiring)
	if !ok {
		return "", until, false
	}
	ms, name, _ := strings.Cut(rest, "/")
	if n := rdb.Integer(ms, 0); n > 0 {
		until = time.UnixMilli(n)
	}
	return bus.ClientName(name), until, true
}

// released is how many fields a script discharges at most.
const released = 100

var scriptRelease = rdb.NewScript(slices.Concat(queue.Library, Library), rdb.ReadLua(luaFiles, "release"))

// Release discharges the accounts of a partition for what Redis has removed by itself before a
// time. It fails with [bus.ErrUnavailable].
func Release(ctx context.Context, p *rdb.Partition, now time.Time) error {
	fields, err := p.HKeys(ctx, Keys{p.Namespace()}.Accounts()).Result()
	if rdb.IsWrongType(err) {
		return nil
	}
	if err != nil {
		return rdb.Wrap("read accounts", err)
	}
	var over []any
	for _, field := range fields {
		if _, until, ok := Expiring(field); ok && until.Before(now) {
			over = append(over, field)
		}
	}
	for some := range slices.Chunk(over, released) {
		if err := p.Run(ctx, scriptRelease, some...).Change().Err; err != nil {
			return rdb.Wrap("discharge accounts", err)
		}
	}
	return nil
}
