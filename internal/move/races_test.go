package move_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/fence"
	"routemaster/internal/move"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func doCopy(*move.Options) {}

// TestARunDuringAnother has a whole run go between any two steps of another, which goes on or is
// broken off then. Whatever the two are, never are both buses open, and nothing that was answered
// is lost.
func TestARunDuringAnother(t *testing.T) {
	runs := []struct {
		name   string
		adjust func(*move.Options)
	}{{"switch", doSwitch}, {"copy", doCopy}, {"cancel", doCancel}}
	runs = runs[:rdbtest.Fewer(len(runs))]
	from, to := newSide(t, rdbtest.Real(t).Open(t), 2), newSide(t, rdbtest.Real(t).Open(t), 0)
	for _, outer := range runs {
		for _, inner := range runs {
			t.Run(inner.name+" during "+outer.name, func(t *testing.T) {
				for _, isCopied := range []bool{false, true} {
					for at := 1; ; at++ {
						r := newRace(t, from.with(t), to.with(t))
						if isCopied {
							requireRun(r.from, r.to, move.Copied)
							r.subscribe("early--1")
							r.publish()
						}
						r.run(outer.adjust, inner.adjust, at, (at%2 == 0) == isCopied)
						if r.steps < at {
							break
						}
						r.end()
					}
				}
			})
		}
	}
}

// race is two buses with a client that publishes, to both in turn, and those that get all of it.
type race struct {
	*testing.T
	from, to *side
	steps    int               // of the outer run
	last     int               // the number of the last event that was accepted
	since    map[bus.Token]int // the first event that each subscriber must get
	received map[bus.Token][]int
}

// with is the bus for a part of a test.
func (s side) with(t testing.TB) *side {
	s.t = t
	return &s
}

func newRace(t *testing.T, from, to *side) *race {
	for _, s := range []*side{from, to} {
		require.NoError(t, s.partitions[0].FlushDB(t.Context()).Err())
	}
	require.NoError(t, store.CreateBus(t.Context(), from.partitions[0].Client(), "", len(from.partitions)))
	r := &race{T: t, from: from, to: to, last: 5, received: map[bus.Token][]int{}}
	r.since = map[bus.Token]int{alice: 1, bob: 1}
	r.from.fill()
	return r
}

// publish offers the next event to both buses, of which one may take it.
func (r *race) publish() {
	r.Helper()
	before := r.last
	for _, s := range []*side{r.from, r.to} {
		if s.publish("widgets", before+1, before+1) == nil {
			r.last++
		}
	}
	require.LessOrEqual(r, r.last, before+1, "both buses are open")
}

// subscribe registers and subscribes a client, where that is possible.
func (r *race) subscribe(token bus.Token) {
	for _, s := range []*side{r.from, r.to} {
		if s.PutToken(r.Context(), token, "late") == nil && s.Subscribe(r.Context(), token, subscription(token, "widgets"), s.now) == nil {
			r.since[token] = r.last + 1
		}
	}
}

// run has a run go through after so many steps of another, which is broken off then, or goes on.
func (r *race) run(outer, inner func(*move.Options), at int, breaksOff bool) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	o := move.Options{From: r.from.partitions, To: r.to.partitions, Now: r.from.clock}
	outer(&o)
	o.AtSteps(func(string) {
		if r.steps++; r.steps == at {
			_, _ = run(r.from, r.to, inner)
			r.subscribe("late--1")
			if breaksOff {
				cancel()
			}
		}
		r.publish()
	})
	_, _ = move.Run(ctx, o)
	r.publish()
}

// end ends the move, and requires that all has come.
func (r *race) end() {
	r.Helper()
	take := func(s *side) {
		for _, got := range s.deliverAll(r.Context()) {
			if got.topic == "widgets" {
				r.received[got.token] = append(r.received[got.token], got.number)
			}
		}
	}
	for range 4 {
		take(r.to)
		report, err := run(r.from, r.to, doCancel) // nothing if it is too late
		if err == nil {
			assert.Equal(r, move.Cancelled, report.Phase)
		}
		r.publish()
		report, err = run(r.from, r.to, doSwitch)
		require.NoError(r, err)
		r.publish()
		take(r.to)
		take(r.from)
		if report.Phase == move.Over {
			break
		}
	}
	requireRun(r.from, r.to, move.Over)
	take(r.to)
	require.NoError(r, r.to.PutToken(r.Context(), "late--1", "late")) // which may have been refused in a part
	for token, first := range r.since {
		assert.Equal(r, storetest.UpTo(first, r.last), r.received[token], token)
	}
	requireSound(r.from, r.to)
}

// TestAnotherRedis than the one that a bus moves to is refused, and so is another bus to move from.
func TestAnotherRedis(t *testing.T) {
	a, b, c, d := embedded(t, 0), embedded(t, 2), embedded(t, 0), embedded(t, 0)
	refused := func(text string, from, to *side, adjust ...func(*move.Options)) {
		t.Helper()
		_, err := run(from, to, adjust...)
		require.ErrorContains(t, err, text)
	}
	a.fill()
	requireRun(a, b, move.Copied)
	for _, adjust := range []func(*move.Options){doCopy, doSwitch} {
		refused("is being moved to another Redis", a, c, adjust)
		refused("belongs to the move of another bus", d, b, adjust)
	}
	refused("belongs to the move of another bus", d, b, doCancel)
	requireRun(a, b, move.Cancelled, doCancel)
	requireRun(a, c, move.Copied)
	refused("is being moved to another Redis", a, b)
	requireRun(a, c, move.Cancelled, doCancel)

	requireRun(a, b, move.Draining, doSwitch)
	require.NoError(t, b.publish("widgets", 6, 6))
	for range 2 {
		for _, adjust := range []func(*move.Options){doCopy, doSwitch, doCancel} {
			refused("was moved to another Redis", a, c, adjust)
			refused("belongs to the move of another bus", d, b, adjust)
		}
		require.ErrorIs(t, a.publish("widgets", 7, 7), bus.ErrMoving)
		// As a run leaves it that is broken off right after the step that decides.
		for i, p := range b.partitions {
			closed := fmt.Sprintf("closed/new/%s/run%d", moveOf(a), i)
			require.NoError(t, p.HSet(t.Context(), p.Namespace()+"plans", fence.Field, closed).Err())
		}
	}
	requireRun(a, b, move.Draining)
	a.deliverAll(t.Context())
	requireRun(a, b, move.Over)
	refused("was moved to another Redis", a, c)
	requireRun(a, b, move.Over)
	requireSound(a, b, c)
}

// TestACancelWithoutTheNewRedis opens the old bus; the Redis that was not named can be used again
// when it is empty.
func TestACancelWithoutTheNewRedis(t *testing.T) {
	a, b, c := embedded(t, 2), embedded(t, 0), embedded(t, 0)
	a.fill()
	requireRun(a, b, move.Copied)
	a.closeByHand(0)
	requireRun(a, c, move.Cancelled, doCancel)
	require.NoError(t, a.publish("widgets", 6, 6))
	_, err := run(a, b)
	require.ErrorContains(t, err, "give an empty one")
	require.ErrorIs(t, b.publish("widgets", 7, 7), bus.ErrMoving)
	requireRun(a, c, move.Draining, doSwitch)
	requireSound(a, c)
}

// TestTheSameBusByTwoAddresses is refused, and left as it was.
func TestTheSameBusByTwoAddresses(t *testing.T) {
	for _, count := range []int{0, 2} {
		server := rdbtest.Embedded(t)
		from := newSide(t, server.Open(t), count)
		to := &side{t: t, Bus: from.Bus, partitions: server.Open(t).Partitions("", count), now: from.now}
		if count == 0 {
			to = newSide(t, server.Open(t), 0)
		}
		from.fill()
		_, err := run(from, to)
		require.ErrorContains(t, err, "is not empty")
		require.NoError(t, from.publish("widgets", 6, 6))
		assert.Empty(t, moveOf(from))
	}
}

// TestABrokenSwitchThatIsRefused does not leave the bus closed.
func TestABrokenSwitchThatIsRefused(t *testing.T) {
	from, to := embedded(t, 2), embedded(t, 0)
	from.fill()
	requireRun(from, to, move.Copied)
	from.closeByHand(0)
	p := from.partitions[0]
	p.SAdd(t.Context(), p.Namespace()+"work:types", "paint-widgets")
	_, err := run(from, to, doSwitch)
	require.ErrorContains(t, err, "not switched, the old bus is open: the bus has 1 job type")
	require.NoError(t, from.publish("widgets", 6, 6))
}

// TestACopyThatIsOvertaken by a switch changes nothing of what the new bus has since.
func TestACopyThatIsOvertaken(t *testing.T) {
	from, to := embedded(t, 0), embedded(t, 2)
	from.fill()
	requireRun(from, to, move.Copied)
	from.subscribe("carol--1", "gadgets")
	require.NoError(t, from.publish("widgets", 6, 6))
	from.deliverAll(t.Context())
	overtaken := false
	_, err := run(from, to, func(o *move.Options) {
		o.AtSteps(func(step string) {
			if step == "copied" && !overtaken {
				overtaken = true
				requireRun(from, to, move.Over, doSwitch)
				require.NoError(t, to.publish("widgets", 7, 9))
			}
		})
	})
	require.ErrorContains(t, err, "another rtm move went on")
	_, topics, _ := to.shown()
	assert.Equal(t, int64(9), topics[1].Events)
	assert.Equal(t, storetest.UpTo(7, 9), to.deliver(bob, "widgets"), "it is not held")
	requireSound(from, to)
}

// TestACopyThatWasStopped for a while, and goes on when a switch has copied all, writes nothing: it
// has seen less.
func TestACopyThatWasStopped(t *testing.T) {
	from, to := embedded(t, 0), embedded(t, 2)
	from.fill()
	requireRun(from, to, move.Copied)
	from.subscribe("carol--1", "gadgets") // so that there is a step before the topics
	require.NoError(t, from.publish("widgets", 6, 6))
	stopped, goOn, ended := make(chan bool), make(chan bool), make(chan error)
	go func() {
		_, err := run(from, to, func(o *move.Options) {
			once := sync.OnceFunc(func() {
				stopped <- true
				<-goOn
			})
			o.AtSteps(func(step string) {
				if step == "copied" {
					once()
				}
			})
		})
		ended <- err
	}()
	<-stopped
	require.NoError(t, from.publish("widgets", 7, 7))
	isClosed, isGoing := false, false
	requireRun(from, to, move.Draining, doSwitch, func(o *move.Options) {
		o.AtSteps(func(step string) {
			isClosed = isClosed || step == "closed"
			if step == "marked" && isClosed && !isGoing { // it is decided, and nothing is open yet
				isGoing = true
				goOn <- true
				require.ErrorContains(t, <-ended, "another rtm move went on")
			}
		})
	})
	_, topics, _ := to.shown()
	assert.Equal(t, int64(7), topics[1].Events)
	requireSound(from, to)
}

// TestABusThatAnotherRunHasClosed since is not what this run has copied, so it does not switch, and
// leaves the bus to the other run.
func TestABusThatAnotherRunHasClosed(t *testing.T) {
	from, to := embedded(t, 2), embedded(t, 0)
	from.fill()
	requireRun(from, to, move.Copied)
	_, err := run(from, to, doSwitch, func(o *move.Options) {
		o.AtSteps(func(step string) {
			if step == "closed" {
				killedSwitch(t, from, to, func() { require.NoError(t, from.publish("widgets", 6, 6)) })
			}
		})
	})
	require.ErrorContains(t, err, "another rtm move went on")
	require.ErrorIs(t, from.publish("widgets", 7, 7), bus.ErrMoving)
	require.ErrorIs(t, to.publish("widgets", 7, 7), bus.ErrMoving)
	requireRun(from, to, move.Draining, doSwitch)
	require.NoError(t, to.publish("widgets", 7, 7))
	_, topics, _ := to.shown()
	assert.Equal(t, int64(7), topics[1].Events)
}

// killedSwitch is a switch that is killed when it has closed the bus, and what is done before,
// while the bus is open.
func killedSwitch(t *testing.T, from, to *side, whileOpen func()) {
	t.Helper()
	defer func() { require.Equal(t, "killed", recover()) }()
	isOpen := false
	_, _ = run(from, to, doSwitch, func(o *move.Options) {
		o.AtSteps(func(step string) {
			switch {
			case step == "closed":
				panic("killed")
			case !isOpen && from.RequireServing(t.Context()) == nil:
				isOpen = true
			case isOpen && whileOpen != nil:
				whileOpen()
				whileOpen = nil
			}
		})
	})
}
