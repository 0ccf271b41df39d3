package rdb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxAge is how old a map may become while it is used. A slot that has moved is noticed earlier:
	// the node that had it says so.
	maxAge = time.Minute
	// minAge is how long a map is kept though a call has failed: all calls to a dead node do.
	minAge = 100 * time.Millisecond
	// patience is how long a node may take for a map until the next one is asked too.
	patience = 200 * time.Millisecond
	// loadTimeout is how long all nodes may take.
	loadTimeout = 3 * time.Second
	// nodeTTL is how long the client of a node is kept that no map names any more.
	nodeTTL = 10 * time.Minute
)

// clusterNode is a server of the cluster.
type clusterNode struct {
	// client connects to this node only, and follows no redirection.
	client  *redis.Client
	Address string
	// named is when a map or a caller last named the node. The cluster's mutex guards it.
	named time.Time
}

// clusterClient knows which node of a Redis Cluster has which slot, and has a client for each. It
// is safe for concurrent use.
//
// It does not use the Redis library's ClusterClient, which repeats calls that may have taken
// effect, and sends WAIT to another node than the change before it: see
// docs/decisions/redis-and-cluster.md.
type clusterClient struct {
	seeds   []string
	connect func(address string) *redis.Client
	masters atomic.Pointer[slotMap]
	// open is done when the cluster is closed.
	open  context.Context
	close context.CancelFunc

	mu    sync.Mutex
	nodes map[string]*clusterNode
	// loading is the load under way, nil if there is none.
	loading *mapLoad
	loads   sync.WaitGroup
}

// mapLoad is one load of the map. Its error is there when it is done.
type mapLoad struct {
	done chan struct{}
	err  error
}

// newClusterClient prepares a cluster, given the addresses of some nodes. It does not connect yet.
// Connect makes the client of a node.
func newClusterClient(seeds []string, connect func(address string) *redis.Client) *clusterClient {
	c := &clusterClient{seeds: seeds, connect: connect, nodes: map[string]*clusterNode{}}
	c.open, c.close = context.WithCancel(context.Background())
	return c
}

// Close closes all clients.
func (c *clusterClient) Close() error {
	c.close()
	c.mu.Lock()
	nodes := slices.Collect(maps.Values(c.nodes))
	c.mu.Unlock()
	var errs error
	for _, node := range nodes {
		errs = errors.Join(errs, node.client.Close())
	}
	c.loads.Wait()
	return errs
}

// Master is the node that has a slot, as far as is known. The first call asks the nodes.
func (c *clusterClient) Master(ctx context.Context, slot int) (*clusterNode, error) {
	m := c.masters.Load()
	if m == nil {
		if err := c.loadFirst(ctx); err != nil {
			return nil, err
		}
		m = c.masters.Load()
	}
	address := m.find(slot)
	if age := time.Since(m.loaded); age > maxAge || address == "" && age > minAge {
		c.reload()
	}
	if address == "" {
		return nil, fmt.Errorf("no node has slot %d", slot)
	}
	return c.node(address)
}

// AddressOf is the address of the node that has a slot, as far as is known; else empty.
func (c *clusterClient) AddressOf(slot int) string {
	if m := c.masters.Load(); m != nil {
		return m.find(slot)
	}
	return ""
}

// Moved takes note that the node at an address has said that a slot is at another, and returns the
// node there.
func (c *clusterClient) Moved(slot int, address, by string) (*clusterNode, error) {
	address = resolveAddress(address, by)
	c.mu.Lock()
	if m := c.masters.Load(); m != nil && m.find(slot) != address {
		c.masters.Store(m.with(slot, address))
	}
	c.mu.Unlock()
	c.reload() // others have moved too
	return c.node(address)
}

// Suspect has the map loaded anew in the background, because a call has failed.
func (c *clusterClient) Suspect() {
	if m := c.masters.Load(); m != nil && time.Since(m.loaded) > minAge {
		c.reload()
	}
}

// Ping asks the nodes for the map. It succeeds if one of them answers.
func (c *clusterClient) Ping(ctx context.Context) error { return c.load(ctx) }

// node is the client of an address, and is made if there is none.
func (c *clusterClient) node(address string) (*clusterNode, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Err() != nil {
		return nil, redis.ErrClosed
	}
	node := c.nodes[address]
	if node == nil {
		node = &clusterNode{client: c.connect(address), Address: address}
		c.nodes[address] = node
	}
	node.named = time.Now()
	return node, nil
}

// loadFirst is load, unless another caller has loaded the map meanwhile.
func (c *clusterClient) loadFirst(ctx context.Context) error {
	c.mu.Lock()
	if c.masters.Load() != nil {
		c.mu.Unlock()
		return nil
	}
	l := c.begin()
	c.mu.Unlock()
	return l.wait(ctx)
}

// load loads the map, or waits for the load under way.
func (c *clusterClient) load(ctx context.Context) error { return c.reload().wait(ctx) }

// wait waits for a load; a nil load means that the cluster is closed.
func (l *mapLoad) wait(ctx context.Context) error {
	if l == nil {
		return redis.ErrClosed
	}
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reload starts to load the map in the background, and returns the load under way. If the cluster
// is closed there may be none.
func (c *clusterClient) reload() *mapLoad {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begin()
}

// begin is reload with the mutex held.
func (c *clusterClient) begin() *mapLoad {
	if c.loading != nil || c.open.Err() != nil {
		return c.loading
	}
	l := &mapLoad{done: make(chan struct{})}
	c.loading = l
	c.loads.Go(func() {
		defer close(l.done)
		ctx, cancel := context.WithTimeout(c.open, loadTimeout)
		defer cancel()
		m, err := c.ask(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.loading, l.err = nil, err
		if err == nil {
			c.masters.Store(m)
			c.forget(m)
		}
	})
	return l
}

// forget closes the clients of nodes that have not been named for long. The caller holds the mutex.
func (c *clusterClient) forget(m *slotMap) {
	now := time.Now()
	for address, node := range c.nodes {
		switch {
		case m.names(address):
			node.named = now
		case now.Sub(node.named) > nodeTTL:
			delete(c.nodes, address)
			_ = node.client.Close()
		}
	}
}
