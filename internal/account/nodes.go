package account

import (
	"routemaster/internal/bus"
)

// Nodes are the accounts of a bus, by the Redis that has them: see [rdb.Partition.Node]. The
// accounts of partitions of one Redis are joined.
type Nodes map[string]Accounts

// Add adds the accounts of a partition. Partitions of one Redis hold older figures of each other
// than their own, so Add leaves these out.
func (n Nodes) Add(node string, more Accounts) {
	all, ok := n[node]
	if !ok {
		n[node] = more
		return
	}
	kept := make(map[bus.ClientName]int64, len(all.Kept)+len(more.Kept))
	for _, one := range []Accounts{all, more} {
		for client, bytes := range one.Kept {
			kept[client] += bytes
		}
	}
	all.Kept, all.Total = kept, all.Total+more.Total
	all.High, all.Elsewhere = max(all.High, more.High), nil
	n[node] = all
}

// Join adds the accounts of other partitions.
func (n Nodes) Join(more Nodes) {
	for node, accounts := range more {
		n.Add(node, accounts)
	}
}

// Kept returns how many bytes each client keeps on the bus.
func (n Nodes) Kept() map[bus.ClientName]int64 {
	sum := map[bus.ClientName]int64{}
	for _, accounts := range n {
		for client, bytes := range accounts.Kept {
			sum[client] += bytes
		}
	}
	return sum
}

// Limit returns how many bytes a client may keep on the bus: the sum of its limits. It is nil if
// the client may keep any number on one of the nodes, or none is known.
func (n Nodes) Limit(client bus.ClientName) *int64 {
	if len(n) == 0 {
		return nil
	}
	sum := new(int64)
	for _, accounts := range n {
		bytes, ok := accounts.Limit(client)
		if !ok {
			return nil
		}
		*sum += bytes
	}
	return sum
}

// Share returns how much of its limit a client keeps on the node where that is most: 1 is full. It
// is 0 if the client may keep any number on each.
func (n Nodes) Share(client bus.ClientName) (most float64) {
	for _, accounts := range n {
		if bytes, ok := accounts.Limit(client); ok {
			most = max(most, float64(accounts.Kept[client])/float64(max(bytes, 1)))
		}
	}
	return most
}
