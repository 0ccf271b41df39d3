package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// clusterTimeout is how long a partition or a node may take to answer.
const clusterTimeout = 2 * time.Second

// PartitionState is the state of a partition.
type PartitionState string

// The states of a partition.
const (
	// Open: it is used.
	Open PartitionState = "open"
	// Held: it refuses scripts, because an operator holds it, or because it has come back without its
	// keys.
	Held PartitionState = "held"
	// Moving: its slot is on its way to another node, key by key. It may also be held.
	Moving PartitionState = "moving"
	// Mismatched: the name that it reports is not the one of its place.
	Mismatched PartitionState = "mismatched"
	// Away: its node does not answer, or refuses to.
	Away PartitionState = "away"
)

// ClusterStatus is the state of a bus on a cluster.
type ClusterStatus struct {
	Partitions []ClusterPartition
	// Nodes are the masters of the cluster. Those without partitions come last.
	Nodes []ClusterNode
}

// ClusterPartition is the state of one.
type ClusterPartition struct {
	Number rdb.Number
	Slot   int
	// Node is the address of the node that has it.
	Node  string
	State PartitionState
	// Reason says more about the state, unless that is [Open].
	Reason string
}

// NodeOf is the node that has a partition; nil if none has.
func (s ClusterStatus) NodeOf(number rdb.Number) *ClusterNode {
	for i := range s.Nodes {
		if slices.Contains(s.Nodes[i].Partitions, number) {
			return &s.Nodes[i]
		}
	}
	return nil
}

// Silent returns the nodes that have not reported their moves: there may be more than [Moving]
// says.
func (s ClusterStatus) Silent() (addresses []string) {
	for _, node := range s.Nodes {
		if node.id == "" {
			addresses = append(addresses, node.Address)
		}
	}
	return addresses
}

// AreOpen reports whether all partitions are open.
func (s ClusterStatus) AreOpen() bool {
	for _, p := range s.Partitions {
		if p.State != Open {
			return false
		}
	}
	return true
}

// ReadCluster reads the state of the bus's partitions and of the nodes. A partition or node that
// does not answer is in the status as such. URL is the cluster's.
func ReadCluster(ctx context.Context, url string, partitions rdb.Partitions) ClusterStatus {
	s := ClusterStatus{Partitions: make([]ClusterPartition, len(partitions))}
	var reading sync.WaitGroup
	for i, p := range partitions {
		reading.Go(func() { s.Partitions[i] = readPartition(ctx, p) })
	}
	reading.Wait()
	s.readNodes(ctx, url, partitions)
	s.mark()
	return s
}

// readPartition reads the state of a partition. Its namespace is a key that never exists: a node
// from which the slot is moving answers ASK to that, whatever has moved already.
func readPartition(ctx context.Context, p *rdb.Partition) ClusterPartition {
	read := ClusterPartition{Number: p.Number(), Slot: rdb.SlotOf(p.Namespace()), State: Open}
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	var name rdb.Reply[string]
	err := p.Pipelined(ctx, "read the partition", func(pipe rdb.Commands) {
		name = pipe.Get(ctx, p.Namespace()+rdb.PartitionKey)
		pipe.Exists(ctx, p.Namespace())
	})
	read.Node = p.Node()
	switch {
	case isAsk(err):
		read.State, read.Reason = Moving, "its node refers to another one"
	case err != nil:
		read.State, read.Reason = Away, reason(err)
	case errors.Is(name.Err(), rdb.Nil):
		read.State, read.Reason = Held, "it is held, or has come back without its keys"
	case name.Val() != p.Name():
		read.State, read.Reason = Mismatched, fmt.Sprintf("it says that it is %q, and is %s", name.Val(), p.Name())
	}
	return read
}

// isAsk reports whether a node has answered that a slot is on its way to another one.
func isAsk(err error) bool {
	return rdb.HasCode(err, "ASK") || rdb.HasCode(err, "TRYAGAIN")
}

// reason returns an error's text without the part about each call to Redis.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %v", clusterTimeout)
	}
	text := err.Error()
	if _, after, ok := strings.Cut(text, bus.ErrUnavailable.Error()+": "); ok {
		return after
	}
	return text
}

// mark notes which partitions are moving, as the nodes say.
func (s *ClusterStatus) mark() {
	for i := range s.Partitions {
		p := &s.Partitions[i]
		var says []string
		for _, node := range s.Nodes {
			if to, ok := node.migrating[p.Slot]; ok {
				says = append(says, node.Address+" is sending it to "+s.addressOf(to))
			}
			if from, ok := node.importing[p.Slot]; ok {
				says = append(says, node.Address+" is taking it from "+s.addressOf(from))
			}
		}
		if says == nil {
			continue
		}
		if p.State == Held {
			says = append([]string{"it is held"}, says...)
		}
		p.State, p.Reason = Moving, strings.Join(says, "; ")
	}
}

// addressOf is the address of the node of an ID, or the ID if that is none of the masters.
func (s *ClusterStatus) addressOf(id string) string {
	for _, node := range s.Nodes {
		if node.id == id {
			return node.Address
		}
	}
	return id
}
