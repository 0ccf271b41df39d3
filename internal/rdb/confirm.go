package rdb

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/bus"
)

// confirmTimeout bounds how long the replicas may take.
const confirmTimeout = time.Second

// touch is a script that leaves everything as it was, but is a write, which replicas get. A full
// Redis refuses SET, but not in a script that has written: DEL counts, whether or not it deletes.
const touch = `local key = ARGV[1] .. 'partition:touch'
redis.call('DEL', key)
redis.call('SET', key, '')
redis.call('DEL', key)
return 1`

// confirmation returns the commands that make replicas confirm all earlier writes of the master.
// WAIT alone does not: in newer engines it covers only the writes of its own connection, which are
// none if a script found its work done.
func (p *Partition) confirmation(replicas int) []command {
	return []command{p.evaluation("eval", touch), {"wait", replicas, confirmTimeout.Milliseconds()}}
}

// confirmed reads the replies of a [Partition.confirmation]: nil if enough replicas have confirmed.
func (p *Partition) confirmed(cmds []*redis.Cmd) error {
	replicas, err := confirming(cmds)
	if err != nil {
		return fmt.Errorf("%w: unconfirmed: %w", bus.ErrUnavailable, err)
	}
	if replicas < p.client.minReplicas {
		p.state.Observe(ErrUnconfirmed)
		return ErrUnconfirmed
	}
	return nil
}

// confirming is how many replicas have confirmed, by the replies to a [Partition.confirmation].
func confirming(cmds []*redis.Cmd) (replicas int, err error) {
	replicas, err = cmds[1].Int()
	return replicas, cmp.Or(cmds[0].Err(), err)
}

// isConfirmed reports whether enough replicas have confirmed all that the master has written
// before.
func (p *Partition) isConfirmed(ctx context.Context) bool {
	if p.client.minReplicas == 0 {
		return true
	}
	replicas, err := confirming(p.do(ctx, p.confirmation(p.client.minReplicas)))
	return err == nil && replicas >= p.client.minReplicas
}

// Hold makes the partition refuse all scripts, which then fail with [bus.ErrUnavailable], until it
// is released. It waits, for a second at most, until the given number of replicas have confirmed
// that, and returns how many have. It refuses scripts only.
func (p *Partition) Hold(ctx context.Context, replicas int) (confirmed int, err error) {
	cmds := p.do(ctx, append([]command{{"del", p.namespace + PartitionKey}}, p.confirmation(replicas)...))
	held, err := cmds[0].Int()
	if err == nil && held == 0 { // it was held already, so the touch is the only write
		err = cmds[1].Err()
	}
	if err == nil {
		confirmed, err = cmds[2].Int()
	}
	return confirmed, Wrap("hold", err)
}
