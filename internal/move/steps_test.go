package move_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/clock"
	"routemaster/internal/fence"
	"routemaster/internal/move"
	"routemaster/internal/overview"
	"routemaster/internal/overview/samples"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestAMoveThatIsBrokenOff at any step, also again and again, loses nothing: the next run goes on.
func TestAMoveThatIsBrokenOff(t *testing.T) {
	eachOf(t, 3, 5, func(t *testing.T, from, to *side) {
		from.fill()
		from.subscribe("carol--1", "gizmos", "widgets")
		last, received := 5, map[bus.Token][]int{}
		take := func(s *side) {
			for _, got := range s.deliverAll(t.Context()) {
				if got.topic == "widgets" {
					received[got.token] = append(received[got.token], got.number)
				}
			}
		}
		publish := func() {
			accepted := 0
			for _, s := range []*side{from, to} {
				if s.publish("widgets", last+1, last+1) == nil {
					accepted++
				}
			}
			require.Less(t, accepted, 2, "both buses take publishes")
			last += accepted
		}
		broken := 0
		for at := 0; ; at++ {
			ctx, cancel := context.WithCancel(t.Context())
			steps := 0
			o := move.Options{From: from.partitions, To: to.partitions, Switch: at > 14, Now: from.clock}
			o.AtSteps(func(string) {
				publish()
				if steps++; steps > at%15 {
					cancel()
				}
			})
			report, err := move.Run(ctx, o)
			cancel()
			publish()
			take(to)
			if err != nil {
				broken++
			} else if report.Phase == move.Over {
				break
			}
			if at > 30 {
				take(from)
			}
			require.Less(t, at, 100, "the move does not end")
		}
		assert.Greater(t, broken, 5)
		take(to)
		for token, first := range map[bus.Token]int{alice: 1, bob: 1, "carol--1": 6} {
			assert.Equal(t, storetest.UpTo(first, last), received[token], token)
		}
		requireSound(from, to)
	})
}

// TestASwitchThatFails opens the old bus again.
func TestASwitchThatFails(t *testing.T) {
	eachOf(t, 0, 3, func(t *testing.T, from, to *side) {
		from.fill()
		requireRun(from, to, move.Copied)
		closed := 0
		_, err := run(from, to, doSwitch, func(o *move.Options) {
			o.AtSteps(func(step string) {
				if step != "closed" {
					return
				}
				closed++
				require.ErrorIs(t, from.publish("widgets", 6, 6), bus.ErrMoving)
				_, err := to.partitions[1].Hold(t.Context(), 0)
				require.NoError(t, err)
			})
		})
		require.ErrorIs(t, err, bus.ErrUnavailable)
		require.ErrorContains(t, err, "not switched, the old bus is open")
		assert.Equal(t, 1, closed)
		require.NoError(t, from.publish("widgets", 6, 6))
		require.NoError(t, to.partitions[1].Release(t.Context()))
		requireRun(from, to, move.Copied)
		requireRun(from, to, move.Draining, doSwitch)
		assert.Equal(t, storetest.UpTo(1, 6), from.deliver(alice, "widgets"))
		requireRun(from, to, move.Over)
		requireSound(from, to)
	})
}

// closeByHand closes some partitions, from the last on, as a switch leaves them that was killed.
func (s *side) closeByHand(from int) {
	first := s.partitions[0]
	mark := first.HGet(s.t.Context(), first.Namespace()+"plans", fence.Field).Val()
	for _, p := range s.partitions[from:] {
		closed := strings.Replace(mark, "open/", fence.Closed+"/", 1)
		require.NoError(s.t, p.HSet(s.t.Context(), p.Namespace()+"plans", fence.Field, closed).Err())
	}
}

func TestASwitchThatWasKilled(t *testing.T) {
	eachOf(t, 3, 5, func(t *testing.T, from, to *side) {
		from.fill()
		requireRun(from, to, move.Copied)
		for i := len(from.partitions) - 1; i >= 0; i-- {
			from.closeByHand(i)
			_, err := run(from, to)
			require.ErrorContains(t, err, "a switch was broken off, and publishers get 503")
		}
		requireRun(from, to, move.Cancelled, doCancel)
		require.NoError(t, from.publish("widgets", 6, 6))
		requireRun(from, to, move.Copied)
		from.closeByHand(0)
		requireRun(from, to, move.Draining, doSwitch)
		_, err := run(from, to, doCancel)
		require.ErrorContains(t, err, "cannot be undone")
		assert.Equal(t, storetest.UpTo(1, 6), from.deliver(alice, "widgets"))
		requireRun(from, to, move.Over)
		requireSound(from, to)
	})
}

// TestAFailoverThatOpensTheOldBus is noticed by the next run.
func TestAFailoverThatOpensTheOldBus(t *testing.T) {
	eachOf(t, 3, 0, func(t *testing.T, from, to *side) {
		from.fill()
		requireRun(from, to, move.Draining, doSwitch)
		home := from.Home("widgets").Partition()
		mark := home.HGet(t.Context(), home.Namespace()+"plans", fence.Field).Val()
		require.NoError(t, home.HDel(t.Context(), home.Namespace()+"plans", fence.Field).Err())
		require.NoError(t, from.publish("widgets", 6, 6))
		requireRun(from, to, move.Draining)
		for _, p := range from.partitions { // as all were before the switch
			before := strings.Replace(mark, "closed/switched", "open/old", 1)
			require.NoError(t, p.HSet(t.Context(), p.Namespace()+"plans", fence.Field, before).Err())
		}
		_, err := run(from, to, doCancel)
		require.ErrorContains(t, err, "cannot be undone")
		requireRun(from, to, move.Draining)
		require.ErrorIs(t, from.publish("widgets", 7, 7), bus.ErrMoving)
		assert.Equal(t, storetest.UpTo(1, 6), from.deliver(alice, "widgets"))
		types := home.Namespace() + "work:types" // an old web makes one
		home.SAdd(t.Context(), types, "paint-widgets")
		_, err = run(from, to)
		require.ErrorContains(t, err, "the bus has 1 job type")
		home.Del(t.Context(), types)
		requireRun(from, to, move.Over)
	})
}

func TestWhatIsRefused(t *testing.T) {
	eachOf(t, 0, 3, func(t *testing.T, from, to *side) {
		ctx, first := t.Context(), from.partitions[0]
		refused := func(text string, from, to *side, adjust ...func(*move.Options)) {
			t.Helper()
			_, err := run(from, to, adjust...)
			require.ErrorContains(t, err, text)
		}
		refused("the Redis to move from has no bus", from, to)
		assert.Empty(t, moveOf(to))
		from.fill()
		refused("nothing is being moved", from, to, doCancel)
		to.register("early--1")
		refused("is not empty, it has tokens", from, to)
		require.NoError(t, to.DeleteToken(ctx, "early--1"))

		_, _, err := from.RotateToken(ctx, alice)
		require.NoError(t, err)
		refused("a rotation is under way of 1 token", from, to)
		require.NoError(t, from.FinishRotation(ctx, alice))
		first.SAdd(ctx, "work:types", "paint-widgets")
		refused("the bus has 1 job type, and jobs are not moved yet", from, to)
		first.Del(ctx, "work:types")
		first.HSet(ctx, "machines:definitions", "version", 3, "outline", `{"buyers":{"waiting":true}}`)
		refused("the bus has 1 state machine, and these are not moved yet", from, to)
		first.HSet(ctx, "machines:definitions", "outline", `{}`)
		first.Set(ctx, "migration", 1, 0)
		refused("the Ruby original may run here too", from, to)
		first.Del(ctx, "migration")
		_, err = to.partitions[2].Hold(ctx, 0)
		require.NoError(t, err)
		_, err = run(from, to)
		require.ErrorIs(t, err, bus.ErrUnavailable)
		require.NoError(t, to.partitions[2].Release(ctx))

		requireRun(from, to, move.Copied)
		refused("these two are not the buses of one move", to, from)
		heartbeat := samples.NewHeartbeat(first, overview.Process{Kind: "web", Version: "older"}, nil, clock.New(from.clock, nil))
		require.NoError(t, heartbeat.Beat(ctx))
		isNow := func(o *move.Options) { o.Version = "newer" }
		refused(`is of the version "older" and this is "newer"`, from, to, doSwitch, isNow)
		assert.Equal(t, 1, requireRun(from, to, move.Copied).OldWebs)
		heartbeat.Leave()
		heartbeat = samples.NewHeartbeat(to.partitions[0], overview.Process{Kind: "web", Version: "older"}, nil, clock.New(from.clock, nil))
		require.NoError(t, heartbeat.Beat(ctx))
		refused(`is of the version "older" and this is "newer"`, from, to, isNow)
		heartbeat.Leave()

		first.SAdd(ctx, "work:types", "paint-widgets")
		refused("the bus has 1 job type", from, to, doSwitch)
		require.NoError(t, from.publish("widgets", 6, 6))
		first.Del(ctx, "work:types")
		requireRun(from, to, move.Draining, doSwitch)
		refused("these two are not the buses of one move", to, from)
		refused("cannot be undone", from, to, doCancel)
		first.HSet(ctx, "plans", fence.Field, "open/new/world")
		refused("these two are not the buses of one move", from, to)
		first.HSet(ctx, "plans", fence.Field, "unheard of")
		refused("which no version of rtm move writes", from, to)
	})
}

// TestHistoriesBeginAnew on the new bus, at the position that follows; what the old one has is
// counted.
func TestHistoriesBeginAnew(t *testing.T) {
	eachOf(t, 3, 5, func(t *testing.T, from, to *side) {
		ctx := t.Context()
		from.fill()
		require.NoError(t, store.NewHistory(from.Home("widgets")).Put(ctx, "widgets", "", store.HistoryLimits{Events: 100}, from.now))
		require.NoError(t, from.publish("widgets", 6, 8))
		assert.Equal(t, int64(3), requireRun(from, to, move.Copied).History)
		_, err := run(from, to, doSwitch, func(o *move.Options) { // it fails, and more is published
			o.AtSteps(func(step string) {
				if step == "closed" {
					from.partitions[0].SAdd(ctx, from.partitions[0].Namespace()+"work:types", "paint-widgets")
				}
			})
		})
		require.Error(t, err)
		from.partitions[0].Del(ctx, from.partitions[0].Namespace()+"work:types")
		require.NoError(t, from.publish("widgets", 9, 9))
		report := requireRun(from, to, move.Draining, doSwitch)
		assert.Equal(t, int64(4), report.History)
		requireSound(from, to)
		require.NoError(t, to.publish("widgets", 10, 11))
		status, err := store.NewHistory(to.Home("widgets")).Get(ctx, "widgets")
		require.NoError(t, err)
		assert.Equal(t, [...]int64{10, 11, 100}, [...]int64{status.First, status.Last, status.Limits.Events})
		requireSound(from, to)
	})
}

// TestAChangeThatWasBrokenOffIsCopied as the partition decides that it belongs to.
func TestAChangeThatWasBrokenOffIsCopied(t *testing.T) {
	eachOf(t, 3, 5, func(t *testing.T, from, to *side) {
		ctx := t.Context()
		from.fill()
		requireRun(from, to, move.Copied)
		for i, p := range to.partitions { // as a registration and a removal leave it that were broken off
			if rdb.Number(i) != to.Of(alice).Partition().Number() {
				require.NoError(t, p.HDel(ctx, p.Namespace()+"api_tokens:by_token", string(alice)).Err())
			}
		}
		other := (to.Of("gone--1").Partition().Number() + 1) % 5
		p := to.partitions[other]
		require.NoError(t, p.HSet(ctx, p.Namespace()+"api_tokens:by_token", "gone--1", "gone").Err())
		requireRun(from, to, move.Copied)
		requireSound(to)
		assert.Zero(t, requireRun(from, to, move.Copied).Changed)
	})
}

// TestWhatIsStillHeldAtTheEnd is released: nobody else would.
func TestWhatIsStillHeldAtTheEnd(t *testing.T) {
	from, to := embedded(t, 0), embedded(t, 2)
	from.fill()
	from.deliverAll(t.Context())
	requireRun(from, to, move.Over, doSwitch)
	p := to.Of(alice).Partition()
	require.NoError(t, p.HSet(t.Context(), p.Namespace()+"plans", fence.HeldField(string(alice)), "0").Err())
	require.NoError(t, p.HSet(t.Context(), p.Namespace()+"delivery:"+string(alice), "paused_until", bus.Forever.UnixMilli()).Err())
	require.NoError(t, to.publish("widgets", 6, 6))
	assert.Empty(t, to.deliver(alice, "widgets"))
	requireRun(from, to, move.Over)
	assert.Equal(t, []int{6}, to.deliver(alice, "widgets"))
	requireSound(to)
}
