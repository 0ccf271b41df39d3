package rdb

import (
	"context"
	"fmt"
	"strconv"

	"routemaster/internal/bus"
)

// Partitions are all of a bus, by number. Each has one slot of a cluster, and different ones are on
// as many nodes as can be. On one Redis they are beside each other.
type Partitions []*Partition

// Number is the number of a partition, from 0 on.
type Number int

// String is the number as keys and jobs have it: two digits.
func (n Number) String() string { return fmt.Sprintf("%02d", int(n)) }

// IsNumber reports whether a text is the number of a partition, as keys and jobs have it.
func IsNumber(text string) bool {
	number, err := strconv.Atoi(text)
	return err == nil && number >= 0 && number < MaxPartitions && Number(number).String() == text
}

// MaxPartitions is how many a bus may have: two digits name one.
const MaxPartitions = 100

// Partitions opens all partitions of a bus, from 1 to [MaxPartitions]. Their number never changes,
// because it decides where all data is.
func (c *Client) Partitions(namespace string, count int) Partitions {
	all := make(Partitions, count)
	for i := range all {
		all[i] = c.NumberedPartition(namespace, Number(i), count)
	}
	return all
}

// NumberedPartition opens one of a bus's count partitions.
func (c *Client) NumberedPartition(namespace string, number Number, count int) *Partition {
	return c.open(namespace+"{"+SlotTag(int(number), count)+"}:", number, count)
}

// At is where a key is that is of no partition.
func (c *Client) At(key string) *Partition { return c.open(key, 0, 0) }

// Home is the partition in which the events of a topic are published.
func (all Partitions) Home(topic bus.TopicName) *Partition { return all.of(string(topic)) }

// Of returns the partition that has all data of a subscriber: its subscriptions and its batches.
func (all Partitions) Of(subscriber bus.Token) *Partition { return all.of(string(subscriber)) }

// OfJobs is the partition that has all of a job type: its jobs, their archive and its limits.
func (all Partitions) OfJobs(typeName string) *Partition { return all.of(typeName) }

// OfLabel is the partition that has all of a label, of the id machine/label.
func (all Partitions) OfLabel(id string) *Partition { return all.of(id) }

func (all Partitions) of(name string) *Partition { return all[PartitionOf(name, len(all))] }

// PartitionKey is the key, behind the namespace, of a partition that is to be used: a string, its
// number and how many there are, such as 7/12.
const PartitionKey = "partition"

// guard begins every script: it refuses to run in a partition that is held, or has come back
// without its keys. Scripts of a bus without partitions declare no key.
const guard = `if KEYS[1] and redis.call('EXISTS', KEYS[1] .. '` + PartitionKey + `') == 0 then
  return redis.error_reply('CLOSED the partition ' .. KEYS[1] .. ' is held, or not there')
end
`

// Release lets scripts run in the partition of a bus that has several. A new one is held.
func (p *Partition) Release(ctx context.Context) error {
	return Wrap("release", p.Set(ctx, p.namespace+PartitionKey, p.Name(), 0).Err())
}

// RequireOpen fails with [bus.ErrUnavailable] unless scripts may run in the partition: reads of one
// that is held, or has come back without its keys, may be incomplete. A bus without partitions is
// not asked.
func (p *Partition) RequireOpen(ctx context.Context) error {
	held, err := p.IsHeld(ctx)
	if held {
		return bus.ErrUnavailable
	}
	return err
}

// IsHeld reports whether the partition is held, or has come back without its keys. It fails with
// [bus.ErrUnavailable]. A bus without partitions is not asked.
func (p *Partition) IsHeld(ctx context.Context) (bool, error) {
	if !p.IsOneOfSeveral() {
		return false, nil
	}
	there, err := p.Exists(ctx, p.namespace+PartitionKey).Result()
	return err == nil && there == 0, Wrap("look at the partition", err)
}
