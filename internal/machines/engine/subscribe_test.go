package engine_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/machines/machinestest"
)

const deaf = "state_machines: {deaf: {states: [{gate: new, exit_condition: false}]}}"

func TestTheSubscriptionFollowsTheDefinitions(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.client.Tidy(t.Context()))
		assert.Empty(t, f.token(machines.DefaultPublisher), "what is not used makes no client")
		require.NoError(t, f.apply(hearing))
		record, err := f.bus.Options(t.Context(), f.token(machines.DefaultPublisher))
		require.NoError(t, err)
		assert.True(t, record.Options.StrictOrder, "a batch that fails is not passed by later ones")
		assert.NotEmpty(t, record.Version)
		require.NoError(t, f.apply(strings.ReplaceAll(hearing, "topic: parcels", "topic: more")))
		assert.ElementsMatch(t, []string{"orders", "parcels", "more"}, f.subscribed(), "what is being replaced may be needed")
		require.NoError(t, f.client.Tidy(t.Context()))
		assert.Len(t, f.subscribed(), 3)
		require.NoError(t, f.client.Tidy(t.Context()))
		assert.ElementsMatch(t, []string{"orders", "more"}, f.subscribed())

		require.NoError(t, f.bus.Unsubscribe(t.Context(), f.token(machines.DefaultPublisher), "more"))
		require.NoError(t, f.client.Tidy(t.Context()))
		assert.ElementsMatch(t, []string{"orders", "more"}, f.subscribed(), "what is missing is made good for")

		require.NoError(t, f.apply("state_machines: {orders: {states: [{gate: new, exit_condition: false}]}}"))
		for range 3 {
			require.NoError(t, f.client.Tidy(t.Context()))
		}
		assert.Empty(t, f.subscribed())
		keys := layout.Keys{Namespace: machinestest.Namespace}
		assert.Zero(t, f.Server.Raw.SCard(t.Context(), keys.Subscribers()).Val())
	})
}

func TestASubscriptionOfTheSameClientIsLeftAlone(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.bus.PutToken(t.Context(), "theirs", machines.DefaultPublisher))
		require.NoError(t, f.bus.Subscribe(t.Context(), "theirs", bus.Subscription{Callback: "https://x.example", Topics: []bus.TopicName{"a"}}, f.Now))
		require.NoError(t, f.apply(hearing))
		keys := layout.Keys{Namespace: machinestest.Namespace}
		raw := f.Server.Raw
		assert.Equal(t, []string{"a"}, raw.SMembers(t.Context(), keys.SubscriberTopics("theirs")).Val(), "theirs is left alone")
		assert.EqualValues(t, 2, raw.SCard(t.Context(), keys.Subscribers()).Val())
	})
}

func TestProcessesThatApplyTogetherMakeOneClient(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		next, _, err := definition.Load(definition.File{Content: []byte(hearing)})
		require.NoError(t, err)
		next.Source = []byte(hearing)
		var processes sync.WaitGroup
		for range 4 {
			processes.Go(func() {
				_, err := f.client.Apply(t.Context(), next, nil)
				assert.NoError(t, err)
			})
		}
		processes.Wait()
		all, err := f.bus.Tokens(t.Context())
		require.NoError(t, err)
		assert.Len(t, all, 1)
		assert.Len(t, f.subscribed(), 2)
	})
}

// TestNobodyTidiesWhatIsBeingApplied applies definitions that need topics while Tidy runs for the
// earlier ones.
func TestNobodyTidiesWhatIsBeingApplied(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		for range 10 {
			require.NoError(t, f.apply(hearing))
			require.NoError(t, f.apply(deaf))
			require.NoError(t, f.client.Tidy(t.Context()))
			var tidying sync.WaitGroup
			tidying.Go(func() { assert.NoError(t, f.client.Tidy(t.Context())) })
			require.NoError(t, f.apply(hearing))
			assert.Len(t, f.subscribed(), 2, "when it is answered")
			tidying.Wait()
			assert.Len(t, f.subscribed(), 2)
		}
	})
}

func TestWhatIsRefusedLeavesNoSubscription(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.apply(deaf))
		f.Create("deaf", "ann", "{}")
		require.NoError(t, f.client.Tidy(t.Context()))
		require.Error(t, f.apply(hearing), "ann would have no state")
		for range 2 {
			require.NoError(t, f.client.Tidy(t.Context()))
		}
		assert.Empty(t, f.subscribed())
	})
}

// TestTheSubscriptionOutlivesItsToken replaces the token by one that comes behind it in order.
func TestTheSubscriptionOutlivesItsToken(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.bus.PutToken(t.Context(), "a-old", machines.DefaultPublisher))
		require.NoError(t, f.apply(hearing))
		_, _, err := f.bus.RotateToken(t.Context(), "a-old", "b-new")
		require.NoError(t, err)
		require.NoError(t, f.apply(strings.Replace(hearing, "topic: parcels", "topic: more", 1)))
		keys := layout.Keys{Namespace: machinestest.Namespace}
		subscribed := func() []string {
			return f.Server.Raw.SMembers(t.Context(), keys.SubscriberTopics("b-new")).Val()
		}
		assert.ElementsMatch(t, []string{"orders", "parcels", "more"}, subscribed())
		for range 2 {
			require.NoError(t, f.client.Tidy(t.Context()))
		}
		assert.ElementsMatch(t, []string{"orders", "more"}, subscribed())
	})
}

// TestNothingEndsWhileDefinitionsAreDecided in another partition than the subscription's.
func TestNothingEndsWhileDefinitionsAreDecided(t *testing.T) {
	eachOnBus(t, func(t *testing.T, f *onBus) {
		require.NoError(t, f.apply(hearing))
		require.NoError(t, f.apply(deaf))
		key := layout.Keys{Namespace: machinestest.Namespace}.Definitions()
		require.NoError(t, f.Server.Raw.HSet(t.Context(), key, "preparing", "1 x").Err())
		for range 3 {
			require.NoError(t, f.client.Tidy(t.Context()))
		}
		assert.Len(t, f.subscribed(), 2)
		require.NoError(t, f.Server.Raw.HDel(t.Context(), key, "preparing").Err())
		require.NoError(t, f.client.Tidy(t.Context()))
		require.NoError(t, f.client.Tidy(t.Context()))
		assert.Empty(t, f.subscribed())
	})
}
