package main

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/buscopy"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// runCopy runs rtm copy, and returns its exit status and output.
func runCopy(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, failures bytes.Buffer
	status = run(ctx, append([]string{"copy"}, args...), &out, &failures)
	return status, out.String(), failures.String()
}

// waitingBus is a bus with a subscriber, for whom a batch waits.
func waitingBus(t *testing.T, server *rdbtest.Server) *store.Store {
	t.Helper()
	ctx, st := t.Context(), store.New(server.Open(t).Partition(""), store.Options{})
	require.NoError(t, st.PutToken(ctx, shop, "shop"))
	require.NoError(t, st.Subscribe(ctx, shop, bus.Subscription{Topics: []bus.TopicName{"widgets"}, Callback: "https://shop.example/"}, time.Now()))
	require.NoError(t, st.PublishAll(ctx, store.Publication{Topic: "widgets", Publisher: shop, Events: []wire.PackedEvent{rubyEvent}, ReceivedAt: 1})[0].Err)
	return st
}

func TestCopy(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, from *rdbtest.Server) {
		ctx, to := t.Context(), rdbtest.Embedded(t)
		waitingBus(t, from)
		on := func(args ...string) []string {
			return append(args, "--from", from.URL, "--to", to.URL, "--to-namespace", "rm:")
		}
		status, stdout, stderr := runCopy(ctx, on()...)
		assert.Equal(t, app.ExitOK, status, stderr)
		assert.Contains(t, stdout, "batches             1       1       \nevents queued       1       1       \n")
		assert.Regexp(t, `Copied in .*: \d+ counts compared, all equal. Start web and worker on the new Redis; the old one is as it was.\n$`, stdout)
		assert.Equal(t, "rtm: reading\nrtm: copying\nrtm: counting the source\nrtm: examining the source\n"+
			"rtm: counting the target\nrtm: examining the target\n", stderr)
		assert.Equal(t, string(shop), to.Raw.SMembers(ctx, "rm:subscribers").Val()[0])

		status, _, stderr = runCopy(ctx, on()...)
		assert.Equal(t, app.ExitFailed, status)
		assert.Contains(t, stderr, "rtm: the target is not empty")

		status, stdout, stderr = runCopy(ctx, "--json", "--from", from.URL, "--to", to.URL, "--to-namespace", "other:")
		assert.Equal(t, app.ExitOK, status, stderr)
		var report buscopy.Report
		require.NoError(t, json.Unmarshal([]byte(stdout), &report))
		assert.Contains(t, report.Rows, buscopy.Row{What: "events queued", Source: 1, Target: 1})
	})
}

// TestACopyThatDiffers requires that the differences are printed.
func TestACopyThatDiffers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := busCopy{out: &out}
	c.print(buscopy.Report{
		Rows:     []buscopy.Row{{What: "jobs", Source: 1200, Target: 2}, {What: "keys topic:", Source: 1, Target: 1}, {What: "topics", Source: 1, Target: 1, IsMain: true}},
		Findings: []string{"topics: is odd"},
	}, time.Second)
	assert.Equal(t, "        source  target  \njobs    1,200   2       differs\ntopics  1       1       \n"+
		"In the target, not in the source: topics: is odd\n", out.String())
}

func TestHowCopyIsMisused(t *testing.T) {
	t.Parallel()
	const from, to = "redis://localhost:1/0", "redis://localhost:1/1"
	for _, wrong := range []struct {
		says string
		args []string
	}{
		{"--from must be the URL of a Redis", []string{"--to", to}},
		{"--to must be the URL of a Redis", []string{"--from", from}},
		{"--from and --to are the same bus", []string{"--from", from, "--to", from}},
		{"rtm: --from: ROUTEMASTER_REDIS_URL=(not shown) is not allowed", []string{"--from", "nonsense", "--to", to}},
	} {
		status, _, stderr := runCopy(t.Context(), wrong.args...)
		assert.Equal(t, app.ExitUsage, status)
		assert.Contains(t, stderr, wrong.says)
	}
	status, _, stderr := runCopy(t.Context(), "--from", from, "--to", to)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "refused")
}

// TestACopyThatIsStopped says how to go on.
func TestACopyThatIsStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out bytes.Buffer
	c := busCopy{out: &out, errors: &out}
	server := rdbtest.Embedded(t)
	c.From = rdb.Partitions{store.New(server.Open(t).Partition(""), store.Options{}).Partition()}
	c.To = rdb.Partitions{server.Open(t).Partition("to:")}
	require.EqualError(t, c.copy(ctx), "stopped before the end; the source is as it was, and --restart begins again")
}
