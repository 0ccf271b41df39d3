package cluster

import (
	"context"
	"net"
	"slices"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/rdb/state"
)

// route leads to the node that has a slot.
type route struct {
	cluster *Cluster
	slot    int
}

// follow runs something on the node that has the slot. If that answers that the slot is elsewhere,
// it has not run, and runs there, but only once: while a slot moves back and forth, the caller had
// better wait. Nothing else runs twice.
func (r route) follow(ctx context.Context, run func(*Node) error) error {
	node, err := r.cluster.Master(ctx, r.slot)
	if err != nil {
		return err
	}
	err = run(node)
	if address, moved := redis.IsMovedError(err); moved {
		if node, err = r.cluster.Moved(r.slot, address, node.Address); err != nil {
			return err
		}
		err = run(node)
	}
	r.learn(err, node.Address)
	return err
}

// learn has the way found anew if a node has failed in a way that another might not.
func (r route) learn(err error, from string) {
	if address, moved := redis.IsMovedError(err); moved {
		_, _ = r.cluster.Moved(r.slot, address, from)
	} else if state.Classify(err) == state.Unavailable || redis.IsReadOnlyError(err) {
		r.cluster.Suspect()
	}
}

// Forward returns a hook of a client that has no address: it sends what is asked of the client to
// the node that has a slot.
func (c *Cluster) Forward(slot int) redis.Hook { return forwarding{route{c, slot}} }

// Dial returns a hook of a client that has no address: it connects the client to the node that has
// a slot.
func (c *Cluster) Dial(slot int) redis.Hook { return &dialling{route: route{c, slot}} }

// forwarding sends commands to the client of the node, and subscriptions to its address.
type forwarding struct{ route }

func (f forwarding) DialHook(next redis.DialHook) redis.DialHook {
	return (&dialling{route: f.route}).DialHook(next)
}

func (f forwarding) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return f.follow(ctx, func(node *Node) error { return node.client.Process(ctx, cmd) })
	}
}

func (f forwarding) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		send, left := (*redis.Client).Pipelined, cmds
		isTransaction := cmds[0].Name() == "multi"
		if isTransaction {
			send, left = (*redis.Client).TxPipelined, cmds[1:len(cmds)-1] // which adds MULTI and EXEC again
		}
		sent := false
		err := f.follow(ctx, func(node *Node) error {
			sent = true
			_, err := send(node.client, ctx, func(pipe redis.Pipeliner) error {
				for _, cmd := range left {
					_ = pipe.Process(ctx, cmd)
				}
				return nil
			})
			i := slices.IndexFunc(left, isMoved)
			if i < 0 {
				return err
			}
			err = left[i].Err()
			if !isTransaction { // of that nothing has run
				// What came before has run. What follows is for the other node, also what would run
				// anywhere: WAIT is about the commands before it.
				left = left[i:]
			}
			return err
		})
		if !sent {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

func isMoved(cmd redis.Cmder) bool {
	_, moved := redis.IsMovedError(cmd.Err())
	return moved
}

// dialling connects to wherever the node is at that moment. A connection stays where it leads when
// the slot moves; then the node says so, or closes it.
type dialling struct {
	route
	address atomic.Pointer[string] // the last
}

func (d *dialling) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		node, err := d.cluster.Master(ctx, d.slot)
		if err != nil {
			return nil, err
		}
		d.address.Store(&node.Address)
		conn, err := next(ctx, network, node.Address)
		d.learn(err, node.Address)
		return conn, err
	}
}

func (d *dialling) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if address := d.address.Load(); address != nil {
			d.learn(err, *address)
		}
		return err
	}
}

func (d *dialling) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next // it sends none
}
