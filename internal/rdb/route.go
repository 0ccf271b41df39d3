package rdb

import (
	"cmp"
	"context"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// route leads to the node that has a slot.
type route struct {
	cluster *clusterClient
	slot    int
}

// follow runs a call on the node that has the slot. If nothing of it has run, because the slot is
// elsewhere, run returns the address that the node gave, and follow runs it there, but only once:
// while a slot moves back and forth, the caller should wait. Nothing else runs twice.
func (r route) follow(ctx context.Context, run func(*clusterNode) (elsewhere string, err error)) error {
	node, err := r.cluster.Master(ctx, r.slot)
	if err != nil {
		return err
	}
	elsewhere, err := run(node)
	if elsewhere != "" {
		if node, err = r.cluster.Moved(r.slot, elsewhere, node.Address); err != nil {
			return err
		}
		_, err = run(node)
	}
	r.learn(err, node.Address)
	return err
}

// learn has the way found anew if a node has failed in a way that another might not.
func (r route) learn(err error, from string) {
	if address, moved := redis.IsMovedError(err); moved {
		_, _ = r.cluster.Moved(r.slot, address, from)
	} else if class := classify(err); class == unavailable || class == held || redis.IsReadOnlyError(err) {
		r.cluster.Suspect()
	}
}

// Forward returns a hook for a client that never connects: it sends the client's calls to the node
// that has a slot.
func (c *clusterClient) Forward(slot int) redis.Hook { return forwarding{route{c, slot}} }

// Dial returns a hook of a client that has no address: it connects the client to the node that has
// a slot.
func (c *clusterClient) Dial(slot int) redis.Hook { return &dialling{route: route{c, slot}} }

// forwarding sends commands to the client of the node.
type forwarding struct{ route }

func (f forwarding) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f forwarding) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return f.follow(ctx, func(node *clusterNode) (elsewhere string, err error) {
			err = node.client.Process(ctx, cmd)
			return movedTo(err), err
		})
	}
}

func (f forwarding) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		send, elsewhere := (*redis.Client).Pipelined, ofPipeline
		if cmds[0].Name() == "multi" {
			send, elsewhere = (*redis.Client).TxPipelined, ofTransaction
			cmds = cmds[1 : len(cmds)-1] // it adds MULTI and EXEC again
		}
		sent := false
		err := f.follow(ctx, func(node *clusterNode) (string, error) {
			sent = true
			for _, cmd := range cmds {
				cmd.SetErr(nil) // or a command without a reply would keep the error of the node before
			}
			_, err := send(node.client, ctx, func(pipe redis.Pipeliner) error {
				for _, cmd := range cmds {
					_ = pipe.Process(ctx, cmd)
				}
				return nil
			})
			return elsewhere(cmds), worst(cmds, err)
		})
		if !sent {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// movedTo is the address that an error names, if it is MOVED.
func movedTo(err error) string {
	address, _ := redis.IsMovedError(err)
	return address
}

// ofPipeline is where the slot of a pipeline has moved; empty if a part of it has run. Two commands
// have no key, and run anywhere: WAIT, which is to run again where the others do, and SCRIPT LOAD.
func ofPipeline(cmds []redis.Cmder) (address string) {
	for _, cmd := range cmds {
		if name := cmd.Name(); name == "wait" || name == "script" {
			continue
		}
		if address = movedTo(cmd.Err()); address == "" {
			return ""
		}
	}
	return address
}

// ofTransaction is where the slot of a transaction has moved: if one command is refused, none runs.
func ofTransaction(cmds []redis.Cmder) (address string) {
	for _, cmd := range cmds {
		address = cmp.Or(address, movedTo(cmd.Err()))
	}
	return address
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
	return next // it is sent when a connection begins, and no more
}
