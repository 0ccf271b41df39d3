package rdbtest

import (
	"net"
	"testing"

	"routemaster/internal/rdb"
)

// Move is the move of a partition's slot from its master to another one, key by key.
type Move struct {
	cluster   *Cluster
	partition *rdb.Partition
	slot      int
	from, to  *Node
	resumed   bool
}

// Move begins to move a partition to a node.
func (c *Cluster) Move(t testing.TB, p *rdb.Partition, to *Node) *Move {
	t.Helper()
	m := &Move{cluster: c, partition: p, slot: rdb.SlotOf(p.Namespace()), from: c.MasterOf(t, p), to: to}
	doOn(t, to.Server, "cluster", "setslot", m.slot, "importing", m.from.id)
	doOn(t, m.from.Server, "cluster", "setslot", m.slot, "migrating", to.id)
	return m
}

// MoveAtOnce moves a partition to a node in one step, which Valkey can from its version 9 on.
func (c *Cluster) MoveAtOnce(t testing.TB, p *rdb.Partition, to *Node) {
	t.Helper()
	slot := rdb.SlotOf(p.Namespace())
	doOn(t, c.MasterOf(t, p).Server, "cluster", "migrateslots", "slotsrange", slot, slot, "node", to.id)
	c.RequireMaster(t, p, to)
}

// Slot is the slot that moves.
func (m *Move) Slot() int { return m.slot }

// Keys moves keys, so many at most, and returns how many.
func (m *Move) Keys(t testing.TB, limit int) (moved int) {
	t.Helper()
	const atOnce = 100
	host, port, _ := net.SplitHostPort(m.to.Address)
	for moved < limit {
		keys := doOn(t, m.from.Server, "cluster", "getkeysinslot", m.slot, min(atOnce, limit-moved)).([]any)
		if len(keys) == 0 {
			return moved
		}
		migrate := []any{"migrate", host, port, "", 0, startTimeout.Milliseconds()}
		if m.resumed { // the killed source may not have told its replica which slots had gone
			migrate = append(migrate, "replace")
		}
		doOn(t, m.from.Server, append(append(migrate, "keys"), keys...)...)
		moved += len(keys)
	}
	return moved
}

// End moves all other keys, and makes the node the slot's.
func (m *Move) End(t testing.TB) {
	t.Helper()
	for m.Keys(t, 1000) > 0 {
	}
	for _, node := range append([]*Node{m.to, m.from}, m.cluster.Nodes...) {
		if isMaster(t, node) {
			doOn(t, node.Server, "cluster", "setslot", m.slot, "node", m.to.id)
		}
	}
	m.cluster.RequireMaster(t, m.partition, m.to)
}

// Resume continues a move whose source was killed in the middle, from the node that took its place.
// The target does not know of that: as long as it imports a slot, only its operator can set the
// slot's owner.
func (m *Move) Resume(t testing.TB, from *Node) {
	t.Helper()
	m.from, m.resumed = from, true
	if !isMaster(t, m.to) { // on a busy machine it may have been taken for failed meanwhile
		m.to = m.cluster.RequireSuccessor(t, m.to)
	}
	doOn(t, m.to.Server, "cluster", "setslot", m.slot, "node", from.id)
	doOn(t, m.to.Server, "cluster", "setslot", m.slot, "importing", from.id)
	doOn(t, m.from.Server, "cluster", "setslot", m.slot, "migrating", m.to.id)
}
