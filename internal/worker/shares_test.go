package worker

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
)

// payload is of a task with the given owners.
type payload []queue.Owner

func (payload) LaneStanding() bus.Standing { return bus.Proven }

func (p payload) Owners() []queue.Owner { return p }

func (payload) LogAttrs() []slog.Attr { return nil }

// sharing are the shares of a pool, whose threads take all tasks that they may.
type sharing struct {
	*shares
	now   time.Time
	tasks map[queue.Owner][]*queue.Task
}

func newSharing(threads int) *sharing {
	return &sharing{newShares(threads), time.UnixMilli(1_700_000_000_000), map[queue.Owner][]*queue.Task{}}
}

// mayTake is whether an entry with these owners may be taken by a call, as put_off_if_full of
// lib/acquire.lua decides.
func mayTake(g grant, owners ...queue.Owner) bool {
	for _, o := range owners {
		for _, f := range g.full {
			if f.Owner == o {
				return f.Recheck == 0
			}
		}
	}
	return true
}

// begin has an idle thread take a task with these owners, if there is one that may.
func (s *sharing) begin(owners ...queue.Owner) bool {
	if len(s.held) == s.threads {
		return false
	}
	g := s.ask(s.now)
	var task *queue.Task
	if g.wait == 0 && mayTake(g, owners...) {
		task = &queue.Task{Payload: payload(owners)}
		s.tasks[owners[0]] = append(s.tasks[owners[0]], task)
	}
	s.take(g, task, s.now)
	return task != nil
}

// fill begins as many as may be, and returns how many the first owner has then.
func (s *sharing) fill(owners ...queue.Owner) int {
	for s.begin(owners...) {
	}
	return len(s.tasks[owners[0]])
}

// finish ends the oldest task of a first owner.
func (s *sharing) finish(o queue.Owner, hosts ...queue.Owner) {
	s.end(s.tasks[o][0], hosts, s.now)
	s.tasks[o] = s.tasks[o][1:]
}

func (s *sharing) finishAll(o queue.Owner) {
	for len(s.tasks[o]) > 0 {
		s.finish(o)
	}
}

func (s *sharing) pass(d time.Duration) { s.now = s.now.Add(d) }

// TestABurstLeavesThreads lets owners take all that they may before they are known to be slow, and
// again afterwards.
func TestABurstLeavesThreads(t *testing.T) {
	for _, c := range []struct{ threads, burst, second, slow int }{
		{1, 1, 0, 1}, {2, 1, 1, 1}, {3, 2, 1, 2}, {4, 3, 1, 3}, {8, 7, 1, 6}, {32, 28, 3, 24}, {256, 224, 28, 192},
	} {
		t.Run(fmt.Sprint(c.threads), func(t *testing.T) {
			s := newSharing(c.threads)
			assert.Equal(t, c.burst, s.fill("a"))
			assert.Equal(t, c.threads > 1, s.waits(), "a thread is left")
			s.pass(stallAfter)
			assert.Equal(t, c.burst, s.fill("a"), "none of them is back")
			assert.Equal(t, c.second, s.fill("b"))
			s.finishAll("b")
			s.pass(slowAfter)
			s.finishAll("a")
			assert.Equal(t, c.slow, s.fill("a"), "it is slow by now")
		})
	}
}

// waits is whether there is an idle thread, which waits for a moment.
func (s *sharing) waits() bool {
	if len(s.held) == s.threads {
		return false
	}
	g := s.ask(s.now)
	s.take(g, nil, s.now)
	return g.wait > 0
}

func TestThreadsWaitForOneThatIsQuick(t *testing.T) {
	s := newSharing(8)
	s.fill("a")
	for range 10 {
		s.pass(10 * time.Millisecond)
		assert.True(t, s.waits(), "its requests end all the time")
		s.finish("a")
		assert.True(t, s.begin("a"))
		for range 6 {
			s.finish("a")
			s.begin("a")
		}
	}
	assert.False(t, s.begin("b"), "the threads of the quick one take it in order")
	s.pass(stallAfter)
	assert.True(t, s.begin("b"))
	assert.False(t, s.begin("a"))
}

// TestAnIdleThreadIsWokenOnceOneIsLeft and not by a task whose thread takes the owner's next.
func TestAnIdleThreadIsWokenOnceOneIsLeft(t *testing.T) {
	s := newSharing(8)
	s.fill("a")
	assert.True(t, s.waits())
	s.finish("a")
	assert.True(t, s.begin("a"))
	assert.Empty(t, s.freed)
	s.finish("a")
	assert.False(t, s.waits())
	assert.Len(t, s.freed, 1)
	<-s.freed
	assert.False(t, s.waits())
	assert.Len(t, s.freed, 1, "another may wait, too")
	assert.False(t, s.waits())
	<-s.freed
	assert.False(t, s.waits())
	assert.Empty(t, s.freed, "nobody waits any more")
}

// TestCallsOfOtherTimes lets threads read the clock in another order than they come to the shares,
// and sets the clock back: an owner may be slow before any thread has looked.
func TestCallsOfOtherTimes(t *testing.T) {
	s := newSharing(8)
	start := s.now
	assert.True(t, s.begin("b"), "which looks when an owner may be slow")
	s.finish("b")
	s.now = start.Add(-100 * time.Millisecond)
	s.fill("a")
	s.now = start.Add(slowAfter - time.Millisecond)
	require.NotPanics(t, func() { s.begin("b") })
	assert.Zero(t, s.quietUntil, "it is found to be slow")
}

func TestSlowOwnersShare(t *testing.T) {
	s := newSharing(32)
	slow := func(o queue.Owner) {
		s.begin(o)
		s.pass(slowAfter)
		s.finish(o)
	}
	for _, o := range []queue.Owner{"a", "b", "c"} {
		slow(o)
	}
	assert.Equal(t, 10, s.fill("a"), "a third")
	assert.Equal(t, 10, s.fill("b"))
	assert.Equal(t, 4, s.fill("c"), "all slow ones hold three quarters")
	for i := range 8 {
		assert.True(t, s.begin(queue.Owner(fmt.Sprint("healthy", i))))
	}
	s.finish("a")
	assert.False(t, s.begin("a"), "others wait for threads, too")
	assert.False(t, s.begin("c"))
	for i := range 8 {
		s.finish(queue.Owner(fmt.Sprint("healthy", i)))
	}
	s.finishAll("a")
	s.finishAll("b")
	s.pass(slowMemory)
	assert.Equal(t, 24, s.fill("c"), "nobody else has come for some time")
}

func TestManySlowOwnersHoldOneEach(t *testing.T) {
	s := newSharing(8)
	for i := range 20 {
		o := queue.Owner(fmt.Sprint(i))
		s.begin(o)
		s.pass(100 * time.Millisecond)
		s.slowly(o)
	}
	begun := 0
	for i := range 20 {
		o := queue.Owner(fmt.Sprint(i))
		begun += s.fill(o)
		assert.LessOrEqual(t, len(s.tasks[o]), 1)
	}
	assert.Equal(t, 6, begun)
	assert.True(t, s.begin("healthy"))
}

// slowly ends the oldest task of an owner as one that took long.
func (s *sharing) slowly(o queue.Owner) {
	now := s.now
	s.pass(slowAfter)
	s.finish(o)
	s.now = now
}

func TestASlowOwnerMayBeQuickAgain(t *testing.T) {
	s := newSharing(8)
	s.begin("a")
	s.slowly("a")
	assert.Equal(t, 6, s.fill("a"))
	s.finishAll("a")
	s.pass(slowMemory)
	assert.Equal(t, 7, s.fill("a"))
}

func TestCallsUnderWayCount(t *testing.T) {
	s := newSharing(8)
	s.begin("a")
	s.slowly("a")
	var grants []grant
	for i := range 8 {
		g := s.ask(s.now)
		assert.Equal(t, i < 6, mayTake(g, "a"), "call %d", i)
		grants = append(grants, g)
	}
	for _, g := range grants {
		s.take(g, nil, s.now)
	}
	assert.Equal(t, 6, s.fill("a"))
}

// TestACallUnderWayCountsOnce has as many slow owners as threads that they may hold, which hold
// none: a call takes one task at most, whichever owner's it is.
func TestACallUnderWayCountsOnce(t *testing.T) {
	for _, threads := range []int{4, 8, 32} {
		s := newSharing(threads)
		room := threads - part(threads, 4)
		for i := range room {
			owner := queue.Owner(fmt.Sprint(i))
			s.begin(owner)
			s.slowly(owner)
		}
		var grants []grant
		for range room {
			g := s.ask(s.now)
			assert.Empty(t, g.full, "call %d of %d threads", len(grants), threads)
			grants = append(grants, g)
		}
		last := s.ask(s.now)
		assert.False(t, mayTake(last, "0"), "all that slow owners may hold may be taken by now")
		for _, g := range append(grants, last) {
			s.take(g, nil, s.now)
		}
	}
}

func TestOwnersWithASlowHostCountTogether(t *testing.T) {
	const host = "@slow.example"
	s := newSharing(32)
	s.begin("quick", host)
	s.finish("quick")
	for _, o := range []queue.Owner{"a", "b", "c", "d"} {
		s.begin(o, host)
		s.slowly(o)
	}
	s.begin("other", "@other.example")
	s.slowly("other")
	s.begin("third", "@other.example")
	s.slowly("third")
	total := 0
	for _, o := range []queue.Owner{"a", "b", "c", "d", "new"} {
		total += s.fill(o, host)
	}
	assert.Equal(t, 16, total, "half of the threads: another host waits")
	assert.False(t, s.begin("unknown", host))
	assert.True(t, s.begin("quick", host), "it is no reason to wait")
	assert.True(t, s.begin("other", "@other.example"))
	assert.True(t, s.begin("unknown", "@third.example"))
}

// TestOneSlowOwnerOfAHostIsItsOwnFault has no other wait at a host because one owner is slow there.
func TestOneSlowOwnerOfAHostIsItsOwnFault(t *testing.T) {
	const host = "@gateway.example"
	s := newSharing(8)
	s.begin("a", host)
	s.slowly("a")
	assert.Equal(t, 6, s.fill("a", host))
	assert.True(t, s.begin("new", host))
}

// TestHostsThatRequestsShow has owners whose hosts are only known from their requests.
func TestHostsThatRequestsShow(t *testing.T) {
	const host = "@slow.example"
	s := newSharing(8)
	for _, o := range []queue.Owner{"m/a", "n/b"} {
		s.begin(o, o[:2])
		now := s.now
		s.pass(slowAfter)
		s.finish(o, host)
		s.now = now
	}
	s.begin("p/c", "p/")
	s.finish("p/c", host)
	total := s.fill("m/a", "m/") + s.fill("n/b", "n/")
	assert.Equal(t, 6, total)
	assert.True(t, s.begin("p/c", "p/"), "known to be quick")
	s.finish("p/c", "@other.example")
}

func TestNothingIsFullWhileAllIsQuiet(t *testing.T) {
	s := newSharing(32)
	for i := range 27 {
		assert.True(t, s.begin(queue.Owner(fmt.Sprint(i))))
	}
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		g := s.ask(s.now)
		s.take(g, nil, s.now)
	}))
}

func TestOwnersAreForgotten(t *testing.T) {
	s := newSharing(8)
	s.begin("a", "@host")
	s.slowly("a")
	s.pass(ownerMemory + time.Second)
	s.begin("b")
	s.pass(ownerMemory + time.Second)
	s.begin("b")
	assert.Len(t, s.owners, 1)
	assert.Len(t, s.active, 1)
}
