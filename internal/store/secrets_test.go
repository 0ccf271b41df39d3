package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/signature"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// secretsFixture is a bus, with its secrets.
type secretsFixture struct {
	*storetest.Bus
	secrets *store.Secrets
}

func newSecretsFixture(t *testing.T, server *rdbtest.Server) *secretsFixture {
	b := storetest.NewBus(t, server)
	return &secretsFixture{b, store.NewSecrets(b.Store)}
}

// newSecret is an HMAC's secret, in the clear.
func newSecret() signature.Stored {
	return signature.Generate(signature.HMAC, storetest.Start).Seal(signature.Keyring{})
}

// requirePlan requires that a subscriber has a plan, and returns its version.
func (f *secretsFixture) requirePlan(token string) string {
	f.T.Helper()
	plan := f.Redis.HGet(f.T.Context(), "options:"+token, "plan").Val()
	require.Len(f.T, plan, 8)
	require.True(f.T, bus.IsURLSafe(plan))
	require.Equal(f.T, plan, f.Redis.HGet(f.T.Context(), "delivery:"+token, "plan").Val())
	return plan
}

func TestSecretsAreAddedAndDeleted(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newSecretsFixture(t, server), t.Context()
		require.ErrorIs(t, f.secrets.Add(ctx, storetest.Alice, newSecret(), time.Time{}, storetest.Start), bus.ErrNotSubscribed)
		require.ErrorIs(t, f.secrets.Delete(ctx, storetest.Alice, "x", storetest.Start), bus.ErrNotSubscribed)
		_, err := f.secrets.List(ctx, storetest.Alice)
		require.ErrorIs(t, err, bus.ErrNotSubscribed)

		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		before := rdbtest.Dump(t, f.Redis)
		list, err := f.secrets.List(ctx, storetest.Alice)
		require.NoError(t, err)
		assert.Empty(t, list)

		first, second := newSecret(), newSecret()
		require.NoError(t, f.secrets.Add(ctx, storetest.Alice, first, time.Time{}, storetest.Start))
		plan := f.requirePlan("alice--1")
		require.NoError(t, f.secrets.Add(ctx, storetest.Alice, second, storetest.After(100), storetest.Start))
		assert.NotEqual(t, plan, f.requirePlan("alice--1"))
		list, err = f.secrets.List(ctx, storetest.Alice)
		require.NoError(t, err)
		first.ExpiresAt = storetest.After(100).UnixMilli()
		assert.Equal(t, signature.List{second, first}, list)
		f.RequireSound()

		require.ErrorIs(t, f.secrets.Delete(ctx, storetest.Alice, first.ID, storetest.After(100)), bus.ErrSecretUnknown)
		plan = f.requirePlan("alice--1")
		require.NoError(t, f.secrets.Delete(ctx, storetest.Alice, first.ID, storetest.After(99)))
		assert.NotEqual(t, plan, f.requirePlan("alice--1"))
		require.NoError(t, f.secrets.Delete(ctx, storetest.Alice, second.ID, storetest.Start))
		assert.Equal(t, before, rdbtest.Dump(t, f.Redis), "the last one is gone")
		f.RequireSound()
	})
}

func TestOptionsOutliveSecrets(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newSecretsFixture(t, server), t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		secret := newSecret()
		require.NoError(t, f.secrets.Add(ctx, storetest.Alice, secret, time.Time{}, storetest.Start))
		f.Redis.HSet(ctx, "options:alice--1", "partial", "true")
		require.NoError(t, f.secrets.Delete(ctx, storetest.Alice, secret.ID, storetest.Start))
		plan := f.requirePlan("alice--1")
		assert.Equal(t, map[string]string{"partial": "true", "plan": plan}, f.Redis.HGetAll(ctx, "options:alice--1").Val())
	})
}

func TestSecretsAddedAtTheSameTimeAreAllThere(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newSecretsFixture(t, server), t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		var adding sync.WaitGroup
		errs := make([]error, signature.MaxSecrets+1)
		for i := range errs {
			adding.Go(func() { errs[i] = f.secrets.Add(ctx, storetest.Alice, newSecret(), time.Time{}, storetest.Start) })
		}
		adding.Wait()
		refused := 0
		for _, err := range errs {
			if err != nil {
				require.ErrorIs(t, err, bus.ErrTooManySecrets)
				refused++
			}
		}
		assert.Equal(t, 1, refused)
		list, err := f.secrets.List(ctx, storetest.Alice)
		require.NoError(t, err)
		assert.Len(t, list, signature.MaxSecrets)
	})
}

func TestSecretsOpenAfterARotation(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newSecretsFixture(t, server), t.Context()
		keys, err := signature.ParseKeyring("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
		require.NoError(t, err)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		secret := signature.Generate(signature.Ed25519, storetest.Start)
		require.NoError(t, f.secrets.Add(ctx, storetest.Alice, secret.Seal(keys), time.Time{}, storetest.Start))

		_, _, err = f.RotateToken(ctx, storetest.Alice, "alice--new")
		require.NoError(t, err)
		f.requirePlan("alice--new")
		list, err := f.secrets.List(ctx, "alice--new")
		require.NoError(t, err)
		opened, err := list.Open(keys)
		require.NoError(t, err)
		require.Len(t, opened, 1)
		assert.Equal(t, secret.Text(), opened[0].Text())
		require.NoError(t, f.secrets.Delete(ctx, "alice--new", secret.ID, storetest.Start))
		list, err = f.secrets.List(ctx, "alice--new")
		require.NoError(t, err)
		assert.Empty(t, list)
		f.RequireSound()
	})
}

func TestSecretsGoWithTheSubscriber(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newSecretsFixture(t, server), t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		require.NoError(t, f.secrets.Add(ctx, storetest.Alice, newSecret(), time.Time{}, storetest.Start))
		require.NoError(t, f.DeleteSubscriber(ctx, storetest.Alice))
		assert.Empty(t, f.Redis.Keys(ctx, "options:*").Val())
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		list, err := f.secrets.List(ctx, storetest.Alice)
		require.NoError(t, err)
		assert.Empty(t, list)
	})
}

func TestDamagedSecretsAreNeitherReplacedNorShown(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newSecretsFixture(t, server), t.Context()
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.Redis.HSet(ctx, "options:alice--1", "secrets", "whsec_topsecret")
		err := f.secrets.Add(ctx, storetest.Alice, newSecret(), time.Time{}, storetest.Start)
		require.EqualError(t, err, "stored secrets are damaged")
		f.Redis.Del(ctx, "options:alice--1")
		f.Redis.Set(ctx, "options:alice--1", "whsec_topsecret", 0)
		_, err = f.secrets.List(ctx, storetest.Alice)
		require.ErrorContains(t, err, "WRONGTYPE")
	})
}

// TestAChangeOfSecretsIsTriedAtOnce uses an endpoint that rejects requests until they are signed
// with the right secret.
func TestAChangeOfSecretsIsTriedAtOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newSecretsFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 1, 0)
		f.Complete(f.Take("w1", 0), storetest.Result{
			Failure: bus.EndpointFailure, RetryAt: storetest.After(60_000), ThrottledUntil: storetest.After(60_000),
		})
		require.Nil(t, f.Take("w1", 1))
		require.NoError(t, f.secrets.Add(t.Context(), storetest.Alice, newSecret(), time.Time{}, storetest.Start))
		assert.Equal(t, []int{1}, storetest.Numbers(t, f.Take("w1", 1)))
		f.RequireSound()
	})
}
