package rdb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

const masters = 3

// releasedPartitions are as many as there are masters, one on each.
func releasedPartitions(t *testing.T, client *rdb.Client) rdb.Partitions {
	t.Helper()
	all := client.Partitions("", masters)
	for _, p := range all {
		require.NoError(t, p.Release(t.Context()))
	}
	return all
}

// count is how often [increment] has run.
func count(t *testing.T, p *rdb.Partition) (n int) {
	t.Helper()
	n, err := p.Get(t.Context(), p.Namespace()+"count").Int()
	if err != rdb.Nil {
		require.NoError(t, err)
	}
	return n
}

// change is [increment] with a result to confirm.
var change = rdb.NewScript(nil, `redis.call('INCR', ARGV[1] .. 'count') return {1}`)

func TestPartitionsOnACluster(t *testing.T) {
	c := rdbtest.NewCluster(t, masters, time.Minute)
	ctx := t.Context()
	all := releasedPartitions(t, c.Open(t))

	t.Run("each partition is on a node of its own", func(t *testing.T) {
		for i, p := range all {
			require.Same(t, c.Nodes[i], c.MasterOf(t, p))
			require.NoError(t, write(ctx, p))
			require.NoError(t, p.HSet(ctx, p.Namespace()+"hash", "field", i).Err())
			var a, b rdb.AnyReply
			require.NoError(t, p.Pipelined(ctx, "pipeline", func(pipe rdb.Commands) {
				a, b = pipe.HGet(ctx, p.Namespace()+"hash", "field"), pipe.LLen(ctx, p.Namespace()+"none")
			}))
			assert.NoError(t, a.Err())
			assert.NoError(t, b.Err())
			require.NoError(t, p.Transaction(ctx, "transaction", func(pipe rdb.Commands) {
				pipe.Incr(ctx, p.Namespace()+"count")
				pipe.Incr(ctx, p.Namespace()+"count")
			}))
			assert.Equal(t, 3, count(t, p))
			var keys []string
			require.NoError(t, p.EachKey(ctx, p.Namespace()+"*", func(page []string) error {
				keys = append(keys, page...)
				return nil
			}))
			assert.ElementsMatch(t, []string{p.Namespace() + "count", p.Namespace() + "hash", p.Namespace() + "partition"}, keys)
			assert.Equal(t, int64(3), c.Nodes[i].Raw.DBSize(ctx).Val())
		}
	})
	t.Run("a partition that is held refuses scripts", func(t *testing.T) {
		before := count(t, all[1])
		confirmed, err := all[1].Hold(ctx, 1)
		require.NoError(t, err)
		assert.Equal(t, 1, confirmed)
		err = write(ctx, all[1])
		assert.ErrorIs(t, err, bus.ErrUnavailable)
		assert.ErrorContains(t, err, "CLOSED the partition {p01.3}: is held")
		assert.NoError(t, write(ctx, all[0]), "others do not")
		require.NoError(t, all[1].Release(ctx))
		require.NoError(t, write(ctx, all[1]))
		assert.Equal(t, before+1, count(t, all[1]))
	})
	t.Run("replicas of the partition's own node confirm", func(t *testing.T) {
		confirming := c.Open(t, func(o *rdb.Options) { o.MinReplicas = 1 }).Partitions("", masters)
		c.Nodes[masters].Freeze(t)
		defer c.Nodes[masters].Thaw(t)
		for _, script := range []*rdb.Script{change, done, change} { // any other node would confirm at once
			changed := confirming[0].Change(ctx, script)
			assert.ErrorContains(t, changed.Err, "too few replicas")
			assert.False(t, changed.Changed)
		}
		assert.True(t, confirming[1].Change(ctx, change).Changed)
	})
	t.Run("what got no answer is sent once", func(t *testing.T) {
		hasty := c.Open(t, func(o *rdb.Options) { o.URL += "&read_timeout=100ms" }).Partitions("", masters)
		for _, send := range []func() error{
			func() error { return hasty[2].Run(ctx, increment).Err() },
			func() error { return hasty[2].Incr(ctx, hasty[2].Namespace()+"count").Err() },
			func() error {
				return hasty[2].Transaction(ctx, "", func(pipe rdb.Commands) { pipe.Incr(ctx, hasty[2].Namespace()+"count") })
			},
		} {
			require.Eventually(t, func() bool { return write(ctx, hasty[2]) == nil }, time.Minute, time.Millisecond, "so that there is a connection")
			before := count(t, all[2])
			c.Nodes[2].Freeze(t)
			assert.ErrorIs(t, rdb.Wrap("send", send()), bus.ErrUnavailable)
			require.Eventually(t, func() bool { return write(ctx, hasty[0]) == nil }, time.Minute, time.Millisecond, "another node answers")
			c.Nodes[2].Thaw(t)
			require.Eventually(t, func() bool { return count(t, all[2]) > before }, time.Minute, time.Millisecond)
			require.NoError(t, write(ctx, all[2])) // behind all that was sent
			assert.Equal(t, before+2, count(t, all[2]))
		}
	})
	t.Run("a scan begins anew where the partition has moved", func(t *testing.T) {
		p, keys := all[2], 2000
		require.NoError(t, p.Pipelined(ctx, "set", func(pipe rdb.Commands) {
			for i := range keys {
				pipe.Set(ctx, fmt.Sprintf("%skey:%d", p.Namespace(), i), "", 0)
			}
		}))
		seen, pages := map[string]bool{}, 0
		require.NoError(t, p.EachKey(ctx, p.Namespace()+"key:*", func(page []string) error {
			if pages++; pages == 2 {
				c.Move(t, p, c.Nodes[0]).End(t)
			}
			for _, key := range page {
				seen[key] = true
			}
			return nil
		}))
		assert.Len(t, seen, keys)
		c.Move(t, p, c.Nodes[2]).End(t)
	})
	t.Run("that a partition moves is logged once, though what has not moved is read", func(t *testing.T) {
		var log rdbtest.Buffer
		p := c.Open(t, log.LogTo).Partitions("", masters)[2]
		before := count(t, p)
		move := c.Move(t, p, c.Nodes[0])
		for range 3 {
			assert.ErrorIs(t, write(ctx, p), bus.ErrUnavailable)
			assert.Equal(t, before, count(t, p))
		}
		assert.Regexp(t, `^[^\n]*level=ERROR msg="partition held or moving, retrying" partition=2/3 error="ASK [^\n]*\n$`, log.String())
		move.End(t)
		require.NoError(t, write(ctx, p))
		assert.Regexp(t, `^[^\n]*ERROR[^\n]*\n[^\n]*level=INFO msg="partition open again" partition=2/3\n$`, log.String())
		c.Move(t, p, c.Nodes[2]).End(t)
	})
	t.Run("a user with a password, on all kinds of connections", func(t *testing.T) {
		for _, node := range c.Nodes {
			rule := append([]any{"acl", "setuser", "bus", "on", ">secret"}, words(rdbtest.Rights)...)
			require.NoError(t, node.Raw.Do(ctx, rule...).Err())
		}
		client := c.Open(t, func(o *rdb.Options) {
			o.URL = strings.Replace(o.URL, "redis+cluster://", "redis+cluster://bus:secret@", 1) + "&min_idle_conns=2"
			o.MinReplicas = 1
		})
		p := client.Partitions("", masters)[1]
		assert.True(t, p.Change(ctx, change).Changed)
		_, err := p.Memory(ctx)
		assert.NoError(t, err)
		waiter := p.NewWaiter(p.Namespace()+"list", time.Minute)
		assert.NoError(t, waiter.Wait(ctx, time.Millisecond))
		listener, err := p.NewListener(ctx, "channel")
		require.NoError(t, err)
		assert.Contains(t, c.Nodes[1].Raw.ClientList(ctx).Val(), "sub=1")
		for line := range strings.Lines(c.Nodes[1].Raw.ClientList(ctx).Val()) {
			if strings.Contains(line, "sub=1 ") {
				assert.Contains(t, line, "user=bus ")
			}
		}
		require.NoError(t, listener.Close())
		require.NoError(t, waiter.Close())
		require.NoError(t, client.Close())
		require.Eventually(t, func() bool {
			return !strings.Contains(c.Nodes[1].Raw.ClientList(ctx).Val()+c.Nodes[0].Raw.ClientList(ctx).Val(), "user=bus ")
		}, time.Minute, time.Millisecond, "connections are left open")
	})
	t.Run("a partition that moves is refused, then followed", func(t *testing.T) {
		requireMoves(t, c, all[0])
	})
}

// requireMoves moves the first partition to the second node, under load.
func requireMoves(t *testing.T, c *rdbtest.Cluster, p *rdb.Partition) {
	ctx := t.Context()
	waiter := p.NewWaiter(p.Namespace()+"list", time.Minute)
	defer waiter.Close()
	waited := make(chan error, 1)
	go func() { waited <- waiter.Wait(ctx, time.Minute) }()
	requireBlocked(t, c.Nodes[0])
	listener, err := p.NewListener(ctx, "channel")
	require.NoError(t, err)
	heard := make(chan string, 100)
	go listener.Each(func(text string) { heard <- text })

	load := startTransfers(t, p)
	move := c.Move(t, p, c.Nodes[1])
	move.Keys(t, 20)
	require.Eventually(t, func() bool { return load.refused.Load() > 10 }, time.Minute, time.Millisecond)
	refusal := rdb.Wrap("get", p.Get(ctx, p.Namespace()+"none").Err())
	assert.ErrorIs(t, refusal, bus.ErrUnavailable)
	assert.ErrorContains(t, refusal, "ASK")
	// A command without a key would see a part of the partition.
	assert.ErrorIs(t, p.EachKey(ctx, p.Namespace()+"*", func([]string) error { return nil }), bus.ErrUnavailable)
	_, err = p.Memory(ctx)
	assert.ErrorIs(t, err, bus.ErrUnavailable)
	move.End(t)
	acknowledged := load.acknowledged.Load()
	require.Eventually(t, func() bool { return load.acknowledged.Load() > acknowledged+10 }, time.Minute, time.Millisecond)
	load.stop(t)

	err = <-waited
	assert.ErrorIs(t, err, bus.ErrUnavailable)
	assert.ErrorContains(t, err, "MOVED")
	go func() { waited <- waiter.Wait(ctx, time.Minute) }()
	requireBlocked(t, c.Nodes[1])
	require.NoError(t, p.LPush(ctx, p.Namespace()+"list", "element").Err())
	assert.NoError(t, <-waited)

	require.NoError(t, p.Publish(ctx, "channel", "from the new node").Err())
	assert.Equal(t, "from the new node", <-heard)
	require.NoError(t, listener.Close())

	// A client that still takes the old node for the master is sent to the new one.
	late := c.Open(t).Partitions("", masters)[0]
	require.NoError(t, write(ctx, late))
	back := c.Move(t, late, c.Nodes[0])
	back.End(t)
	before := count(t, p)
	require.NoError(t, late.Transaction(ctx, "transaction", func(pipe rdb.Commands) {
		pipe.Incr(ctx, p.Namespace()+"count")
		pipe.Incr(ctx, p.Namespace()+"count")
	}))
	for _, r := range p.RunAll(ctx, increment.Call(), increment.Call()) {
		assert.NoError(t, r.Err())
	}
	assert.Equal(t, before+4, count(t, p))
}

func words(text string) (all []any) {
	for _, word := range strings.Fields(text) {
		all = append(all, word)
	}
	return all
}

func requireBlocked(t *testing.T, node *rdbtest.Node) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Contains(node.Raw.Info(t.Context(), "clients").Val(), "blocked_clients:1\r\n")
	}, time.Minute, time.Millisecond)
}

// transfers is load whose books must balance: each adds to one of many keys and to a sum.
type transfers struct {
	p                              *rdb.Partition
	acknowledged, refused, unknown atomic.Int64
	// unconfirmed has run, and its replica was not there or, on a busy host, late.
	unconfirmed atomic.Int64
	cancel      context.CancelFunc
	running     sync.WaitGroup
}

const accounts = 500

var transfer = rdb.NewScript(nil, `redis.call('INCR', ARGV[1] .. 'account:' .. ARGV[2])
redis.call('INCR', ARGV[1] .. 'sum')
return {1}`)

func startTransfers(t *testing.T, p *rdb.Partition) *transfers {
	l := &transfers{p: p}
	for i := range accounts {
		if err := p.Change(t.Context(), transfer, i).Err; err != nil {
			require.ErrorIs(t, err, rdb.ErrUnconfirmed)
		}
	}
	l.acknowledged.Store(accounts)
	l.start(t)
	return l
}

func (l *transfers) start(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l.cancel = cancel
	for range 2 {
		l.running.Go(func() {
			for ctx.Err() == nil {
				err := l.p.Change(context.WithoutCancel(ctx), transfer, rand.IntN(accounts)).Err
				switch {
				case err == nil:
					l.acknowledged.Add(1)
				case errors.Is(err, rdb.ErrUnconfirmed):
					l.unconfirmed.Add(1)
				case rdb.HasCode(err, "ASK") || rdb.HasCode(err, "MOVED") || rdb.HasCode(err, "CLOSED"):
					l.refused.Add(1)
				default:
					assert.ErrorIs(t, rdb.Wrap("transfer", err), bus.ErrUnavailable)
					l.unknown.Add(1)
				}
			}
		})
	}
}

// stop ends the load, and requires that its books balance.
func (l *transfers) stop(t *testing.T) {
	t.Helper()
	l.cancel()
	l.running.Wait()
	ctx, sum := t.Context(), int64(0)
	for i := range accounts {
		n, err := l.p.Get(ctx, fmt.Sprintf("%saccount:%d", l.p.Namespace(), i)).Int64()
		require.NoError(t, err)
		sum += n
	}
	total, err := l.p.Get(ctx, l.p.Namespace()+"sum").Int64()
	require.NoError(t, err)
	assert.Equal(t, total, sum, "no script ran halfway")
	assert.GreaterOrEqual(t, total, l.acknowledged.Load(), "nothing that was answered is lost")
	assert.LessOrEqual(t, total, l.acknowledged.Load()+l.unconfirmed.Load()+l.unknown.Load(), "nothing that was refused has run")
}

func TestFailoversOfACluster(t *testing.T) {
	c := rdbtest.NewCluster(t, masters, time.Second)
	ctx := t.Context()
	var log rdbtest.Buffer
	all := releasedPartitions(t, c.Open(t, log.LogTo, func(o *rdb.Options) { o.MinReplicas = 1 }))
	p := all[0]
	waiter := p.NewWaiter(p.Namespace()+"list", time.Minute)
	defer waiter.Close()

	load, other := startTransfers(t, p), startTransfers(t, all[1])
	node := c.FailOver(t, p)
	acknowledged := load.acknowledged.Load()
	require.Eventually(t, func() bool { return load.acknowledged.Load() > acknowledged+10 }, time.Minute, time.Millisecond)
	load.stop(t)

	began := time.Now()
	node.Kill(t)
	load.start(t)
	c.RequireMaster(t, p, c.ReplicaOf(node))
	assert.WithinRange(t, p.SteadySince(), began, time.Now())
	assert.True(t, all[1].SteadySince().Before(began), "what is on other nodes is not concerned")
	node.Restart(t) // its replica, which must confirm
	acknowledged = load.acknowledged.Load()
	require.Eventually(t, func() bool { return load.acknowledged.Load() > acknowledged+10 }, time.Minute, time.Millisecond)
	load.stop(t)
	other.stop(t)
	assert.Zero(t, other.refused.Load()+other.unknown.Load(), "what is on other nodes is not concerned")
	assert.NotRegexp(t, `redis unavailable.*partition=1/3`, log.String())
	assert.Regexp(t, `redis unavailable, retrying.*partition=0/3`, log.String())

	require.NoError(t, p.LPush(ctx, p.Namespace()+"list", "element").Err())
	require.Eventually(t, func() bool { return waiter.Wait(ctx, time.Minute) == nil }, time.Minute, time.Millisecond)
}

// TestAWaitEndsThoughNoNodeAnswers freezes all nodes before the first call.
func TestAWaitEndsThoughNoNodeAnswers(t *testing.T) {
	node := rdbtest.ClusterNode(t)
	client, err := rdb.Open(rdb.Options{URL: strings.Replace(node.URL, "redis://", "redis+cluster://", 1), Connections: 1})
	require.NoError(t, err)
	p := client.Partitions("", 1)[0]
	node.Freeze(t)
	defer node.Thaw(t)
	rdbtest.Promptly(t, time.Second, func() time.Duration {
		waiter := p.NewWaiter(p.Namespace()+"list", time.Hour)
		ended := make(chan error, 1)
		go func() { ended <- waiter.Wait(t.Context(), time.Hour) }()
		return rdbtest.Took(func() {
			_ = waiter.Close()
			assert.NoError(t, <-ended)
		})
	})
	require.NoError(t, client.Close())
}

func TestAClusterHasPartitions(t *testing.T) {
	client, err := rdb.Open(rdb.Options{URL: "redis+cluster://127.0.0.1:1"})
	require.NoError(t, err)
	defer client.Close()
	assert.Panics(t, func() { client.Partition("") })
	assert.ErrorIs(t, client.Ping(t.Context()), bus.ErrUnavailable)
}
