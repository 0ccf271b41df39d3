package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/migrate"
	"routemaster/internal/rdb/rdbtest"
)

const (
	shop = "shop--0123456789abcdef0123456789abcdef"
	// rubyEvent is MessagePack ["e", {"t": 1, "o": "widgets", "y": "noop", "u": "https://x.example/1",
	// "d": nil}].
	rubyEvent = "\x92\xa1e\x85\xa1t\x01\xa1o\xa7widgets\xa1y\xa4noop\xa1u\xb3https://x.example/1\xa1d\xc0"
)

// leaveBatch writes a batch as the Ruby original does, with two events.
func leaveBatch(t *testing.T, redis *rdbtest.Server, namespace, bid string) {
	t.Helper()
	ctx := t.Context()
	job := "\x92\xa5batch\x91\xb4" + bid
	redis.Raw.HSet(ctx, namespace+"api_tokens:by_token", shop, "shop")
	redis.Raw.SAdd(ctx, namespace+"subscribers", shop)
	redis.Raw.HSet(ctx, namespace+"subscriber:"+shop, "callback", "https://shop.example/")
	redis.Raw.RPush(ctx, namespace+"batches:"+bid, shop, 1_500_000_000_000, 0, rubyEvent, rubyEvent)
	redis.Raw.ZAdd(ctx, namespace+"batches:index", goredis.Z{Score: 1_500_000_000_000, Member: bid})
	redis.Raw.HIncrBy(ctx, namespace+"batches:gauges:batch", shop, 1)
	redis.Raw.HIncrBy(ctx, namespace+"batches:gauges:event", shop, 2)
	redis.Raw.SAdd(ctx, namespace+"jobs:index:main", job)
	require.NoError(t, redis.Raw.ZAdd(ctx, namespace+"jobs:scheduled:main", goredis.Z{Score: 1_500_000_000_500, Member: job}).Err())
}

func runMigrate(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	status = run(t.Context(), append([]string{"migrate"}, args...), &out, &errors)
	return status, out.String(), errors.String()
}

func TestMigrate(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		t.Setenv("REDIS_ENV_KEY", "SOME_REDIS")
		t.Setenv("SOME_REDIS", redis.URL)
		t.Setenv("ROUTEMASTER_REDIS_NAMESPACE", "rm:")
		const bid, alien = "RUBYRUBYRUBYRUBYRUBY", "AAAABBBBCCCCDDDDEEEE"
		status, stdout, stderr := runMigrate(t)
		assert.Equal(t, app.ExitOK, status, stderr)
		assert.Equal(t, "Nothing is left to do.\n", stdout)

		leaveBatch(t, redis, "rm:", bid)
		status, stdout, stderr = runMigrate(t)
		assert.Equal(t, app.ExitFailed, status)
		assert.Equal(t, "rtm: there is something to move: --apply does it\n", stderr)
		assert.Regexp(t, `^Would move 1 batches with 2 events in \S+: 0 to be moved later, 0 refused\.\n$`, stdout)
		require.EqualValues(t, 5, redis.Raw.LLen(t.Context(), "rm:batches:"+bid).Val())

		redis.Raw.RPush(t.Context(), "rm:batches:"+alien, "x")
		status, stdout, stderr = runMigrate(t, "--apply")
		assert.Equal(t, app.ExitFailed, status)
		assert.Equal(t, "rtm: not all was moved\n", stderr, "no progress where there is no terminal")
		lines := strings.Split(stdout, "\n")
		assert.Equal(t, "batches:"+alien+": is not as the bus writes it, or the bus does not know whose it is [refused]", lines[0])
		assert.Regexp(t, `^Moved 1 batches with 2 events in \S+: 0 to be moved later, 1 refused\.$`, lines[1])
		require.EqualValues(t, 5, redis.Raw.LLen(t.Context(), "rm:batch:"+bid).Val())

		redis.Raw.Del(t.Context(), "rm:batches:"+alien)
		redis.Raw.HSet(t.Context(), "rm:batches:gauges:event", "gone--1", 0)
		status, stdout, _ = runMigrate(t, "--apply", "--json")
		assert.Equal(t, app.ExitOK, status)
		var last struct{ Summary map[string]any }
		require.NoError(t, json.Unmarshal([]byte(stdout), &last))
		delete(last.Summary, "seconds")
		assert.Equal(t, map[string]any{"applied": true, "batches": 0.0, "events": 0.0, "completed": 0.0,
			"renamed_counters": 0.0, "removed_gauges": 1.0, "later": 0.0, "refused": 0.0}, last.Summary)
		status, stdout, _ = runDoctor(t, t.Context())
		assert.Equal(t, app.ExitOK, status, stdout)
		assert.Contains(t, stdout, "Read 1 batches, 1 jobs, 1 subscribers and 0 topics")

		t.Setenv("SOME_REDIS", "redis://127.0.0.1:1/0") // flags overrule it
		status, stdout, stderr = runMigrate(t, "--back", "--apply", "--redis-url", redis.URL, "--namespace", "rm:")
		assert.Equal(t, app.ExitOK, status, stderr)
		assert.Contains(t, stdout, "Moved 1 batches with 2 events")
		assert.EqualValues(t, 5, redis.Raw.LLen(t.Context(), "rm:batches:"+bid).Val())
	})
}

// TestMigrateReportsWhatIsLeftAsJSON also requires that secrets and control characters are not
// printed.
func TestMigrateReportsWhatIsLeftAsJSON(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		const bid = "RUBYRUBYRUBYRUBYRUBY"
		leaveBatch(t, redis, "", bid)
		redis.Raw.RPush(t.Context(), "batches:"+bid, "\x92\xa3\x1b[2\x80")
		status, stdout, _ := runMigrate(t, "--json", "--redis-url", redis.URL, "--namespace", "")
		assert.Equal(t, app.ExitFailed, status)
		first, _, _ := strings.Cut(stdout, "\n")
		var left unmoved
		require.NoError(t, json.Unmarshal([]byte(first), &left))
		assert.Equal(t, "batches:"+bid, left.Key)
		assert.Equal(t, "refused", left.State)
		assert.Contains(t, left.Reason, "its element 5, counted from 0, cannot be read")
		_, text, _ := runMigrate(t, "--redis-url", redis.URL, "--namespace", "")
		assert.NotContains(t, text+stdout, "\x1b")
		assert.NotContains(t, text+stdout, shop)
		status, stdout, _ = runMigrate(t, "--unreadable", "--apply", "--redis-url", redis.URL, "--namespace", "")
		assert.Equal(t, app.ExitOK, status)
		assert.Contains(t, stdout, "Moved 1 batches with 3 events")
	})
}

// TestMigrateStopsInTheMiddle has Ctrl-C pressed as soon as the first refusal is printed; a second
// run goes on.
func TestMigrateStopsInTheMiddle(t *testing.T) {
	redis := rdbtest.Real(t) // the embedded engine reads all keys at once
	const all = 1500
	for i := range all {
		leaveBatch(t, redis, "", fmt.Sprintf("RUBYRUBYRUBYRUBY%04d", i))
	}
	for i := range 100 {
		redis.Raw.RPush(t.Context(), fmt.Sprintf("batches:AAAABBBBCCCCDDDD%04d", i), "x")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &interrupted{stop: stop}
	var stderr bytes.Buffer
	assert.Equal(t, app.ExitFailed, run(ctx, []string{"migrate", "--apply", "--redis-url", redis.URL, "--namespace", ""}, out, &stderr))
	assert.Regexp(t, `^rtm: stopped before the end, with \d+ batches moved; run it again to go on\n$`, stderr.String())
	left := len(redis.Raw.Keys(t.Context(), "batches:RUBY*").Val())
	assert.Positive(t, left)
	assert.Len(t, redis.Raw.Keys(t.Context(), "batch:RUBY*").Val(), all-left)

	_, stdout, _ := runMigrate(t, "--apply", "--redis-url", redis.URL, "--namespace", "")
	assert.Contains(t, stdout, fmt.Sprintf("Moved %d batches with %d events", left, 2*left))
	assert.Len(t, redis.Raw.Keys(t.Context(), "batch:RUBY*").Val(), all)
}

func TestMigrateShowsItsProgress(t *testing.T) {
	var buffer bytes.Buffer
	m := migration{progress: &buffer, out: io.Discard}
	m.showProgress(migrate.Result{Batches: 3, Events: 7})
	assert.Equal(t, "\r\x1b[K3 batches, 7 events ...", buffer.String())
}

func TestMigrateWithoutRedis(t *testing.T) {
	status, stdout, stderr := runMigrate(t, "--redis-url", "redis://user:a-password@127.0.0.1:1/0")
	assert.Equal(t, app.ExitFailed, status)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "127.0.0.1:1")
	assert.NotContains(t, stderr, "a-password")
	for _, wrong := range [][]string{{"now"}, {"--yes"}, {"--redis-url", "a-password"}, {"--namespace", "*"}} {
		status, _, stderr = runMigrate(t, wrong...)
		assert.Equal(t, app.ExitUsage, status, wrong)
		assert.NotContains(t, stderr, "a-password")
	}
}
