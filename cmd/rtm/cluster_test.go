package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
)

// runCluster runs a command of rtm cluster, and returns its exit status and output.
func runCluster(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	status = run(t.Context(), append([]string{"cluster"}, args...), &out, &errors)
	return status, out.String(), errors.String()
}

// states are the states of partitions in the output of rtm cluster status, by number.
func states(t *testing.T, stdout string) (all []string) {
	t.Helper()
	for line := range strings.Lines(stdout) {
		if cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); cells[0] == "partition" {
			require.Len(t, cells, 6)
			assert.Equal(t, fmt.Sprint(len(all)), cells[1])
			all = append(all, cells[4])
		}
	}
	return all
}

func TestCluster(t *testing.T) {
	t.Parallel()
	c := rdbtest.NewCluster(t, 3, time.Minute)
	on := func(args ...string) []string { return append(args, "--redis-url", c.URL, "--namespace", "bus:") }
	redis := c.Open(t)
	partitions := redis.Partitions("bus:", 6)
	open := []string{"open", "open", "open", "open", "open", "open"}

	t.Run("there is no bus yet", func(t *testing.T) {
		for _, args := range [][]string{{"status"}, {"hold", "1"}, {"release", "1"}} {
			status, stdout, stderr := runCluster(t, on(args...)...)
			assert.Equal(t, app.ExitFailed, status)
			assert.Empty(t, stdout)
			assert.Equal(t, "rtm: there is no bus with partitions under the namespace \"bus:\": `rtm cluster create` with the same Redis and namespace makes one\n", stderr)
		}
	})
	t.Run("it is made once", func(t *testing.T) {
		status, stdout, stderr := runCluster(t, on("create", "--partitions", "6")...)
		assert.Equal(t, app.ExitOK, status)
		assert.Equal(t, fmt.Sprintf("Made a bus with 6 partitions: 2 on %s, 2 on %s, 2 on %s.\n",
			c.Nodes[0].Address, c.Nodes[1].Address, c.Nodes[2].Address), stdout)
		all := c.Nodes[0].Address + ", " + c.Nodes[1].Address + ", " + c.Nodes[2].Address
		assert.Contains(t, stderr, "rtm: warning: "+all+": appendonly is no: set it to yes, ")
		assert.Contains(t, stderr, "rtm: warning: "+all+": cluster-node-timeout is 60000: 2000 to 5000 ms are advised")
		assert.Equal(t, 2, strings.Count(stderr, "\n"), stderr)
		for _, count := range []string{"6", "12"} {
			status, stdout, stderr = runCluster(t, on("create", "--partitions", count)...)
			assert.Equal(t, app.ExitFailed, status)
			assert.Empty(t, stdout)
			assert.Equal(t, "rtm: there is a bus with partitions already: it has 6, and was not changed\n", stderr)
		}
		status, stdout, _ = runCluster(t, on("status")...)
		assert.Equal(t, app.ExitOK, status)
		assert.Equal(t, open, states(t, stdout))
	})

	t.Run("none is made over partitions whose number is lost", func(t *testing.T) {
		require.NoError(t, c.Nodes[0].Raw.Del(t.Context(), "bus:partitions").Err())
		status, stdout, stderr := runCluster(t, on("create", "--partitions", "24")...)
		assert.Equal(t, app.ExitFailed, status)
		assert.Empty(t, stdout)
		assert.Equal(t, "rtm: there is a bus with partitions already, and a node has lost their number, which web and worker write again "+
			"as they start: it has 6, and was not changed\n", stderr)
		status, stdout, stderr = runCluster(t, on("status")...)
		assert.Equal(t, app.ExitOK, status, stderr)
		assert.Equal(t, open, states(t, stdout))
		require.NoError(t, c.Nodes[0].Raw.Set(t.Context(), "bus:partitions", "6", 0).Err())
	})

	all, err := store.OpenBus(t.Context(), redis, "bus:", store.Options{})
	require.NoError(t, err)
	require.NoError(t, all.PutToken(t.Context(), "publisher--1", "publisher"))
	var topic bus.TopicName = "a"
	for all.Home(topic).Partition().Number() != 3 {
		topic += "a"
	}
	publish := func(t *testing.T) error {
		return all.Home(topic).PublishAll(t.Context(), store.Publication{Topic: topic, Publisher: "publisher--1", ReceivedAt: 1})[0].Err
	}
	require.NoError(t, publish(t))

	t.Run("a partition that is held refuses events until it is released", func(t *testing.T) {
		status, stdout, stderr := runCluster(t, on("hold", "3")...)
		assert.Equal(t, app.ExitOK, status, stderr)
		assert.Equal(t, "Partition 3 on "+c.Nodes[1].Address+" is held, as 1 replica confirmed. "+
			"Move its slot, then run `rtm cluster release 3`.\n", stdout)
		require.ErrorIs(t, publish(t), bus.ErrUnavailable)
		status, stdout, stderr = runCluster(t, on("status")...)
		assert.Equal(t, app.ExitFailed, status)
		assert.Equal(t, []string{"open", "open", "open", "held", "open", "open"}, states(t, stdout))
		assert.True(t, strings.HasSuffix(stderr, "rtm: not all partitions are open\n"), stderr)

		status, stdout, stderr = runCluster(t, on("release", "3")...)
		assert.Equal(t, app.ExitOK, status, stderr)
		assert.Equal(t, "Partition 3 on "+c.Nodes[1].Address+" is open.\n", stdout)
		require.NoError(t, publish(t))
	})
	t.Run("a hold that no replica confirms is none", func(t *testing.T) {
		c.Nodes[4].Freeze(t)
		for range 2 { // the second changes nothing, and is confirmed no more than the first
			status, stdout, stderr := runCluster(t, on("hold", "3")...)
			assert.Equal(t, app.ExitFailed, status)
			assert.Empty(t, stdout)
			assert.Contains(t, stderr, "rtm: partition 3 is held, but only 0 of 1 replicas confirmed it: do not move it yet")
		}
		status, stdout, _ := runCluster(t, on("hold", "3", "--replicas", "0")...)
		assert.Equal(t, app.ExitOK, status)
		assert.Contains(t, stdout, "Partition 3 on "+c.Nodes[1].Address+" is held")
		c.Nodes[4].Thaw(t)
		status, _, _ = runCluster(t, on("release", "3")...)
		assert.Equal(t, app.ExitOK, status)
	})
	t.Run("what is on its way is not released", func(t *testing.T) {
		status, _, stderr := runCluster(t, on("hold", "3")...)
		require.Equal(t, app.ExitOK, status, stderr)
		move := c.Move(t, partitions[3], c.Nodes[2])
		move.Keys(t, 2)
		status, stdout, stderr := runCluster(t, on("release", "3")...)
		assert.Equal(t, app.ExitFailed, status)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, "rtm: partition 3 is on its way to another node (")
		assert.Contains(t, stderr, c.Nodes[1].Address+" is sending it to "+c.Nodes[2].Address)
		require.ErrorIs(t, publish(t), bus.ErrUnavailable)
		_, stdout, _ = runCluster(t, on("status")...)
		assert.Equal(t, []string{"open", "open", "open", "moving", "open", "open"}, states(t, stdout))

		move.End(t)
		_, stdout, _ = runCluster(t, on("status")...)
		assert.Equal(t, "held", states(t, stdout)[3])
		status, stdout, _ = runCluster(t, on("release", "3")...)
		assert.Equal(t, app.ExitOK, status)
		assert.Equal(t, "Partition 3 on "+c.Nodes[2].Address+" is open.\n", stdout)
		require.NoError(t, publish(t))
	})
	t.Run("a target whose source has died has the slot still on its way", func(t *testing.T) {
		to := c.Nodes[2]
		move := c.Move(t, partitions[2], to)
		from := c.MasterOf(t, partitions[2])
		require.NoError(t, from.Raw.Do(t.Context(), "cluster", "setslot", move.Slot(), "stable").Err()) // as a promoted replica has it
		status, _, stderr := runCluster(t, on("release", "2")...)
		assert.Equal(t, app.ExitFailed, status)
		assert.Contains(t, stderr, to.Address+" is taking it from "+from.Address)
		require.NoError(t, to.Raw.Do(t.Context(), "cluster", "setslot", move.Slot(), "stable").Err())
	})
	t.Run("JSON, with no warning once all is set as it should be", func(t *testing.T) {
		for _, node := range c.Nodes {
			for name, value := range map[string]string{"appendonly": "yes", "cluster-node-timeout": "5000"} {
				require.NoError(t, node.Raw.ConfigSet(t.Context(), name, value).Err())
			}
		}
		status, stdout, stderr := runCluster(t, on("status", "--json")...)
		assert.Equal(t, app.ExitOK, status)
		assert.Empty(t, stderr)
		var view clusterView
		require.NoError(t, json.Unmarshal([]byte(stdout), &view))
		assert.Empty(t, view.Warnings)
		assert.NotNil(t, view.Warnings)
		require.Len(t, view.Nodes, 3)
		assert.Equal(t, nodeView{Address: c.Nodes[0].Address, Partitions: []int{0, 1}, Replicas: 1, MemoryUsed: view.Nodes[0].MemoryUsed}, view.Nodes[0])
		assert.Positive(t, view.Nodes[0].MemoryUsed)
		assert.Equal(t, partitionView{Number: 5, Slot: view.Partitions[5].Slot, Node: c.Nodes[2].Address, State: "open"}, view.Partitions[5])
		for _, node := range c.Nodes {
			require.NoError(t, node.Raw.ConfigSet(t.Context(), "cluster-node-timeout", "60000").Err())
		}
	})
	t.Run("a node that is away hides no other", func(t *testing.T) {
		// The first node has the number of partitions.
		require.Contains(t, c.Nodes[0].Raw.Keys(t.Context(), "*").Val(), "bus:partitions")
		for _, end := range []func(testing.TB){c.Nodes[0].Freeze, c.Nodes[0].Kill} {
			end(t)
			status, stdout, stderr := runCluster(t, on("status")...)
			assert.Equal(t, app.ExitFailed, status)
			assert.Equal(t, []string{"away", "away", "open", "open", "open", "open"}, states(t, stdout), stderr)
			assert.True(t, slices.ContainsFunc(strings.Split(stdout, "\n"), func(line string) bool {
				return strings.HasPrefix(line, "node\t"+c.Nodes[0].Address+"\t2\t0\t0\t0\t") && !strings.HasSuffix(line, "\t")
			}), stdout)
		}
		status, _, stderr := runCluster(t, on("release", "4")...)
		assert.Equal(t, app.ExitFailed, status)
		assert.Contains(t, stderr, c.Nodes[0].Address+" did not say whether it is on its way there")
		status, _, _ = runCluster(t, on("release", "4", "--force")...)
		assert.Equal(t, app.ExitOK, status, "others can be used")
	})
}

func TestClusterUsage(t *testing.T) {
	const cluster = "redis+cluster://user:a-password@127.0.0.1:1"
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--partitions must be 1 to 100", []string{"create", "--partitions", "0", "--redis-url", cluster}},
		{"--partitions must be 1 to 100", []string{"create", "--partitions", "101", "--redis-url", cluster}},
		{"--replicas must be 0 or more", []string{"hold", "1", "--replicas", "-1", "--redis-url", cluster}},
		{"this Redis is no cluster", []string{"create", "--redis-url", "redis://localhost:1/0"}},
		{"this Redis is no cluster", []string{"status", "--redis-url", "redis+sentinel://localhost:1/bus"}},
		{"this Redis is no cluster", []string{"hold", "1", "--redis-url", "redis://localhost:1/0"}},
		{"this Redis is no cluster", []string{"release", "1", "--redis-url", "redis://localhost:1/0"}},
		{"got 0 arguments", []string{"hold", "--redis-url", cluster}},
		{"must be like redis://", []string{"status", "--redis-url", "a-password"}},
		{"needs one of its commands: create, hold, release, status", nil},
	} {
		status, stdout, stderr := runCluster(t, c.args...)
		assert.Equal(t, app.ExitUsage, status, c.args)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, c.want)
	}
	for _, args := range [][]string{{"create"}, {"status"}, {"hold", "1"}, {"release", "1"}} {
		status, stdout, stderr := runCluster(t, append(args, "--redis-url", cluster)...)
		assert.Equal(t, app.ExitFailed, status, args)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, "127.0.0.1:1")
		assert.NotContains(t, stderr, "a-password")
	}
	for _, text := range []string{"6", "-1", "x", ""} {
		_, err := partitionArg(text, 6)
		assert.ErrorContains(t, err, "this bus has 0 to 5", text)
	}
	number, err := partitionArg("05", 6)
	require.NoError(t, err)
	assert.Equal(t, 5, number)
}

func TestOtherCommandsNeedOneRedis(t *testing.T) {
	for _, args := range [][]string{{"migrate"}, {"migrate", "--apply"}, {"dev", "--port", "0"}} {
		var stdout, stderr bytes.Buffer
		args = append(args, "--redis-url", "redis+cluster://127.0.0.1:1")
		assert.Equal(t, app.ExitUsage, run(t.Context(), args, &stdout, &stderr), args)
		assert.Empty(t, stdout.String())
		assert.Contains(t, stderr.String(), "rtm: this needs one Redis, and its URL is that of a Redis Cluster\n")
	}
}
