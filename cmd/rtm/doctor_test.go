package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/doctor"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
)

// warning is doctor's warning about the Redis of tests, which keeps nothing on disk.
const warning = "Warning: If Redis stops, all events, tokens and subscribers are lost: it keeps nothing on disk, set appendonly yes.\n"

// runDoctor runs rtm doctor, and returns its exit status and its output without the warning.
func runDoctor(t *testing.T, ctx context.Context, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	status = run(ctx, append([]string{"doctor"}, args...), &out, &errors)
	return status, strings.Replace(out.String(), warning, "", 1), errors.String()
}

func TestDoctor(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		ctx := t.Context()
		t.Setenv("REDIS_ENV_KEY", "SOME_REDIS")
		t.Setenv("SOME_REDIS", redis.URL)
		t.Setenv("ROUTEMASTER_REDIS_NAMESPACE", "rm:")
		status, stdout, stderr := runDoctor(t, ctx)
		assert.Equal(t, app.ExitOK, status, stderr)
		assert.Regexp(t, `^Read 0 batches, 0 jobs, 0 subscribers and 0 topics in \S+: all is in order\.\n$`, stdout)

		const token = "3f7a-a-secret"
		redis.Raw.HSet(ctx, "rm:api_tokens:by_token", token, "shop")
		redis.Raw.HSet(ctx, "rm:subscriber:"+token, "callback", "https://shop.example/")
		redis.Raw.HSet(ctx, "rm:batches:gauges:event", token, "4")
		redis.Raw.Set(ctx, "rm:what:"+token, "x", 0)
		findings := []string{
			"what:shop: is not a key of the layout [skipped]",
			"subscriber:shop: is not in subscribers [to be added there]",
			`batches:gauges:event: has "4" for shop, must be 0 [to be set right]`,
		}
		status, stdout, stderr = runDoctor(t, ctx)
		assert.Equal(t, app.ExitFailed, status)
		assert.Equal(t, "rtm: something is wrong in this Redis\n", stderr)
		lines := strings.Split(stdout, "\n")
		assert.Equal(t, findings, lines[:3])
		assert.Contains(t, lines[3], "0 repaired, 2 that --fix repairs, 1 skipped.")
		assert.NotContains(t, stdout, token)

		redis.Raw.Del(ctx, "rm:what:"+token)
		status, stdout, _ = runDoctor(t, ctx, "--json")
		assert.Equal(t, app.ExitFailed, status)
		lines = strings.Split(strings.TrimSpace(stdout), "\n")
		assert.JSONEq(t, `{"key":"subscriber:shop","problem":"is not in subscribers","remedy":"added there","state":"repairable"}`, lines[0])
		var last struct{ Summary summary }
		require.NoError(t, json.Unmarshal([]byte(lines[2]), &last))
		if !redis.IsEmbedded() {
			assert.Len(t, last.Summary.Risks, 1)
		}
		last.Summary.Seconds, last.Summary.Risks = 0, nil
		assert.Equal(t, summary{Repairable: 2}, last.Summary)

		t.Setenv("SOME_REDIS", "redis://127.0.0.1:1/0") // flags overrule it
		status, stdout, stderr = runDoctor(t, ctx, "--fix", "--redis-url", redis.URL, "--namespace", "rm:")
		assert.Equal(t, app.ExitOK, status, stderr)
		assert.Contains(t, stdout, "subscriber:shop: is not in subscribers [added there]\n")
		assert.Contains(t, stdout, "2 repaired, 0 that --fix repairs, 0 skipped.")
		status, stdout, _ = runDoctor(t, ctx, "--fix", "--redis-url", redis.URL)
		assert.Equal(t, app.ExitOK, status)
		assert.Contains(t, stdout, "1 subscribers", stdout)
		status, stdout, _ = runDoctor(t, ctx, "--redis-url", redis.URL, "--namespace", "")
		assert.Equal(t, app.ExitFailed, status)
		assert.Contains(t, stdout, "rm:subscribers: is not a key of the layout")
	})
}

func TestDoctorSaysWhatRedisMayLose(t *testing.T) {
	var out, errors bytes.Buffer
	status := run(t.Context(), []string{"doctor", "--redis-url", rdbtest.Real(t).URL}, &out, &errors)
	assert.Equal(t, app.ExitOK, status, errors.String())
	assert.Contains(t, out.String(), "all is in order.\n"+warning)
}

// get returns the body of a GET with the root key.
func (b *testBus) get(t *testing.T, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+path, nil)
	require.NoError(t, err)
	request.SetBasicAuth(rootKey, "x")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

// TestABusThatLosesItsDataSaysSo deletes all keys under a running bus, until that is acknowledged.
func TestABusThatLosesItsDataSaysSo(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	b.addClient(t, "shop")
	alarm := func(is bool) {
		t.Helper()
		for path, line := range map[string]string{"/overview": `"rule":"data-lost"`, "/metrics": "routemaster_redis_data_lost 1\n"} {
			require.Eventually(t, func() bool { return strings.Contains(b.get(t, path), line) == is }, soon, 50*time.Millisecond, path)
		}
	}
	require.Eventually(t, func() bool { return b.redis.Raw.HGet(t.Context(), "bus", "ticks").Val() >= "4" }, soon, 50*time.Millisecond,
		"all three web processes and the worker have seen it")
	alarm(false)
	require.NoError(t, b.redis.Raw.FlushAll(t.Context()).Err())
	alarm(true)
	status, stdout, _ := runDoctor(t, t.Context(), "--redis-url", b.redis.URL)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stdout, "bus: The keys of the bus were deleted from Redis. A process noticed it at 2")
	status, stdout, stderr := runDoctor(t, t.Context(), "--redis-url", b.redis.URL, "--accept-loss")
	assert.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "bus: The keys of the bus were deleted from Redis. [acknowledged]\n")
	alarm(false)
	status, _, _ = runDoctor(t, t.Context(), "--redis-url", b.redis.URL)
	assert.Equal(t, app.ExitOK, status)
}

// TestDoctorPrintsOneLineForEachFinding has keys that would forge a line, or write on the terminal.
func TestDoctorPrintsOneLineForEachFinding(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		ctx := t.Context()
		redis.Raw.Set(ctx, "x\nall: is in order [repaired]", "x", 0)
		redis.Raw.Set(ctx, "x\x1b[2J", "x", 0)
		redis.Raw.Set(ctx, "x\xff\u202e", "x", 0)
		redis.Raw.Set(ctx, "größe", "x", 0)
		redis.Raw.ZAdd(ctx, "batches:index", goredis.Z{Member: "\x1b]0;x\a"})
		for _, args := range [][]string{{"--redis-url", redis.URL}, {"--redis-url", redis.URL, "--json"}} {
			status, stdout, _ := runDoctor(t, ctx, args...)
			assert.Equal(t, app.ExitFailed, status)
			assert.NotContains(t, stdout, "\x1b")
			lines := strings.Split(stdout, "\n")
			assert.Len(t, lines, 5+1+1, stdout)
			if len(args) == 2 {
				assert.Contains(t, lines, `"x\nall: is in order [repaired]": is not a key of the layout [skipped]`)
				assert.Contains(t, lines, `"x\x1b[2J": is not a key of the layout [skipped]`)
				assert.Contains(t, lines, `"x\xff\u202e": is not a key of the layout [skipped]`)
				assert.Contains(t, lines, `größe: is not a key of the layout [skipped]`)
			}
		}
	})
}

// TestDoctorStopsInTheMiddle has Ctrl-C pressed as soon as the first finding is printed; a second
// run goes on.
func TestDoctorStopsInTheMiddle(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		const all = 1000
		for i := range all {
			name := fmt.Sprintf("%c%c%c", 'a'+i%10, 'a'+i/10%10, 'a'+i/100)
			redis.Raw.HSet(t.Context(), "topic:"+name, "publisher", "shop--1", "counter", 1)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		out := &interrupted{stop: stop}
		var stderr bytes.Buffer
		assert.Equal(t, app.ExitFailed, run(ctx, []string{"doctor", "--fix", "--redis-url", redis.URL}, out, &stderr))
		assert.Equal(t, "rtm: stopped before the end; what was repaired stays so\n", stderr.String())
		repaired := int(redis.Raw.SCard(t.Context(), "topics").Val())
		assert.Positive(t, repaired)
		assert.Less(t, repaired, all)
		assert.Equal(t, repaired, strings.Count(out.String(), "[added there]\n"), "every repair is reported")
		assert.NotContains(t, out.String(), "Read ")

		status, stdout, _ := runDoctor(t, t.Context(), "--fix", "--redis-url", redis.URL)
		assert.Equal(t, app.ExitOK, status)
		assert.Contains(t, stdout, fmt.Sprintf(": %d repaired, 0 that --fix repairs, 0 skipped.", all-repaired))
	})
}

// interrupted stops its writer.
type interrupted struct {
	bytes.Buffer
	stop func()
}

func (i *interrupted) Write(text []byte) (int, error) {
	i.stop()
	return i.Buffer.Write(text)
}

func TestDoctorRefusesACluster(t *testing.T) {
	redis := rdbtest.ClusterNode(t)
	redis.Raw.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	for _, args := range [][]string{nil, {"--fix"}} {
		status, stdout, stderr := runDoctor(t, t.Context(), append(args, "--redis-url", redis.URL)...)
		assert.Equal(t, app.ExitFailed, status)
		assert.Empty(t, stdout)
		assert.Equal(t, "rtm: this Redis is a node of a Redis Cluster: give the URL of the cluster, like redis+cluster://host:7000,host:7001\n", stderr)
	}
}

func TestDoctorOnABusWithPartitions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := rdbtest.NewCluster(t, 3, 5*time.Second)
	config := app.Config{RedisURL: c.URL, RedisNamespace: "rm:"}
	examine := func(e examination) (string, error) {
		var out bytes.Buffer
		e.out = &out
		err := e.run(ctx, config)
		return out.String(), err
	}
	_, err := examine(examination{})
	require.EqualError(t, err, "there is no bus with partitions under the namespace \"rm:\": `rtm cluster create` with the same Redis and namespace makes one")

	client := c.Open(t)
	require.NoError(t, store.CreateBus(ctx, client, "rm:", 12))
	all, err := store.OpenBus(ctx, client, "rm:", store.Options{})
	require.NoError(t, err)
	for i := range 20 {
		require.NoError(t, all.PutToken(ctx, bus.Token(fmt.Sprintf("shop--%d", i)), "shop"))
	}
	topic := bus.TopicName("widgets")
	require.NoError(t, all.Subscribe(ctx, "shop--2", bus.Subscription{Topics: []bus.TopicName{topic}, Callback: "https://s.example/"}, time.Now()))
	home, own := all.Home(topic).Partition(), all.Of("shop--2").Partition()
	require.NotEqual(t, home, own)
	stdout, err := examine(examination{})
	require.NoError(t, err)
	assert.Regexp(t, `^Read 0 batches, 0 jobs, 1 subscribers and 1 topics in \S+: all is in order\.\n`+regexp.QuoteMeta(warning)+`$`, stdout)

	require.NoError(t, home.Del(ctx, home.Namespace()+"relays:widgets").Err())
	require.NoError(t, own.HSet(ctx, own.Namespace()+"batches:gauges:event", "shop--2", "4").Err())
	stdout, err = examine(examination{json: true})
	require.ErrorIs(t, err, errUnsound)
	lines := strings.Split(stdout, "\n")
	assert.JSONEq(t, fmt.Sprintf(`{"partition":"%v","key":"batches:gauges:event","problem":"has \"4\" for shop, must be 0","remedy":"set right","state":"repairable"}`, own.Number()), lines[0])
	assert.JSONEq(t, fmt.Sprintf(`{"partition":"%v","key":"relays:widgets","problem":"lacks %v, where the topic has subscribers","remedy":"added there","state":"repairable"}`, home.Number(), own.Number()), lines[1])
	stdout, err = examine(examination{fix: true})
	require.NoError(t, err)
	assert.Contains(t, stdout, fmt.Sprintf("%v relays:widgets: lacks %v, where the topic has subscribers [added there]\n", home.Number(), own.Number()))
	assert.Contains(t, stdout, "2 repaired, 0 that --fix repairs, 0 skipped.")
	_, err = own.Hold(ctx, 0)
	require.NoError(t, err)
	stdout, err = examine(examination{fix: true})
	require.ErrorIs(t, err, errUnsound)
	assert.Contains(t, stdout, fmt.Sprintf("%v partition: is missing: the partition is held, or came back without its keys, and was not examined; "+
		"unless its slot is moving, run `rtm cluster release %[1]d` [skipped]\n", own.Number()))
	assert.Contains(t, stdout, "0 repaired, 0 that --fix repairs, 1 skipped.")

	_, err = home.Hold(ctx, 0)
	require.NoError(t, err)
	lost := all.All()[0].Partition()
	require.NoError(t, lost.HSet(ctx, lost.Namespace()+rdb.IdentityKey, "lost", "empty").Err())
	held := []int{int(home.Number()), int(own.Number())}
	slices.Sort(held)
	_, err = examine(examination{accept: true})
	require.EqualError(t, err, fmt.Sprintf("the loss was not acknowledged, because partitions are held, or came back without their keys: %d, %d; "+
		"run `rtm cluster release %[1]d %[2]d` first, then `rtm doctor --fix`, then this again", held[0], held[1]))
	loss, err := lost.Loss(ctx)
	require.NoError(t, err)
	assert.NotNil(t, loss)
	status, stdout, stderr := runCluster(t, "release", strconv.Itoa(held[0]), strconv.Itoa(held[1]), "--redis-url", c.URL, "--namespace", "rm:")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Equal(t, 2, strings.Count(stdout, " is open.\n"))
	_, err = examine(examination{accept: true})
	require.NoError(t, err)
}

func TestDoctorWithoutRedis(t *testing.T) {
	status, stdout, stderr := runDoctor(t, t.Context(), "--redis-url", "redis://user:a-password@127.0.0.1:1/0")
	assert.Equal(t, app.ExitFailed, status)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "127.0.0.1:1")
	assert.NotContains(t, stderr, "a-password")

	status, _, stderr = runDoctor(t, t.Context(), "--redis-url", "a-password")
	assert.Equal(t, app.ExitUsage, status)
	assert.NotContains(t, stderr, "a-password")

	status, _, _ = runDoctor(t, t.Context(), "--namespace", "*")
	assert.Equal(t, app.ExitUsage, status)
	status, _, _ = runDoctor(t, t.Context(), "now")
	assert.Equal(t, app.ExitUsage, status)

	stopped, stop := context.WithCancel(t.Context())
	stop()
	status, _, stderr = runDoctor(t, stopped, "--redis-url", "redis://127.0.0.1:1/0")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "stopped before the end")
}

// TestDoctorSaysWhatToDoAboutCountsThatChange has counts that changed whenever they were counted.
func TestDoctorSaysWhatToDoAboutCountsThatChange(t *testing.T) {
	var out bytes.Buffer
	d := examination{out: &out}
	d.sumUp(doctor.Stats{Unchecked: []string{"the gauges of shop", "the accounts of clients"}}, time.Second)
	assert.Equal(t, "the gauges of shop: not checked, too busy\n"+
		"the accounts of clients: not checked, too busy\n"+
		"To have that checked, stop the workers of the bus, and run this again.\n"+
		"Read 0 batches, 0 jobs, 0 subscribers and 0 topics in 1s: all that was checked is in order.\n", out.String())
}

func TestDoctorReportsFailingSubscribers(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		ctx := t.Context()
		t.Setenv("ROUTEMASTER_REDIS_URL", redis.URL)
		for i, want := range []string{"all is in order.\n1 subscriber is failing; `rtm top` shows which.\n", "all is in order.\n2 subscribers are failing; `rtm top` shows which.\n"} {
			token := fmt.Sprintf("shop--%d", i)
			redis.Raw.SAdd(ctx, "subscribers", token)
			redis.Raw.HSet(ctx, "api_tokens:by_token", token, "shop")
			redis.Raw.HSet(ctx, "subscriber:"+token, "callback", "https://shop.example/", "timeout", 0, "max_events", 10, "uuid", "u",
				"health_points", 80)
			redis.Raw.HSet(ctx, "delivery:"+token, "throttled_until", 1)
			status, stdout, _ := runDoctor(t, ctx)
			assert.Equal(t, app.ExitOK, status, stdout)
			assert.Contains(t, stdout, want)
		}
		_, stdout, _ := runDoctor(t, ctx, "--json")
		assert.Contains(t, stdout, `"failing_subscribers":2`)
	})
}
