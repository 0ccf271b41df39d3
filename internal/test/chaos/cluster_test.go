package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/test/bustest"
)

// The layout of the cluster. With two replicas a master, there is one to confirm publishes also
// after a failover.
const (
	clusterMasters    = 3
	clusterReplicas   = 2
	clusterPartitions = 12
	nodeTimeout       = 2 * time.Second
)

// electionPause is for how long a replica that stood for election and lost does not stand again.
// During it, a replica that is behind may be elected, and data that other replicas confirmed be
// lost.
const electionPause = 4 * nodeTimeout

// restartPause is for how long a node that was a master refuses everything once it is started
// again: 2 s, and it looks ten times a second whether they are over.
const restartPause = 2200 * time.Millisecond

// calmTimeout bounds how long the cluster takes until another fault can do no harm that is not the
// bus's. On a busy machine its nodes take each other for failed now and then.
const calmTimeout = 2 * time.Minute

// Faults of a cluster, besides the faults of one Redis.
const (
	failedOver   faultKind = "failed over"      // as planned, to a replica
	moved        faultKind = "moved"            // a partition, key by key
	killedInMove faultKind = "killed in a move" // of a partition that is held
	killedAhead  faultKind = "killed ahead"     // of its replicas, which had known of nothing for a while
	// masterChanged is not planned: some slots have another master, and until then not all nodes were
	// there, or agreed.
	masterChanged faultKind = "master changed"
)

// cluster is a Redis Cluster whose replicas confirm publishes. One fault happens to it at a time,
// and the next when all its nodes are there and have everything.
type cluster struct {
	*rdbtest.Cluster
	parts  rdb.Partitions
	random *rand.Rand
	// changed is when the master of a shard was last seen to be another one (ns since 1970).
	changed [clusterMasters]atomic.Int64
	// seen are the masters that were last seen by the watch.
	seen atomic.Pointer[map[int]*rdbtest.Node]
	// late are the kinds of faults that could not begin at their time, for the next ones.
	late []faultKind

	// The target of the present fault.
	partition *rdb.Partition
	node      *rdbtest.Node
	move      *rdbtest.Move
}

func newCluster(c *chaos, seed uint64) *cluster {
	p := &cluster{random: rand.New(rand.NewPCG(seed, 800))}
	p.Cluster = rdbtest.NewCluster(c.t, clusterMasters, nodeTimeout, func(o *rdbtest.ClusterOptions) {
		o.Replicas = clusterReplicas
		// Clients assume that all nodes are at the host at which they reached one, so each daemon has
		// proxies to all nodes.
		o.Arguments = []string{
			"--appendonly", "yes", "--cluster-preferred-endpoint-type", "unknown-endpoint", "--cluster-allow-replica-migration", "no",
		}
	})
	p.URL = rdbtest.Hurried(p.URL)
	client := p.Open(c.t)
	require.NoError(c.t, store.CreateBus(c.t.Context(), client, "", clusterPartitions))
	p.parts = client.Partitions("", clusterPartitions)
	return p
}

func (p *cluster) open(c *chaos) *store.Bus {
	all, err := store.OpenBus(c.t.Context(), p.Open(c.t), "", store.Options{})
	require.NoError(c.t, err)
	return all
}

// link starts proxies on a loopback host of the daemon's own, on the ports of the nodes.
func (p *cluster) link(c *chaos, daemon string) string {
	host := daemonHost(len(c.daemons))
	var via []string
	for i, node := range p.Nodes {
		_, port, _ := net.SplitHostPort(node.Address)
		address := net.JoinHostPort(host, port)
		proxy := startProxy(c.t, proxyName(daemon, node.Address), address, node.Address)
		for _, name := range []string{redisVictim, shard(i)} {
			name = proxyName(daemon, name)
			c.proxies[name] = append(c.proxies[name], proxy)
		}
		via = append(via, address)
	}
	return "redis+cluster://" + strings.Join(via, ",")
}

// daemonHost is the loopback host at which a daemon has its proxies.
func daemonHost(daemon int) string { return fmt.Sprintf("127.0.0.%d", 100+daemon) }

// shard names the nodes that have the same slots as one.
func shard(node int) string { return fmt.Sprint("shard ", node%clusterMasters) }

// shardOf is the number of a node's shard.
func (p *cluster) shardOf(node *rdbtest.Node) int {
	return slices.Index(p.Nodes, node) % clusterMasters
}

func (*cluster) variables() []string { return []string{"ROUTEMASTER_REDIS_MIN_REPLICAS=1"} }

func (*cluster) streams() []stream {
	shards := []string{shard(0), shard(1), shard(2)}
	return []stream{
		{"redis", []faultKind{killed, frozen, failedOver, moved, killedInMove}, []string{redisVictim}, span{500, 1500}, span{500, 3000}},
		linkStream("web > redis", webs, span{50, 600}, span{100, 1200}, shards...),
		linkStream("worker > redis", workers, span{300, 2000}, span{100, 800}, shards...),
	}
}

func (p *cluster) begin(c *chaos, f *fault) bool {
	p.late = append(p.late, f.kind)
	topic := p.draw()
	if p.findCalm(c.t.Context()) != nil {
		return false
	}
	f.kind, p.late = p.late[0], p.late[1:]
	since := time.Now()
	switch f.kind {
	case killed:
		p.node.Kill(c.t)
	case frozen:
		p.node.Freeze(c.t)
	case failedOver:
		p.FailOver(c.t, p.partition)
	case moved: // not for long: if the master changed meanwhile, for whatever reason, half of it would be gone
		p.beginMove(c)
		for p.move.Keys(c.t, 1) > 0 {
		}
		p.move.End(c.t)
	case killedInMove:
		confirmed, err := p.partition.Hold(c.t.Context(), 1)
		require.NoError(c.t, err)
		require.Positive(c.t, confirmed, "replicas that know that the partition is held")
		p.beginMove(c)
		p.move.Keys(c.t, 1+p.random.IntN(100))
		p.node.Kill(c.t)
	case killedAhead:
		p.eachReplica(func(replica *rdbtest.Node) { replica.Freeze(c.t) })
		// Its replicas would find everything that it sends from now on when they go on.
		require.NoError(c.t, p.node.Raw.ClientKillByFilter(c.t.Context(), "TYPE", "replica").Err())
	}
	if topic != "" {
		c.outages = append(c.outages, outage{since, topic, fmt.Sprintf(" (%s: %s)", f.kind, topic)})
	}
	return true
}

// draw chooses the partition for the next fault: one that is in use. If it is a topic's, draw
// returns the topic.
func (p *cluster) draw() (topic string) {
	switch p.random.IntN(5) {
	case 0:
		p.partition = p.parts[0] // which decides on the definitions of machines
	case 1:
		p.partition = p.parts.OfJobs(string(jobTypes[p.random.IntN(len(jobTypes))].Name))
	case 2:
		s := subscribers[p.random.IntN(len(subscribers))]
		p.partition = p.parts.Of(tokenOf(s.name))
	default:
		topic = publishers[p.random.IntN(len(publishers))].topic
		p.partition = p.parts.Home(bus.TopicName(topic))
	}
	return topic
}

// beginMove begins to move the partition to another master.
func (p *cluster) beginMove(c *chaos) {
	others := slices.DeleteFunc(p.Masters(c.t), func(node *rdbtest.Node) bool { return node == p.node })
	p.move = p.Move(c.t, p.partition, others[p.random.IntN(len(others))])
}

func (p *cluster) end(c *chaos, f *fault) {
	switch f.kind {
	case killed:
		p.node.Restart(c.t)
		f.refusing = restartPause
	case frozen:
		p.node.Thaw(c.t)
	case killedAhead:
		p.node.Kill(c.t)
		p.eachReplica(func(replica *rdbtest.Node) { replica.Thaw(c.t) })
		p.RequireSuccessor(c.t, p.node)
		p.node.Restart(c.t)
	case killedInMove:
		successor := p.RequireSuccessor(c.t, p.node)
		p.node.Restart(c.t)
		p.move.Resume(c.t, successor)
		p.move.End(c.t)
		require.Eventually(c.t, func() bool { return p.partition.Release(c.t.Context()) == nil }, bustest.WaitTimeout, 50*time.Millisecond,
			"the partition is not released")
	}
}

// eachReplica calls a function with each replica of the node.
func (p *cluster) eachReplica(do func(*rdbtest.Node)) {
	for replica := p.ReplicaOf(p.node); replica != p.node; replica = p.ReplicaOf(replica) {
		do(replica)
	}
}

// catchUp has each kind of fault come for which there was no time, and masters killed ahead of
// their replicas, which is no fault of short runs.
func (p *cluster) catchUp(c *chaos) {
	for _, kind := range append(p.streams()[0].kinds, killedAhead) {
		if slices.ContainsFunc(c.faults, func(f *fault) bool { return f.kind == kind && f.victim == redisVictim }) {
			continue
		}
		f := &fault{stream: "redis", kind: kind, victim: redisVictim}
		require.Eventually(c.t, func() bool {
			p.late = nil
			c.begin(f)
			return !f.began.IsZero()
		}, calmTimeout, 50*time.Millisecond, "no fault can begin")
		time.Sleep(time.Second) // it lasts
		c.end(f)
	}
}

// recover kills the master of a topic's home, and returns how long it took from when another had
// taken its place until that was noticed. It is 0 if the cluster was not whole.
func (p *cluster) recover(c *chaos) time.Duration {
	topic := publishers[0].topic
	p.partition = p.parts.Home(bus.TopicName(topic))
	if !p.awaitCalm(c) {
		return 0
	}
	f := &fault{stream: "redis", kind: killed, victim: redisVictim, began: time.Now()}
	c.faults = append(c.faults, f)
	p.node.Kill(c.t)
	p.RequireSuccessor(c.t, p.node)
	took := c.waitForRecovery(outage{since: time.Now(), topic: topic})
	p.node.Restart(c.t)
	f.ended = time.Now()
	p.awaitCalm(c)
	return took
}

// awaitCalm waits until another fault can do no harm that is not the bus's. A long run fails if
// that never is. A short one goes on without that fault, and says why: this looks at Redis alone.
func (p *cluster) awaitCalm(c *chaos) bool {
	var err error
	for end := time.Now().Add(calmTimeout); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = p.findCalm(c.t.Context()); err == nil {
			return true
		}
	}
	if *chaosDuration >= longRun {
		require.NoError(c.t, err, "the cluster does not come back")
	}
	c.t.Logf("the cluster does not come back: %v", err)
	return false
}

// findCalm finds the node that has the partition, unless another fault might do harm that is not
// the bus's.
func (p *cluster) findCalm(ctx context.Context) error {
	masters, err := p.whole(ctx)
	if err != nil {
		return errors.Join(err, p.Unchain(ctx))
	}
	if seen := p.seen.Load(); seen == nil || !maps.Equal(masters, *seen) {
		return errors.New("the watch has not seen yet who the masters are") // else a change might never be seen
	}
	p.node = masterOf(masters, rdb.SlotOf(p.partition.Namespace()))
	if since := time.Since(time.Unix(0, p.changed[p.shardOf(p.node)].Load())); since <= electionPause {
		return fmt.Errorf("%s became a master %v ago", p.node.Address, since)
	}
	return nil
}

func (p *cluster) whole(ctx context.Context) (masters map[int]*rdbtest.Node, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return p.Whole(ctx)
}

// concerned names the parties that have a partition with another master than before: labels are in
// all partitions.
func (p *cluster) concerned(before, now map[int]*rdbtest.Node) (parties []string) {
	isOther := func(partition *rdb.Partition) bool {
		slot := rdb.SlotOf(partition.Namespace())
		return masterOf(before, slot) != masterOf(now, slot)
	}
	if slices.ContainsFunc(p.parts, isOther) {
		parties = append(parties, labelProxy)
	}
	for _, s := range subscribers {
		if isOther(p.parts.Of(tokenOf(s.name))) {
			parties = append(parties, s.name)
		}
	}
	return parties
}

// masterOf is the master of a slot, given the master of each range's first slot.
func masterOf(masters map[int]*rdbtest.Node, slot int) *rdbtest.Node {
	first := -1
	for f := range masters {
		if f <= slot {
			first = max(first, f)
		}
	}
	return masters[first]
}

// noteChanged notes which shards have another master than before.
func (p *cluster) noteChanged(before, now map[int]*rdbtest.Node) {
	old := slices.Collect(maps.Values(before))
	for _, master := range now {
		if !slices.Contains(old, master) {
			p.changed[p.shardOf(master)].Store(time.Now().UnixNano())
		}
	}
}

// watch records changes of the masters.
func (p *cluster) watch() (stop func() faults) {
	const interval = 50 * time.Millisecond
	var changes faults
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		since := time.Now()
		before, _ := p.whole(ctx)
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(interval):
			}
			looked := time.Now()
			masters, err := p.whole(ctx)
			if err != nil {
				continue
			}
			if !maps.Equal(masters, before) {
				p.noteChanged(before, masters)
				changes = append(changes, &fault{
					kind: masterChanged, victim: redisVictim, began: since, ended: time.Now(), concerns: p.concerned(before, masters),
				})
			}
			since, before = looked, masters
			p.seen.Store(&masters)
		}
	})
	return func() faults {
		cancel()
		watching.Wait()
		return changes
	}
}
