package rdb

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Commands are Redis' commands: run at once, or gathered to be sent together. Their errors are
// Redis' own, for [Wrap].
type Commands interface{ redis.Cmdable }

// Reply is the result of a command, which is there once the command has run.
type Reply[T any] interface {
	Result() (T, error)
	Val() T
	Err() error
}

// AnyReply is a [Reply] of any type.
type AnyReply interface{ Err() error }

// Partition is one complete layout of keys, under one prefix. It is safe for concurrent use.
type Partition struct {
	Commands
	client    *Client
	db        library
	state     *connectionState
	namespace string
	// number is the number of the partition, and of how many there are; 0 if the bus has no
	// partitions.
	number Number
	of     int
}

// Partition is the only one of a bus without partitions: the keys that begin with a namespace,
// which may be empty. A cluster has no such bus: scripts that declare no key would run on a part of
// their keys while a slot moves.
func (c *Client) Partition(namespace string) *Partition {
	if c.isCluster {
		panic("rdb: on a cluster a bus has partitions")
	}
	return c.open(namespace, 0, 0)
}

func (c *Client) open(namespace string, number Number, of int) *Partition {
	p := &Partition{client: c, namespace: namespace, number: number, of: of}
	p.db, p.state = c.place.open(namespace, p.Name())
	p.Commands = p.db
	return p
}

// Name returns the number of the partition and how many there are, such as 7/12, which is also the
// value of its [PartitionKey]; empty if the bus has no partitions.
func (p *Partition) Name() string {
	if !p.IsOneOfSeveral() {
		return ""
	}
	return fmt.Sprintf("%d/%d", p.number, p.of)
}

// Namespace returns the prefix of all keys of the partition. It may be empty.
func (p *Partition) Namespace() string { return p.namespace }

// IsOneOfSeveral is whether the bus has partitions.
func (p *Partition) IsOneOfSeveral() bool { return p.of > 0 }

// Node is the Redis server of a cluster that has the partition, by its address.
func (p *Partition) Node() string { return p.client.place.where(p.namespace) }

// Number returns the number of the partition among all of the bus.
func (p *Partition) Number() Number { return p.number }

// Owns is whether a topic is published in the partition, or it has a subscriber, by token, or a job
// type: all are spread alike.
func (p *Partition) Owns(name string) bool { return int(p.number) == PartitionOf(name, p.of) }

// OwnName returns a name that the partition owns, and "" for others, which lists leave out.
func (p *Partition) OwnName(name string) string {
	if !p.Owns(name) {
		return ""
	}
	return name
}

// HasConfirmation is whether replicas must confirm changes.
func (p *Partition) HasConfirmation() bool { return p.client.minReplicas > 0 }

// NumberIfSeveral is the number of the partition as text, empty on a bus without partitions.
func (p *Partition) NumberIfSeveral() string {
	if !p.IsOneOfSeveral() {
		return ""
	}
	return p.Number().String()
}

// Client is the Redis that the partition is in.
func (p *Partition) Client() *Client { return p.client }

// SteadySince is since when no call has found the partition unavailable or held, at the earliest
// since it was opened.
func (p *Partition) SteadySince() time.Time { return p.state.SteadySince() }

// Pipelined runs commands in one round trip. It returns the error of the first failed command,
// wrapped with what failed.
func (p *Partition) Pipelined(ctx context.Context, what string, gather func(Commands)) error {
	_, err := p.db.Pipelined(ctx, gathering(gather))
	return Wrap(what, err)
}

// Reads is [Partition.Pipelined] for reads that do not depend on each other. It succeeds if Redis
// answered: the reply to one may be an error all the same, where its key is of another type.
func (p *Partition) Reads(ctx context.Context, what string, gather func(Commands)) error {
	if err := p.Pipelined(ctx, what, gather); !Answered(err) {
		return err
	}
	return nil
}

// Transaction is [Partition.Pipelined] for commands between which Redis runs no others.
func (p *Partition) Transaction(ctx context.Context, what string, gather func(Commands)) error {
	_, err := p.db.TxPipelined(ctx, gathering(gather))
	return Wrap(what, err)
}

// atHome runs a command without a key on the node that has the partition. A node runs such commands
// whatever it has: so one with a key goes with it, and is refused if the partition is not there.
func (p *Partition) atHome(ctx context.Context, gather func(Commands)) error {
	if !p.IsOneOfSeveral() {
		_, err := p.db.Pipelined(ctx, gathering(gather))
		return err
	}
	_, err := p.db.TxPipelined(ctx, gathering(func(pipe Commands) {
		pipe.Exists(ctx, p.namespace)
		gather(pipe)
	}))
	return err
}

// gathering is how the library gathers commands.
func gathering(gather func(Commands)) func(redis.Pipeliner) error {
	return func(pipe redis.Pipeliner) error {
		gather(pipe)
		return nil
	}
}
