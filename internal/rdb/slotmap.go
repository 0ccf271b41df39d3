package rdb

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"
)

// slotMap says at which address the master of each slot is. It does not change.
type slotMap struct {
	loaded time.Time
	// ranges are in order.
	ranges []slotRange
	// moved are single slots that have moved since.
	moved map[int]string
}

type slotRange struct {
	first, last int
	address     string
}

// find returns the address of a slot's master, or "" if it has none.
func (m *slotMap) find(slot int) string {
	if address, ok := m.moved[slot]; ok {
		return address
	}
	i, _ := slices.BinarySearchFunc(m.ranges, slot, func(r slotRange, slot int) int { return cmp.Compare(r.last, slot) })
	if i < len(m.ranges) && m.ranges[i].first <= slot {
		return m.ranges[i].address
	}
	return ""
}

// with is the map with a slot elsewhere.
func (m *slotMap) with(slot int, address string) *slotMap {
	moved := maps.Clone(m.moved)
	if moved == nil {
		moved = map[int]string{}
	}
	moved[slot] = address
	return &slotMap{loaded: m.loaded, ranges: m.ranges, moved: moved}
}

// names is whether a node is the master of any slot.
func (m *slotMap) names(address string) bool {
	return slices.ContainsFunc(m.ranges, func(r slotRange) bool { return r.address == address })
}

var errNoSlots = errors.New("a node of the cluster knows no slots: redis-cli --cluster create gives them to nodes")

// ask asks the nodes for their map, one after another, until the first answers. A node that does
// not answer at once, such as a frozen one, does not delay the others.
func (c *clusterClient) ask(ctx context.Context) (*slotMap, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	addresses := c.addresses()
	type answer struct {
		slots *slotMap
		err   error
	}
	answers := make(chan answer, len(addresses))
	var first error
	for asked, answered := 0, 0; answered < len(addresses); {
		var next <-chan time.Time
		if asked < len(addresses) {
			address := addresses[asked]
			asked++
			c.loads.Go(func() {
				m, err := c.askNode(ctx, address)
				answers <- answer{m, err}
			})
			next = time.After(patience)
		}
		select {
		case a := <-answers:
			answered++
			if a.err == nil {
				return a.slots, nil
			}
			first = cmp.Or(first, a.err)
		case <-next:
		}
	}
	return nil, first
}

// addresses returns the addresses of all known nodes, in any order.
func (c *clusterClient) addresses() []string {
	known := slices.Clone(c.seeds)
	if m := c.masters.Load(); m != nil {
		for _, r := range m.ranges {
			known = append(known, r.address)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	rand.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
	return known
}

func (c *clusterClient) askNode(ctx context.Context, address string) (*slotMap, error) {
	node, err := c.node(address)
	if err != nil {
		return nil, err
	}
	ranges, err := AskRanges(ctx, node.client)
	if err != nil {
		return nil, err
	}
	return newSlotMap(ranges, address)
}

// newSlotMap makes a map of the reply of the node at an address.
func newSlotMap(ranges []NodeRange, address string) (*slotMap, error) {
	m := &slotMap{loaded: time.Now()}
	for _, r := range ranges {
		if len(r.Nodes) > 0 {
			m.ranges = append(m.ranges, slotRange{r.First, r.Last, resolveAddress(r.Nodes[0].Address, address)})
		}
	}
	if m.ranges == nil {
		return nil, errNoSlots
	}
	slices.SortFunc(m.ranges, func(a, b slotRange) int { return cmp.Compare(a.first, b.first) })
	return m, nil
}

// resolveAddress completes the address of a node that another node, at the address by, has told: it
// may lack a host, or have one that is only right there, and no port if all speak TLS.
func resolveAddress(address, by string) string {
	byHost, byPort, _ := net.SplitHostPort(by)
	colon := strings.LastIndexByte(address, ':')
	if colon < 0 {
		return address
	}
	host, port := strings.Trim(address[:colon], "[]"), address[colon+1:]
	if host == "" || host == "?" || isLoopback(host) && !isLoopback(byHost) {
		host = byHost
	}
	if port == "0" {
		port = byPort
	}
	return net.JoinHostPort(host, port)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
