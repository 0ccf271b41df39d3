package rdb_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
)

// fakeNode is a node of a cluster with given replies, which records the commands it has run.
type fakeNode struct {
	address string

	mu  sync.Mutex
	ran []string
	// master is the address that it takes for the master of all slots.
	master string
	// answers are those to commands, in lower case: an error, or lost for one that never comes. All
	// else is run.
	answers map[string]string
}

const lost = "lost"

func newFakeNode(t *testing.T) *fakeNode {
	s, err := server.NewServer("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	n := &fakeNode{address: s.Addr().String(), answers: map[string]string{}}
	n.master = n.address
	s.SetPreHook(n.serve)
	return n
}

func (n *fakeNode) serve(c *server.Peer, cmd string, args ...string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := strings.ToLower(cmd + " " + strings.Join(args, " "))
	answer := n.answers[name]
	switch {
	case cmd == "HELLO" || cmd == "CLIENT":
		c.WriteError("ERR unknown command")
		return true
	case cmd == "CLUSTER" && answer == "":
		host, port, _ := strings.Cut(n.master, ":")
		c.WriteLen(1)
		c.WriteLen(3)
		c.WriteInt(0)
		c.WriteInt(16383)
		c.WriteLen(3)
		c.WriteBulk(host)
		number, _ := strconv.Atoi(port)
		c.WriteInt(number)
		c.WriteBulk("id of " + n.master)
		return true
	}
	if answer == "" || answer == lost {
		n.ran = append(n.ran, name)
	}
	switch answer {
	case "":
		c.WriteInt(1)
	case lost:
		c.Close()
	default:
		c.WriteError(answer)
	}
	return true
}

// answer has the node answer to a command from now on.
func (n *fakeNode) answer(command, answer string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[command] = answer
}

func (n *fakeNode) follow(other *fakeNode) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.master = other.address
}

// hasRun returns the commands that the node has run since the last call.
func (n *fakeNode) hasRun() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	ran := n.ran
	n.ran = nil
	return ran
}

// forwarded returns two nodes, the first of which counts as the master, and a client of a slot.
func forwarded(t *testing.T) (first, second *fakeNode, client *redis.Client) {
	first, second = newFakeNode(t), newFakeNode(t)
	client = redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	client.AddHook(open(t, first.address).Forward(42))
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, client.Incr(t.Context(), "first").Err())
	require.Equal(t, []string{"incr first"}, first.hasRun())
	return first, second, client
}

// moved is the answer that the slot is at a node.
func moved(to *fakeNode) string { return "MOVED 42 " + to.address }

// pipeline sends commands that begin with these words, and returns the error of each.
func pipeline(t *testing.T, client *redis.Client, commands ...string) (errs []error) {
	cmds, _ := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for _, command := range commands {
			var args []any
			for _, word := range strings.Fields(command) {
				args = append(args, word)
			}
			pipe.Do(t.Context(), args...)
		}
		return nil
	})
	for _, cmd := range cmds {
		errs = append(errs, cmd.Err())
	}
	return errs
}

func TestASlotThatHasMovedIsFollowedOnce(t *testing.T) {
	first, second, client := forwarded(t)
	first.answer("incr a", moved(second))
	require.NoError(t, client.Incr(t.Context(), "a").Err())
	assert.Empty(t, first.hasRun())
	assert.Equal(t, []string{"incr a"}, second.hasRun())

	second.answer("incr b", moved(first))
	first.answer("incr b", moved(second))
	first.follow(second) // or it takes itself for the master when it is asked
	require.Eventually(t, func() bool { return client.Incr(t.Context(), "a").Err() == nil && len(second.hasRun()) == 1 }, time.Minute, time.Millisecond)
	assert.ErrorContains(t, client.Incr(t.Context(), "b").Err(), "MOVED")
	assert.Empty(t, first.hasRun())
	assert.Empty(t, second.hasRun())
}

func TestAPipelineThatHasMovedIsFollowedWhole(t *testing.T) {
	first, second, client := forwarded(t)
	first.answer("incr a", moved(second))
	first.answer("incr b", moved(second))
	for _, err := range pipeline(t, client, "script load x", "incr a", "incr b", "wait 1 1000") {
		assert.NoError(t, err)
	}
	assert.Equal(t, []string{"script load x", "wait 1 1000"}, first.hasRun())
	assert.Equal(t, []string{"script load x", "incr a", "incr b", "wait 1 1000"}, second.hasRun(), "WAIT is about what ran here")
}

// TestAPipelineOfWhichAPartHasRunIsNotFollowed checks that this part is not run again, and that no
// node confirms another node's change.
func TestAPipelineOfWhichAPartHasRunIsNotFollowed(t *testing.T) {
	for _, commands := range [][]string{
		{"incr b", "incr a", "wait 1 1000"}, {"incr a", "incr b"}, {"incr a", "publish channel text"},
	} {
		first, second, client := forwarded(t)
		first.answer("incr a", moved(second))
		for i, err := range pipeline(t, client, commands...) {
			if commands[i] == "incr a" {
				assert.ErrorContains(t, err, "MOVED")
			} else {
				assert.NoError(t, err)
			}
		}
		assert.Len(t, first.hasRun(), len(commands)-1)
		assert.Empty(t, second.hasRun())
	}
}

func TestWhatGetsNoAnswerIsSentOnce(t *testing.T) {
	first, second, client := forwarded(t)
	first.answer("incr a", lost)
	assert.ErrorContains(t, client.Incr(t.Context(), "a").Err(), "EOF")
	assert.Equal(t, []string{"incr a"}, first.hasRun())
	assert.ErrorContains(t, pipeline(t, client, "incr a")[0], "EOF")
	assert.Equal(t, []string{"incr a"}, first.hasRun())

	first.answer("incr b", moved(second))
	second.answer("incr b", lost)
	for _, err := range pipeline(t, client, "incr b", "incr b") {
		assert.ErrorContains(t, err, "EOF", "MOVED would say that it has not run")
	}
	assert.Empty(t, first.hasRun())
	assert.LessOrEqual(t, len(second.hasRun()), 2, "each once")
}

func TestASlotThatHasMovedIsNotLookedForWhereItWas(t *testing.T) {
	first, second, client := forwarded(t)
	first.answer("incr a", moved(second))
	first.answer("cluster slots", lost) // so no map can be loaded
	require.NoError(t, client.Incr(t.Context(), "a").Err())
	require.NoError(t, client.Incr(t.Context(), "b").Err())
	assert.Equal(t, []string{"incr a", "incr b"}, second.hasRun())
}

func TestASlotOnItsWayIsNotFollowed(t *testing.T) {
	first, second, client := forwarded(t)
	first.answer("incr a", "ASK 42 "+second.address)
	assert.ErrorContains(t, client.Incr(t.Context(), "a").Err(), "ASK")
	for _, err := range pipeline(t, client, "incr a", "incr a") {
		assert.ErrorContains(t, err, "ASK")
	}
	assert.Empty(t, first.hasRun())
	assert.Empty(t, second.hasRun())
}

// TestAFailureHasTheMapLoadedAnew has a node that fails all calls, and knows its successor.
func TestAFailureHasTheMapLoadedAnew(t *testing.T) {
	for _, failure := range []string{lost, "READONLY You can't write against a read only replica.", "CLUSTERDOWN The cluster is down"} {
		first, second, client := forwarded(t)
		first.answer("incr a", failure)
		first.follow(second)
		began := time.Now()
		require.Eventually(t, func() bool { return client.Incr(t.Context(), "a").Err() == nil }, time.Minute, time.Millisecond)
		assert.Less(t, time.Since(began), 30*time.Second, "not when the map is old")
		assert.Equal(t, []string{"incr a"}, second.hasRun())
	}
}

func TestNothingIsThere(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	defer client.Close()
	client.AddHook(open(t, rdbtest.FreeAddress(t)).Forward(42))
	for _, err := range pipeline(t, client, "incr a", "wait 1 1000") {
		assert.ErrorContains(t, err, "refused", "none of them may seem to have run")
	}
	_, err := client.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Incr(t.Context(), "a").Err() })
	assert.ErrorContains(t, err, "refused")
}
