package account

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

// The fields of what expires, and their values, as lua/release.lua reads them.
var (
	expiringField = regexp.MustCompile(`^@(\d{1,15})/([\w:-]+)$`)
	expiringBytes = regexp.MustCompile(`^\d{1,15}$`)
)

// Expiring is a part of a client's account for data that Redis removes by itself until a time.
type Expiring struct {
	Client bus.ClientName
	Bytes  int64
	Until  time.Time
}

// ReadExpiring reads a field of accounts; ok is false for any other field. A damaged one has no
// client and no bytes, and is over.
func ReadExpiring(field, value string) (e Expiring, ok bool) {
	parts := expiringField.FindStringSubmatch(field)
	if parts == nil || !expiringBytes.MatchString(value) {
		return e, strings.HasPrefix(field, FieldExpiring)
	}
	return Expiring{bus.ClientName(parts[2]), rdb.Integer(value, 0), time.UnixMilli(rdb.Integer(parts[1], 0))}, true
}

// released is how many fields a script discharges at most.
const released = 100

var scriptRelease = rdb.NewScript(slices.Concat(queue.Library, Library), rdb.ReadLua(luaFiles, "release"))

// Release discharges the accounts of a partition for data that Redis has removed by itself before a
// time. It fails with [bus.ErrUnavailable].
func Release(ctx context.Context, p *rdb.Partition, now time.Time) error {
	fields, err := readFields(ctx, p)
	if err != nil {
		return err
	}
	var over []any
	for field, value := range fields {
		if e, ok := ReadExpiring(field, value); ok && e.Until.Before(now) {
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
