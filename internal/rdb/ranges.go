package rdb

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// NodeRange is a range of slots, and the nodes that have them.
type NodeRange struct {
	First, Last int
	// Nodes are the master, then its replicas. There may be none.
	Nodes []Endpoint
}

// Endpoint is where a node says that clients reach one.
type Endpoint struct {
	// Address lacks the host if that is the one at which the node was reached that says so.
	Address string
	ID      string
}

// AskRanges asks a node, to which a client goes, which ranges of slots there are. The Redis
// library's own way fails where a node tells no hosts. CLUSTER SHARDS is not in Redis 6.2.
func AskRanges(ctx context.Context, client interface {
	Do(ctx context.Context, args ...any) *redis.Cmd
},
) ([]NodeRange, error) {
	reply, err := client.Do(ctx, "cluster", "slots").Slice()
	if err != nil && strings.Contains(err.Error(), "cluster support disabled") {
		return nil, fmt.Errorf("this is one Redis, whose URL is redis://…: %w", err)
	}
	if err != nil {
		return nil, err
	}
	ranges := make([]NodeRange, len(reply))
	for i, item := range reply {
		if !ranges[i].read(item) {
			return nil, fmt.Errorf("the node's answer to CLUSTER SLOTS cannot be read: %v", item)
		}
	}
	return ranges, nil
}

// read reads first slot, last slot, nodes. It is false if it cannot.
func (r *NodeRange) read(item any) bool {
	values, _ := item.([]any)
	if len(values) < 2 {
		return false
	}
	first, isFirst := values[0].(int64)
	last, isLast := values[1].(int64)
	r.First, r.Last = int(first), int(last)
	for _, value := range values[2:] {
		node, _ := value.([]any) // host, port, ID, and more since Redis 7
		if len(node) < 3 {
			return false
		}
		host, _ := node[0].(string) // or nil
		port, isPort := node[1].(int64)
		id, isID := node[2].(string)
		if !isPort || !isID {
			return false
		}
		r.Nodes = append(r.Nodes, Endpoint{net.JoinHostPort(host, strconv.FormatInt(port, 10)), id})
	}
	return isFirst && isLast
}
