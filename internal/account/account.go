// Package account counts what each client keeps in Redis that the bus never drops by itself: jobs,
// job types and labels. A client cannot keep more than its limit, so that memory is left for
// events.
//
// The accounts of a partition are one hash. The scripts that add or remove such data update it in
// the same step, by lua/account.lua. Names of clients consist of a-z, 0-9, colon, _ and -, so the
// other fields begin with other characters:
//
//   - client: the bytes that it keeps there; root is a client, too;
//   - #client: how often that has changed, by which package doctor sees that nothing has meanwhile;
//   - *: the bytes that all keep there;
//   - @time/client: the bytes of these for what Redis removes by itself until then (ms);
//   - *high, *limit, *limit/client, *elsewhere and ~client: see [Limits].
//
// A client may keep as much as its own limit allows. Without one it may keep a half of the space
// that others leave below the high mark, and not more than the common limit. So all clients
// together never reach the high mark. Without a high mark and limits it may keep anything.
//
// Bytes are estimates: the bytes of values, and a constant for each record, which a test compares
// with Redis's own figures.
package account

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// Library is the Lua library for scripts that charge accounts, besides the queue's.
var Library = rdb.Library{rdb.ReadLua(luaFiles, "keys", "account")}

//go:embed lua
var luaFiles embed.FS

// The fields of accounts that are not of one client, and what others begin with.
const (
	FieldTotal     = "*"
	FieldChanges   = "#"
	FieldExpiring  = "@"
	fieldHigh      = "*high"
	fieldLimit     = "*limit"
	fieldNamed     = "*limit/"
	fieldElsewhere = "*elsewhere"
	fieldOwn       = "~"
)

// IsClient reports whether a field of accounts is a client's name, whose value is the bytes that
// the client keeps.
func IsClient(field string) bool {
	return field != "" && !strings.ContainsAny(field[:1], FieldTotal+FieldChanges+FieldExpiring+fieldOwn)
}

// FullError means that a client would keep more than it may. Nothing was stored.
type FullError struct {
	Client bus.ClientName
	// Kept and Limit are in bytes, of the Redis that would have stored it.
	Kept, Limit int64
}

// Error says what to do.
func (e *FullError) Error() string {
	return fmt.Sprintf("the account of the client %s is full: its jobs, job types and labels take %d bytes, of %d that it may keep; nothing was stored: "+
		"wait until jobs have ended and are not kept any more, delete what is not needed, or have the operator raise its limit (ROUTEMASTER_CLIENT_MEMORY)",
		e.Client, e.Kept, e.Limit)
}

// Refusal returns the [FullError] of a script that was refused by refusal_of_account, else nil.
func Refusal(c rdb.Change) error {
	if c.Err != nil || c.Changed || c.Text(0) != "account full" {
		return nil
	}
	return &FullError{bus.ClientName(c.Text(1)), rdb.Integer(c.Text(2), 0), rdb.Integer(c.Text(3), 0)}
}

// Limits are how many bytes clients may keep. They are stored with the accounts of each partition.
type Limits struct {
	// High is the high mark of the partition's Redis: see [bus.MemoryLimits]. 0 stands for none.
	High int64
	Clients
	// Elsewhere is how many bytes clients keep in the other partitions of the same Redis, without
	// zeros.
	Elsewhere map[bus.ClientName]int64
}

// Clients are the limits that the operator has set, in bytes.
type Clients struct {
	// Each is for each client that is not named; 0 stands for none.
	Each int64
	// Named are for some clients.
	Named map[bus.ClientName]int64
}

// Write stores limits in a partition, and removes earlier limits that are not among them. It fails
// with [bus.ErrUnavailable].
func (l Limits) Write(ctx context.Context, p *rdb.Partition) error {
	key, fields := layout.Keys{Namespace: p.Namespace()}.Accounts(), map[string]string{}
	set := func(field string, bytes int64) {
		if bytes > 0 {
			fields[field] = strconv.FormatInt(bytes, 10)
		}
	}
	set(fieldHigh, l.High)
	set(fieldLimit, l.Each)
	for name, bytes := range l.Named {
		fields[fieldNamed+string(name)] = strconv.FormatInt(bytes, 10)
	}
	sum := int64(0)
	for name, bytes := range l.Elsewhere {
		set(fieldOwn+string(name), bytes)
		sum += bytes
	}
	set(fieldElsewhere, sum)
	there, err := p.HGetAll(ctx, key).Result()
	if rdb.IsWrongType(err) {
		there, err = nil, p.Del(ctx, key).Err() // the scripts do the same
	}
	if err != nil {
		return rdb.Wrap("read accounts", err)
	}
	var gone []string
	var changed []any
	for field := range there {
		if _, is := fields[field]; !is && isLimit(field) {
			gone = append(gone, field)
		}
	}
	for field, value := range fields {
		if there[field] != value {
			changed = append(changed, field, value)
		}
	}
	return p.Pipelined(ctx, "write limits of accounts", func(pipe rdb.Commands) {
		if len(changed) > 0 {
			pipe.HSet(ctx, key, changed...)
		}
		if len(gone) > 0 {
			pipe.HDel(ctx, key, gone...)
		}
	})
}

// isLimit reports whether a field says something of [Limits].
func isLimit(field string) bool {
	return strings.HasPrefix(field, fieldOwn) || strings.HasPrefix(field, FieldTotal) && field != FieldTotal
}

// Accounts are the accounts of a partition, as they are read.
type Accounts struct {
	Limits
	// Kept is how many bytes each client keeps there, Total the sum.
	Kept  map[bus.ClientName]int64
	Total int64
}

// Read returns the accounts of a partition; damaged ones are empty. It fails with
// [bus.ErrUnavailable].
func Read(ctx context.Context, p *rdb.Partition) (Accounts, error) {
	fields, err := readFields(ctx, p)
	return Parse(fields), err
}

// readFields returns the fields of accounts, none if these are damaged.
func readFields(ctx context.Context, p *rdb.Partition) (map[string]string, error) {
	fields, err := p.HGetAll(ctx, layout.Keys{Namespace: p.Namespace()}.Accounts()).Result()
	if rdb.IsWrongType(err) {
		err = nil
	}
	return fields, rdb.Wrap("read accounts", err)
}

// Parse returns the accounts that the fields of a hash of accounts say.
func Parse(fields map[string]string) Accounts {
	a := Accounts{Kept: map[bus.ClientName]int64{}}
	a.Named, a.Elsewhere = map[bus.ClientName]int64{}, map[bus.ClientName]int64{}
	for field, text := range fields {
		bytes := rdb.Integer(text, 0)
		name, named := strings.CutPrefix(field, fieldNamed)
		own, elsewhere := strings.CutPrefix(field, fieldOwn)
		switch {
		case field == FieldTotal:
			a.Total = bytes
		case field == fieldHigh:
			a.High = bytes
		case field == fieldLimit:
			a.Each = bytes
		case named:
			a.Named[bus.ClientName(name)] = bytes
		case elsewhere:
			a.Elsewhere[bus.ClientName(own)] = bytes
		case IsClient(field) && bytes > 0:
			a.Kept[bus.ClientName(field)] = bytes
		}
	}
	return a
}

// Limit returns how many bytes a client may keep in the partition's Redis, as limit_of of
// lua/account.lua; ok is false if it may keep any number.
func (a *Accounts) Limit(client bus.ClientName) (bytes int64, ok bool) {
	if named, is := a.Named[client]; is {
		return named, true
	}
	if a.High == 0 {
		return a.Each, a.Each > 0
	}
	others := a.Total - a.Kept[client] - a.Elsewhere[client]
	for _, bytes := range a.Elsewhere {
		others += bytes
	}
	share := max(0, (a.High-others)/2)
	if a.Each > 0 {
		share = min(share, a.Each)
	}
	return share, true
}
