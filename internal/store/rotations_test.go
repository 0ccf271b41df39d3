package store_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/migrate"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

const alice2 = bus.Token("alice--2")

// rotate begins to change a token, and returns the new one.
func (f *fixture) rotate(old, fresh bus.Token) bus.Token {
	f.T.Helper()
	token, name, err := f.RotateToken(f.T.Context(), old, fresh)
	require.NoError(f.T, err)
	require.Equal(f.T, bus.ClientName("alice"), name)
	return token
}

// relabel relabels all batches, one slice in a call.
func (f *fixture) relabel(old bus.Token) {
	f.T.Helper()
	at := store.BeginRelabelling()
	for done := false; !done; {
		next, all, err := f.Relabel(f.T.Context(), old, at, 0)
		require.NoError(f.T, err)
		at, err = store.ParseRelabelling(next.String())
		require.NoError(f.T, err)
		done = all
	}
}

// deliver delivers the next batch there is, if any, and returns its subscriber and its events.
func (f *fixture) deliver(worker bus.WorkerID, ms int) (bus.Token, []int) {
	f.T.Helper()
	task := f.Take(worker, ms)
	if task == nil {
		return "", nil
	}
	got := storetest.Numbers(f.T, task)
	require.True(f.T, f.Complete(task, storetest.Result{Health: 1}))
	return task.Delivery.Subscriber, got
}

// TestARotationMovesTheQueueInOrder changes a token while one batch is being delivered, one waits
// for its turn, one is current, and more is published.
func TestARotationMovesTheQueueInOrder(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, 10*time.Millisecond, 2, "cats", "dogs")
		f.AddSubscriber(storetest.Bob, 10*time.Millisecond, 100, "cats")
		f.PublishEvents("cats", 1, 2, 0)
		held := f.Take("w1", 0)
		require.Equal(t, []int{1, 2}, storetest.Numbers(t, held))
		f.PublishEvents("cats", 3, 5, 1)
		before := f.Redis.HGetAll(ctx, "subscriber:alice--1").Val()

		require.Equal(t, alice2, f.rotate(storetest.Alice, alice2))
		f.RequireSound()
		f.PublishEvents("cats", 6, 7, 2)
		f.PublishEvents("dogs", 8, 8, 2)
		f.RequireSound()
		assert.Equal(t, before, f.Redis.HGetAll(ctx, "subscriber:alice--2").Val(), "health, uuid and all")
		assert.Equal(t, alice2, f.rotate(storetest.Alice, "another--3"), "whoever asks again gets the same token")
		assert.Equal(t, "alice--2", f.Redis.LIndex(ctx, "batch:"+string(held.Delivery.Batch), 0).Val(), "what is being delivered")

		require.True(t, f.Complete(held, storetest.Result{Health: 1}))
		f.RequireSound()
		_, got := f.deliver("w1", 3)
		assert.Equal(t, []int{3, 4}, got, "before all are relabelled")
		f.RequireSound()
		f.relabel(storetest.Alice)
		f.RequireSound()
		require.NoError(t, f.FinishRotation(ctx, storetest.Alice))
		f.RequireSound()
		f.MakeInstant(100)
		got = nil
		for f.Redis.LLen(ctx, "jobs:instant:main").Val() > 0 {
			if subscriber, events := f.deliver("w1", 100); subscriber == alice2 {
				got = append(got, events...)
			} else {
				require.Equal(t, storetest.Bob, subscriber)
			}
		}
		assert.Equal(t, []int{5, 6, 7, 8}, got)
		f.RequireSound()

		for _, key := range []string{"subscriber:alice--1", "topics:alice--1", "batches:current:alice--1", "jobs:lane:batch:alice--1", "api_tokens:rotations"} {
			assert.Zero(t, f.Redis.Exists(ctx, key).Val(), key)
		}
		assert.ElementsMatch(t, []string{"alice--2", "bob--2"}, f.Redis.SMembers(ctx, "subscribers:cats").Val())
		_, _, err := f.RotateToken(ctx, storetest.Alice, "another--3")
		assert.ErrorIs(t, err, bus.ErrTokenUnknown)
		assert.ErrorIs(t, f.Subscribe(ctx, storetest.Alice, bus.Subscription{Callback: "https://x.example/"}, storetest.Start), bus.ErrTokenUnknown)
	})
}

// TestEitherTokenSpeaksForTheSubscriptionMeanwhile uses the old token to subscribe again, leave a
// topic, and unsubscribe.
func TestEitherTokenSpeaksForTheSubscriptionMeanwhile(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "cats")
		f.PublishEvents("cats", 1, 1, 0)
		f.rotate(storetest.Alice, alice2)
		f.AddSubscriber(storetest.Alice, 0, 1, "cats", "dogs")
		assert.Equal(t, []string{"alice--2"}, f.Redis.SMembers(ctx, "subscribers").Val(), "not two subscriptions, which would get all twice")
		assert.ElementsMatch(t, []string{"cats", "dogs"}, f.Redis.SMembers(ctx, "topics:alice--2").Val())
		require.NoError(t, f.Unsubscribe(ctx, storetest.Alice, "cats"))
		f.RequireSound()

		// A rotation of the new token takes the rest of the first along.
		alice3 := f.rotate(alice2, "alice--3")
		assert.Equal(t, alice3, f.rotate(storetest.Alice, "another--4"))
		subscriber, got := f.deliver("w1", 0)
		assert.Equal(t, alice3, subscriber)
		assert.Equal(t, []int{1}, got)
		require.NoError(t, f.DeleteSubscriber(ctx, storetest.Alice))
		assert.Empty(t, f.Redis.SMembers(ctx, "subscribers").Val())
		f.RequireSound()

		// The old one, which is removed meanwhile, does not bring down the rotation; nor does the
		// new one.
		require.NoError(t, f.DeleteToken(ctx, storetest.Alice))
		assert.Equal(t, alice3, f.rotate(storetest.Alice, "another--4"))
		require.NoError(t, f.FinishRotation(ctx, storetest.Alice))
		require.NoError(t, f.DeleteToken(ctx, alice3))
		assert.Equal(t, bus.Token("alice--5"), f.rotate(alice2, "alice--5"), "a new one is made")
		f.RequireSound()
	})
}

// TestARotationMovesManyBatches: there are more than one step can move, and some are delivered or
// dropped between two steps.
func TestARotationMovesManyBatches(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "cats")
		f.AddSubscriber(storetest.Bob, 0, 1, "cats")
		for i := range 3 {
			f.PublishEvents("cats", 1000*i+1, 1000*i+1000, i)
		}
		f.rotate(storetest.Alice, alice2)
		dropped, err := f.OldestBatches().Drop(ctx, storetest.Start, nil)
		require.NoError(t, err)
		for _, batch := range dropped {
			assert.NotEqual(t, storetest.Alice, batch.Subscriber)
		}
		f.RequireSound()
		f.relabel(storetest.Alice)
		for _, bid := range f.Redis.ZRange(ctx, "batches:index", 0, -1).Val() {
			require.NotEqual(t, "alice--1", f.Redis.LIndex(ctx, "batch:"+bid, 0).Val())
		}
		f.RequireSound()
	})
}

// TestRandomRotationsLoseAndReorderNothing takes random steps: publishes, deliveries that succeed,
// and the parts of rotations, some of which are begun and abandoned.
func TestRandomRotationsLoseAndReorderNothing(t *testing.T) {
	t.Parallel()
	first, count := seedsOf(t, 10)
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for seed := first; seed < first+count; seed++ {
			random := rand.New(rand.NewPCG(seed, 1))
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newFixture(t, server)
			f.AddSubscriber(storetest.Alice, time.Duration(random.IntN(3))*time.Millisecond, 1+random.IntN(3), "cats")
			old, published, ms, made := storetest.Alice, 0, 0, 0
			var token bus.Token
			var held *storetest.Task
			var delivered []int
			for range 150 {
				ms++
				f.MakeInstant(ms)
				switch random.IntN(7) {
				case 0, 1, 2:
					n := 1 + random.IntN(4)
					f.PublishEvents("cats", published+1, published+n, ms)
					published += n
				case 3, 4:
					if held == nil {
						held = f.Take("w1", ms)
					} else {
						delivered = append(delivered, storetest.Numbers(t, held)...)
						require.True(t, f.Complete(held, storetest.Result{Health: 1}))
						held = nil
					}
				case 5:
					made++
					token = f.rotate(old, bus.NewTokenLike("alice"))
				case 6:
					if token == "" {
						continue
					}
					f.relabel(old)
					if random.IntN(2) == 0 {
						require.NoError(t, f.FinishRotation(t.Context(), old))
						old, token = token, ""
					}
				}
				if random.IntN(10) == 0 {
					f.RequireSound()
				}
			}
			if held != nil {
				delivered = append(delivered, storetest.Numbers(t, held)...)
				require.True(t, f.Complete(held, storetest.Result{Health: 1}))
			}
			f.MakeInstant(ms + 1000)
			for f.Redis.LLen(t.Context(), "jobs:instant:main").Val() > 0 {
				_, got := f.deliver("w1", ms+1000)
				delivered = append(delivered, got...)
			}
			require.True(t, slices.IsSorted(delivered), "seed %d: %v", seed, delivered)
			require.Len(t, delivered, published, "seed %d", seed)
			f.RequireSound()
		}
	})
}

// TestARelabellingGoesByTheTokenOfNow changes a token again, and completes that, before an earlier
// relabelling of a slice runs: it must not give batches to the token in between, which is gone.
func TestARelabellingGoesByTheTokenOfNow(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "cats")
		f.PublishEvents("cats", 1, 3, 0)
		f.rotate(storetest.Alice, alice2)
		asked := store.BeginRelabelling()
		f.rotate(alice2, "alice--3")
		f.relabel(alice2)
		require.NoError(t, f.FinishRotation(ctx, alice2))
		_, done, err := f.Relabel(ctx, storetest.Alice, asked, time.Minute)
		require.NoError(t, err)
		require.True(t, done)
		require.NoError(t, f.FinishRotation(ctx, storetest.Alice))
		f.RequireSound()
		for i := range 3 {
			subscriber, got := f.deliver("w1", 0)
			assert.Equal(t, bus.Token("alice--3"), subscriber)
			assert.Equal(t, []int{i + 1}, got)
		}
	})
}

// TestWithItsLastTokenASubscriptionGoes removes the new token of a rotation, subscribes with the
// old one, and removes that.
func TestWithItsLastTokenASubscriptionGoes(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "cats")
		f.rotate(storetest.Alice, alice2)
		require.NoError(t, f.DeleteToken(ctx, alice2))
		f.AddSubscriber(storetest.Alice, 0, 1, "cats")
		require.NoError(t, f.DeleteToken(ctx, storetest.Alice))
		assert.Empty(t, f.Redis.SMembers(ctx, "subscribers").Val())
		assert.Empty(t, f.Redis.SMembers(ctx, "subscribers:cats").Val(), "deliveries that nobody can end")
		f.RequireSound()
	})
}

// TestAMigrationBackWaitsForARotation finds it refused, dry or not, until the rotation is done,
// or the client is gone.
func TestAMigrationBackWaitsForARotation(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "cats")
		f.PublishEvents("cats", 1, 3, 0)
		migrate := func(apply, back bool) (migrate.Result, error) {
			return migrate.Run(ctx, f.Partition, migrate.Options{Apply: apply, Back: back, Report: func(migrate.Unmoved) {}})
		}
		f.rotate(storetest.Alice, alice2)
		for _, apply := range []bool{false, true} {
			done, err := migrate(apply, true)
			assert.ErrorContains(t, err, "a token of alice is being changed")
			assert.NotContains(t, err.Error(), "alice--")
			assert.Zero(t, done)
		}
		_, err := migrate(true, false)
		assert.NoError(t, err, "the way there harms nothing")
		f.relabel(storetest.Alice)
		_, err = migrate(true, true)
		assert.Error(t, err, "the old token still speaks for the new one's subscription")
		require.NoError(t, f.FinishRotation(ctx, storetest.Alice))
		done, err := migrate(true, true)
		require.NoError(t, err)
		assert.Equal(t, 3, done.Batches)

		f.rotate(alice2, "alice--3")
		require.NoError(t, f.DeleteToken(ctx, alice2))
		require.NoError(t, f.DeleteToken(ctx, "alice--3"))
		_, err = migrate(true, true)
		assert.NoError(t, err)
	})
}
