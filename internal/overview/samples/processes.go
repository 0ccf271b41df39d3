package samples

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/clock"
	"routemaster/internal/layout"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
)

// How often processes say that they live.
const (
	WorkerInterval = 5 * time.Second
	WebInterval    = 10 * time.Second
)

// forgetAfter is how long the entry of a process that no longer says that it lives is kept.
const forgetAfter = time.Minute

// awaitInterval is the pause before Redis is asked again for the time.
const awaitInterval = 200 * time.Millisecond

// leaveTimeout bounds how long a process that stops tries to remove its entry.
const leaveTimeout = time.Second

// processes reads and writes the processes of a bus in Redis.
type processes struct{ redis *rdb.Partition }

func (p *processes) key() string { return layout.Keys{Namespace: p.redis.Namespace()}.Processes() }

// entries reads all entries, by id. An unreadable entry is empty: it was never seen.
func (p *processes) entries(ctx context.Context) (map[string]overview.Process, error) {
	texts, err := p.redis.HGetAll(ctx, p.key()).Result()
	if err != nil {
		return nil, rdb.Wrap("list processes", err)
	}
	found := make(map[string]overview.Process, len(texts))
	for id, text := range texts {
		var one overview.Process
		if json.Unmarshal([]byte(text), &one) != nil {
			one = overview.Process{}
		}
		found[id] = one
	}
	return found, nil
}

// Processes returns the processes of a bus with a recent heartbeat, given its first partition. It
// fails with [bus.ErrUnavailable].
func Processes(ctx context.Context, p *rdb.Partition, now time.Time) ([]overview.Process, error) {
	all, err := (&processes{p}).list(ctx)
	return slices.DeleteFunc(all, func(one overview.Process) bool { return isOld(one, now) }), err
}

// isOld reports whether a process was last seen long ago.
func isOld(one overview.Process, now time.Time) bool {
	seen := one.SeenAt.Add(-time.Duration(one.Ahead) * time.Millisecond)
	return now.Sub(seen) > forgetAfter
}

// isDamaged reports whether the entries cannot be read because their key is no hash.
func (p *processes) isDamaged(ctx context.Context) bool {
	return rdb.IsWrongType(p.redis.HLen(ctx, p.key()).Err())
}

// list returns the processes that have said lately that they live.
func (p *processes) list(ctx context.Context) (all []overview.Process, err error) {
	entries, err := p.entries(ctx)
	for _, one := range entries {
		if !one.SeenAt.IsZero() {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b overview.Process) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID))
	})
	return all, err
}

// forget removes the entries of processes that were last seen long ago. One that comes back writes
// its entry again.
func (p *processes) forget(ctx context.Context, now time.Time) error {
	entries, err := p.entries(ctx)
	if err != nil {
		return err
	}
	var old []string
	for id, one := range entries {
		if isOld(one, now) {
			old = append(old, id)
		}
	}
	if len(old) == 0 {
		return nil
	}
	return rdb.Wrap("remove processes", p.redis.HDel(ctx, p.key(), old...).Err())
}

// Heartbeat says in Redis that this process lives. It must not be used concurrently.
type Heartbeat struct {
	processes *processes
	id        string
	process   overview.Process
	update    func(*overview.Process)
	clock     *clock.Clock
	others    rdb.Partitions
}

// NewHeartbeat makes a heartbeat. Process has the kind, the version and the threads; update, if
// given, sets the changing fields before each beat. Others are the other partitions of the bus:
// while p is unavailable, one of them gives the time.
func NewHeartbeat(
	p *rdb.Partition, process overview.Process, update func(*overview.Process), c *clock.Clock, others ...*rdb.Partition,
) *Heartbeat {
	process.PID, process.StartedAt = os.Getpid(), overview.Time{Time: c.Wall()}
	process.Host, _ = os.Hostname()
	return &Heartbeat{&processes{p}, rand.Text(), process, update, c, others}
}

// Await measures the clock, whether or not Redis takes writes. It returns once a partition has
// answered or the context is done.
func (h *Heartbeat) Await(ctx context.Context) {
	for ctx.Err() == nil {
		for _, from := range append(rdb.Partitions{h.processes.redis}, h.others...) {
			if err := h.measure(ctx, from); !errors.Is(err, bus.ErrUnavailable) {
				return // an error is a reason to go by the host's clock
			}
		}
		select {
		case <-time.After(awaitInterval):
		case <-ctx.Done():
		}
	}
}

func (h *Heartbeat) measure(ctx context.Context, from *rdb.Partition) error {
	return rdb.Wrap("heartbeat", h.clock.Measure(func() (time.Time, error) { return from.Time(ctx).Result() }))
}

// Beat measures the clock, and says that the process lives, and how far the host's clock is ahead
// of Redis'. It fails with [bus.ErrUnavailable].
func (h *Heartbeat) Beat(ctx context.Context) error {
	if err := h.measure(ctx, h.processes.redis); err != nil {
		return err
	}
	h.process.SeenAt = overview.Time{Time: h.clock.Wall()}
	h.process.Ahead = h.clock.Ahead().Milliseconds()
	if h.update != nil {
		h.update(&h.process)
	}
	text, err := json.Marshal(h.process)
	if err != nil {
		return err
	}
	return rdb.Wrap("heartbeat", h.processes.redis.HSet(ctx, h.processes.key(), h.id, text).Err())
}

// Run awaits Redis, and then beats at an interval until the context is done. Then it says that the
// process has ended.
func (h *Heartbeat) Run(ctx context.Context, interval time.Duration) {
	defer h.Leave()
	h.Await(ctx)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		_ = h.Beat(ctx) // package rdb logs that Redis is unavailable
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// Leave says that the process has ended, as far as Redis answers within a second.
func (h *Heartbeat) Leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	_ = h.processes.redis.HDel(ctx, h.processes.key(), h.id).Err()
}
