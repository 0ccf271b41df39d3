package inspect

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// BusSnapshot is what waits in the bus.
type BusSnapshot struct {
	// Snapshot has the sums of all partitions that could be read. Its memory is missing if there are
	// several: Nodes have theirs.
	Snapshot
	// Partitions are those of a bus that has several, by number, and Nodes where they are.
	Partitions []Partition
	Nodes      []Node
}

// Partition is the state of one of several.
type Partition struct {
	// IsUp is whether it could be read, and is not held.
	IsUp bool
	// Outbox is what is on its way there from all others that could be read.
	store.Outbox
}

// Node is a Redis server that has partitions.
type Node struct {
	Address string
	// IsUp is whether all partitions there could be read.
	IsUp bool
	// First is one of them.
	First rdb.Number
	// Memory is nil where Redis does not report it, or is away.
	Memory *rdb.Memory
}

// Snapshot reads what waits in all partitions, as [Inspector.Snapshot] does in one. It fails with
// [bus.ErrUnavailable] if none can be read.
func (b *Bus) Snapshot(ctx context.Context, until time.Time) (BusSnapshot, error) {
	if len(b.each) == 1 {
		one, err := b.each[0].Snapshot(ctx, until)
		return BusSnapshot{Snapshot: one}, err
	}
	snapshots, errs := make([]Snapshot, len(b.each)), make([]error, len(b.each))
	outboxes, held := make([][]store.Outbox, len(b.each)), make([]bool, len(b.each))
	var reading sync.WaitGroup
	for i := range b.each {
		reading.Go(func() {
			if snapshots[i], errs[i] = b.each[i].Snapshot(ctx, until); errs[i] == nil {
				outboxes[i], errs[i] = b.all.Relays()[i].Outboxes(ctx, len(b.each))
				held[i] = b.all.Partitions()[i].RequireOpen(ctx) != nil
			}
		})
	}
	reading.Wait()
	sum := BusSnapshot{Partitions: make([]Partition, len(b.each))}
	for i, one := range snapshots {
		sum.addNode(b.all.Partitions()[i], errs[i] == nil, one.Memory)
		if errs[i] == nil {
			sum.Partitions[i].IsUp = !held[i]
			sum.add(one, outboxes[i])
		}
	}
	slices.SortFunc(sum.Histories, func(a, b HistorySize) int { return strings.Compare(string(a.Topic), string(b.Topic)) })
	if !slices.Contains(errs, nil) {
		return sum, errs[0]
	}
	return sum, nil
}

func (s *BusSnapshot) add(one Snapshot, outboxes []store.Outbox) {
	s.Backlogs, s.Damaged = append(s.Backlogs, one.Backlogs...), append(s.Damaged, one.Damaged...)
	s.Histories = append(s.Histories, one.Histories...)
	s.Due += one.Due
	s.RunningReplays += one.RunningReplays
	if s.Jobs == nil {
		s.Jobs = map[bus.Queue]JobCounts{}
	}
	for queue, jobs := range one.Jobs {
		sum := s.Jobs[queue]
		s.Jobs[queue] = JobCounts{Instant: sum.Instant + jobs.Instant, Scheduled: sum.Scheduled + jobs.Scheduled}
	}
	for to, outbox := range outboxes {
		sum := &s.Partitions[to].Outbox
		sum.Events += outbox.Events
		if since := outbox.Since; sum.Since.IsZero() || !since.IsZero() && since.Before(sum.Since) {
			sum.Since = since
		}
	}
}

func (s *BusSnapshot) addNode(p *rdb.Partition, isUp bool, memory *rdb.Memory) {
	address := p.Node()
	at := slices.IndexFunc(s.Nodes, func(n Node) bool { return n.Address == address })
	if at < 0 {
		at = len(s.Nodes)
		s.Nodes = append(s.Nodes, Node{Address: address, IsUp: true, First: p.Number()})
	}
	node := &s.Nodes[at]
	node.IsUp = node.IsUp && isUp
	if node.Memory == nil {
		node.Memory = memory
	}
}
