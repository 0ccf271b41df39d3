package stores

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store/relays"
	"routemaster/internal/store/stats"
)

// Snapshot is what waits in the bus.
type Snapshot struct {
	// Snapshot has the sums of all partitions that could be read. Its memory is missing if there are
	// several: Nodes have theirs.
	stats.Snapshot
	// Partitions are those of a bus that has several, by number, and Nodes where they are.
	Partitions []Partition
	Nodes      []Node
}

// Partition is the state of one of several.
type Partition struct {
	// IsUp is whether it could be read, and is not held.
	IsUp bool
	// Outbox is what is on its way there from all others that could be read.
	relays.Outbox
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

// Snapshot reads what waits in all partitions, as [stats.Stats.Snapshot] does in one. It fails with
// [bus.ErrUnavailable] if none can be read.
func (s *Stores) Snapshot(ctx context.Context, until time.Time) (Snapshot, error) {
	if len(s.all) == 1 {
		one, err := s.stats[0].Snapshot(ctx, until)
		return Snapshot{Snapshot: one}, err
	}
	snapshots, errs := make([]stats.Snapshot, len(s.all)), make([]error, len(s.all))
	outboxes, held := make([][]relays.Outbox, len(s.all)), make([]bool, len(s.all))
	var reading sync.WaitGroup
	for i := range s.all {
		reading.Go(func() {
			if snapshots[i], errs[i] = s.stats[i].Snapshot(ctx, until); errs[i] == nil {
				outboxes[i], errs[i] = s.relays[i].Outboxes(ctx, len(s.all))
				held[i] = s.partitions[i].RequireOpen(ctx) != nil
			}
		})
	}
	reading.Wait()
	sum := Snapshot{Partitions: make([]Partition, len(s.all))}
	for i, one := range snapshots {
		sum.addNode(s.partitions[i], errs[i] == nil, one.Memory)
		if errs[i] == nil {
			sum.Partitions[i].IsUp = !held[i]
			sum.add(one, outboxes[i])
		}
	}
	slices.SortFunc(sum.Histories, func(a, b stats.HistorySize) int { return strings.Compare(string(a.Topic), string(b.Topic)) })
	if !slices.Contains(errs, nil) {
		return sum, errs[0]
	}
	return sum, nil
}

func (s *Snapshot) add(one stats.Snapshot, outboxes []relays.Outbox) {
	s.Backlogs, s.Damaged = append(s.Backlogs, one.Backlogs...), append(s.Damaged, one.Damaged...)
	s.Histories = append(s.Histories, one.Histories...)
	s.Due += one.Due
	s.RunningReplays += one.RunningReplays
	if s.Jobs == nil {
		s.Jobs = map[bus.Queue]stats.JobCounts{}
	}
	for queue, jobs := range one.Jobs {
		sum := s.Jobs[queue]
		s.Jobs[queue] = stats.JobCounts{Instant: sum.Instant + jobs.Instant, Scheduled: sum.Scheduled + jobs.Scheduled}
	}
	for to, outbox := range outboxes {
		sum := &s.Partitions[to].Outbox
		sum.Events += outbox.Events
		if since := outbox.Since; sum.Since.IsZero() || !since.IsZero() && since.Before(sum.Since) {
			sum.Since = since
		}
	}
}

func (s *Snapshot) addNode(p *rdb.Partition, isUp bool, memory *rdb.Memory) {
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
