package test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/store/storetest"
)

func TestEndToEnd(t *testing.T) {
	storetest.Each(t, func(t *testing.T, redis *storetest.Server) {
		b := startBus(t, redis)
		publisher := b.addClient("publisher")
		quick := newSubscriber(t, b.addClient("quick"))
		both := newSubscriber(t, b.addClient("both"))
		flaky := newSubscriber(t, b.addClient("flaky"))
		flaky.refuse = func(deliveries int) bool { return deliveries%3 != 0 }
		quick.subscribe(b, 0, 10, "widgets")
		both.subscribe(b, 50, 5, "widgets", "gadgets")
		flaky.subscribe(b, 1000, 20, "gadgets") // few batches, however slow: each costs it health

		// Even numbers are widgets, odd ones gadgets.
		var widgets, gadgets, all []int
		next := 0
		publish := func(events int) {
			for range events {
				if next%2 == 0 {
					b.publish(publisher, "widgets", next)
					widgets = append(widgets, next)
				} else {
					b.publish(publisher, "gadgets", next)
					gadgets = append(gadgets, next)
				}
				all = append(all, next)
				next++
			}
		}
		publish(60)
		b.stopWeb()
		b.startWeb()
		publish(60)
		b.stopWorker()
		publish(60)
		b.startWorker()
		publish(60)
		quick.waitFor(t, len(widgets))
		both.waitFor(t, len(all))
		flaky.waitFor(t, len(gadgets))

		assert.Equal(t, widgets, quick.numbers(), "each once, in order")
		assert.Equal(t, all, both.numbers(), "each once, in order, over both topics")
		fromFlaky := flaky.numbers()
		slices.Sort(fromFlaky)
		assert.Equal(t, gadgets, fromFlaky, "each once, although two of three deliveries failed")
		for _, batch := range both.acknowledged() {
			assert.LessOrEqual(t, len(batch.numbers), 5)
			for i, number := range batch.numbers {
				assert.Equal(t, []string{"widgets", "gadgets"}[number%2], batch.topics[i])
			}
		}

		// Who unsubscribed gets no more; others are not affected.
		b.call(both.token, "DELETE", "/subscriber/topics/gadgets", "", 204)
		b.call(flaky.token, "DELETE", "/subscriber", "", 204)
		before := len(widgets)
		publish(10)
		quick.waitFor(t, len(widgets))
		both.waitFor(t, len(all)-10+5)
		assert.Equal(t, widgets[before:], both.numbers()[len(all)-10:])
		assert.Len(t, flaky.numbers(), len(gadgets)-5)
		b.requireNothingLeft()
	})
}

func TestFullBatchesGoAtOnceAndStaleOnesOnTime(t *testing.T) {
	storetest.Each(t, func(t *testing.T, redis *storetest.Server) {
		const timeout = 150 * time.Millisecond
		b := startBus(t, redis)
		publisher := b.addClient("publisher")
		patient := newSubscriber(t, b.addClient("patient"))
		patient.subscribe(b, 3_600_000, 3, "widgets")
		stale := newSubscriber(t, b.addClient("stale"))
		stale.subscribe(b, int(timeout.Milliseconds()), 100, "widgets")

		began := time.Now()
		for number := range 7 {
			b.publish(publisher, "widgets", number)
		}
		published := time.Now()
		batches := patient.waitFor(t, 6)
		require.Len(t, batches, 2, "full batches only")
		assert.Equal(t, []int{0, 1, 2}, batches[0].numbers)
		assert.Equal(t, []int{3, 4, 5}, batches[1].numbers)

		late := stale.waitFor(t, 7)
		assert.Equal(t, []int{0, 1, 2, 3, 4, 5, 6}, stale.numbers())
		assert.LessOrEqual(t, len(late), 1+int(published.Sub(began)/(timeout-time.Millisecond)), "one, if publishing took less than the timeout")
		next := 7
		storetest.Promptly(t, timeout+time.Second, func() time.Duration {
			number, before := next, len(stale.acknowledged())
			next++
			began := time.Now()
			b.publish(publisher, "widgets", number)
			batch := stale.waitFor(t, next)[before]
			assert.Equal(t, []int{number}, batch.numbers)
			took := batch.at.Sub(began)
			assert.GreaterOrEqual(t, took, timeout-time.Millisecond, "on whole ms")
			return took
		})
		storetest.Promptly(t, time.Second, func() time.Duration {
			for full := false; !full; full = next%3 == 0 {
				b.publish(publisher, "widgets", next)
				next++
			}
			published := time.Now()
			batches := patient.waitFor(t, next)
			return batches[len(batches)-1].at.Sub(published)
		})
	})
}

func TestAnEventWithoutTimeoutArrivesAtOnce(t *testing.T) {
	b := startBus(t, storetest.Real(t))
	publisher := b.addClient("publisher")
	sub := newSubscriber(t, b.addClient("subscriber"))
	sub.subscribe(b, 0, 100, "widgets")
	number := 0
	storetest.Promptly(t, 10*time.Millisecond, func() (median time.Duration) {
		var latencies []time.Duration
		for range 41 {
			sent := time.Now()
			b.publish(publisher, "widgets", number)
			number++
			batches := sub.waitFor(t, number)
			latencies = append(latencies, batches[len(batches)-1].at.Sub(sent))
		}
		slices.Sort(latencies)
		median = latencies[len(latencies)/2]
		t.Logf("from before the publish to the subscriber: median %v, most %v", median, latencies[len(latencies)-1])
		return median
	})
	b.requireNothingLeft()
}

func TestLogsTellNoSecrets(t *testing.T) {
	redis := storetest.Real(t)
	b := startBus(t, redis)
	b.stopWeb()
	b.stopWorker()
	require.NoError(t, redis.Raw.ConfigSet(t.Context(), "requirepass", "redis-password").Err())
	b.config.RedisURL = strings.Replace(redis.URL, "redis://", "redis://:redis-password@", 1)
	b.log = slog.NewTextHandler(b.logged, &slog.HandlerOptions{Level: slog.LevelDebug})
	b.startWeb()
	b.startWorker()

	publisher := b.addClient("publisher")
	sub := newSubscriber(t, b.addClient("subscriber"))
	sub.refuse = func(deliveries int) bool { return deliveries == 1 }
	sub.subscribe(b, 0, 10, "widgets")
	b.publish(publisher, "widgets", 1)
	sub.waitFor(t, 1)
	b.call("wrong-secret", "GET", "/topics", "", 401)
	b.call(publisher, "GET", "/api_tokens", "", 403)
	b.call(rootKey, "DELETE", "/api_tokens/"+publisher, "", 204)
	redis.Kill(t)
	b.call(rootKey, "GET", "/pulse", "", 503)
	b.call(sub.token, "GET", "/topics", "", 503)
	b.stopWeb()
	b.stopWorker()

	text := b.logged.String()
	for _, said := range []string{"web started", "worker started", "failed to deliver", "msg=delivered", "redis is away"} {
		assert.Contains(t, text, said)
	}
	for _, secret := range []string{rootKey, publisher, sub.token, "uuid of", "wrong-secret", "redis-password"} {
		assert.NotContains(t, text, secret)
	}
}

func TestDeniedCallbacksAreNotConnectedTo(t *testing.T) {
	redis := storetest.Embedded(t)
	b := startBus(t, redis)
	publisher := b.addClient("publisher")
	sub := newSubscriber(t, b.addClient("subscriber"))
	sub.subscribe(b, 0, 10, "widgets") // before it was denied, or by a name that was harmless then
	b.stopWorker()
	deny, err := bus.ParseDenyList("loopback")
	require.NoError(t, err)
	b.config.CallbackDeny = deny
	b.startWorker()
	b.publish(publisher, "widgets", 1)
	require.Eventually(t, func() bool {
		return strings.Contains(b.logged.String(), "denied by ROUTEMASTER_CALLBACK_DENY")
	}, soon, time.Millisecond)
	assert.Zero(t, sub.deliveries)
	b.stopWeb()
	b.startWeb()
	b.call(sub.token, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://127.0.0.1/"}`, 400)
}

func TestConfiguredClientsAreRegistered(t *testing.T) {
	redis := storetest.Embedded(t)
	b := startBus(t, redis)
	b.stopWeb()
	b.config.Clients = append(b.config.Clients, "orders--17", "secret")
	b.startWeb()
	require.Eventually(t, func() bool {
		return redis.Raw.HLen(t.Context(), "api_tokens:by_token").Val() == 2
	}, soon, time.Millisecond)
	names := redis.Raw.HGetAll(t.Context(), "api_tokens:by_token").Val()
	for token, name := range names {
		assert.Regexp(t, `^client-[0-9a-f]{8}$`, name, "a name must not tell any of %s", token)
	}
	b.publish("secret", "widgets", 1)
}
