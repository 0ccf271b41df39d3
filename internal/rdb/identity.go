package rdb

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"routemaster/internal/bus"
)

// IdentityKey is the key, behind the namespace, of the mark by which processes know the bus again:
// a hash. See [Identity].
const IdentityKey = "bus"

// The fields of the mark.
const (
	identityID     = "id"      // of the bus, by chance
	identityTicks  = "ticks"   // how often a process has looked at it, which only grows
	identityBefore = "before"  // the id before the last loss
	identityLosses = "losses"  // that were noted, ever: some maybe more than once
	identityLost   = "lost"    // a [bus.DataLossKind], until an operator acknowledges it
	identityLostAt = "lost_at" // when that was found, ms since the Unix epoch
)

// IdentityInterval is how often a process looks at the mark. A loss of a shorter time may go
// unnoticed.
const IdentityInterval = 5 * time.Second

// Identity remembers, for one process, a partition's bus and how far it had come. So it notices
// when Redis comes back empty, with another bus or older than it was. A process that has just
// started remembers nothing, and notices only that a partition is empty. Notice must not be called
// concurrently.
type Identity struct {
	redis *Partition
	log   *slog.Logger
	now   func() time.Time

	// before is the id that the bus had before a loss which this process knows of.
	id, before, server string
	ticks              int64
	lost               atomic.Pointer[bus.DataLoss]
	unreadable         bool
}

// NewIdentity makes the memory of a partition.
func NewIdentity(p *Partition, log *slog.Logger, now func() time.Time) *Identity {
	return &Identity{redis: p, log: log, now: now}
}

// IsLost reports whether data was lost and no operator has acknowledged it, as of the last look.
func (i *Identity) IsLost() bool { return i.lost.Load() != nil }

// Run calls Notice until the context is done, every [IdentityInterval].
func (i *Identity) Run(ctx context.Context) {
	ticker := time.NewTicker(IdentityInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		_ = i.Notice(ctx) // it is logged
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// Notice looks at the mark, and makes one on a new bus. It logs a loss as an error, and records it
// in Redis for all processes. It fails with [bus.ErrUnavailable], or when the mark cannot be read,
// which it logs.
func (i *Identity) Notice(ctx context.Context) error {
	err := i.notice(ctx)
	if errors.Is(err, bus.ErrUnavailable) || ctx.Err() != nil {
		return err // the connection's state logs it
	}
	if err != nil && !i.unreadable {
		i.log.Error("the mark of the bus cannot be read: a loss of data goes unnoticed",
			append(i.fields(), slog.String("key", IdentityKey), slog.Any("error", err))...)
	}
	i.unreadable = err != nil
	return err
}

func (i *Identity) notice(ctx context.Context) error {
	server, err := i.redis.RunID(ctx)
	if err != nil {
		return err
	}
	ticks, mark, err := i.tick(ctx, 1)
	if err != nil {
		return err
	}
	kind, err := i.find(ctx, mark, ticks, server)
	if err != nil {
		return err
	}
	if kind != "" {
		if mark, err = i.noteLoss(ctx, kind, mark[identityID], ticks); err != nil {
			return err
		}
		ticks = max(ticks, i.ticks+1)
	} else if mark[identityID] == "" {
		if mark, err = i.begin(ctx); err != nil {
			return err
		}
	}
	if i.redis.isConfirmed(ctx) { // a failover may undo an unconfirmed look, which is no loss
		i.id, i.before, i.ticks, i.server = mark[identityID], mark[identityBefore], ticks, server
	}
	i.report(i.redis.lossOf(mark))
	return nil
}

// tick has the mark count looks, and returns how many there were and the fields.
func (i *Identity) tick(ctx context.Context, by int64) (int64, map[string]string, error) {
	var ticks Reply[int64]
	var mark Reply[map[string]string]
	err := i.redis.Pipelined(ctx, "look at the mark of the bus", func(pipe Commands) {
		ticks = pipe.HIncrBy(ctx, i.redis.namespace+IdentityKey, identityTicks, by)
		mark = pipe.HGetAll(ctx, i.redis.namespace+IdentityKey)
	})
	return ticks.Val(), mark.Val(), err
}

// find is compare, but needs no memory where a partition has neither the mark nor its key: it was
// made with that, and one that is held has the mark.
func (i *Identity) find(ctx context.Context, mark map[string]string, ticks int64, server string) (bus.DataLossKind, error) {
	kind := i.compare(mark, ticks, server)
	if kind != "" || mark[identityID] != "" {
		return kind, nil
	}
	held, err := i.redis.IsHeld(ctx)
	if held {
		kind = bus.DataEmpty
	}
	return kind, err
}

// compare returns the kind of data loss that a mark, its number of looks and the server's run id
// show; empty if unknown. A recorded loss changes the id, which is not another loss.
func (i *Identity) compare(mark map[string]string, ticks int64, server string) bus.DataLossKind {
	id := mark[identityID]
	switch {
	case i.id == "" || id != "" && i.id == mark[identityBefore]:
		return ""
	case id == "" && server != "" && server == i.server:
		return bus.DataDeleted
	case id == "":
		return bus.DataEmpty
	case id != i.id && id == i.before: // a backup from before a loss was restored
		return bus.DataOlder
	case id != i.id:
		return bus.DataOther
	case ticks <= i.ticks:
		return bus.DataOlder
	}
	return ""
}

// noteLoss records a loss unless one is recorded. It makes the mark, with an id that may be empty,
// go on from the remembered one, and returns it.
func (i *Identity) noteLoss(ctx context.Context, kind bus.DataLossKind, id string, ticks int64) (map[string]string, error) {
	key := i.redis.namespace + IdentityKey
	err := i.redis.Pipelined(ctx, "note a loss", func(pipe Commands) {
		pipe.HSetNX(ctx, key, identityID, rand.Text())
		pipe.HSetNX(ctx, key, identityLostAt, i.now().UnixMilli())
		pipe.HSetNX(ctx, key, identityLost, string(kind))
		pipe.HIncrBy(ctx, key, identityLosses, 1)
		if id != i.id && i.id != "" {
			pipe.HSet(ctx, key, identityBefore, i.id)
		}
	})
	if err != nil {
		return nil, err
	}
	_, mark, err := i.tick(ctx, max(i.ticks-ticks, 0)+1)
	return mark, err
}

// begin marks a new bus, unless another process does, and returns the mark.
func (i *Identity) begin(ctx context.Context) (map[string]string, error) {
	key := i.redis.namespace + IdentityKey
	if err := i.redis.HSetNX(ctx, key, identityID, rand.Text()).Err(); err != nil {
		return nil, Wrap("mark the bus", err)
	}
	mark, err := i.redis.HGetAll(ctx, key).Result()
	return mark, Wrap("mark the bus", err)
}

// report logs each loss of data once, and that an operator has acknowledged the last.
func (i *Identity) report(loss *bus.DataLoss) {
	was := i.lost.Swap(loss)
	if was == loss || was != nil && loss != nil && *was == *loss {
		return
	}
	fields := i.fields()
	if loss == nil {
		i.log.Info("the loss of data in redis was acknowledged", fields...)
		return
	}
	fields = append(fields, slog.String("loss", string(loss.Kind)), slog.Time("found_at", loss.FoundAt))
	i.log.Error(loss.Kind.String()+" Restore a backup, or acknowledge the loss: `rtm doctor --accept-loss`", fields...)
}

// fields say in a line of the log which partition it is about.
func (i *Identity) fields() (fields []any) {
	if number := i.redis.NumberIfSeveral(); number != "" {
		fields = append(fields, slog.String("partition", number))
	}
	return fields
}

// IsUsed reports whether a process has looked at the partition: whatever else writes to it, such as
// a copy, does not count looks. It fails with [bus.ErrUnavailable].
func (p *Partition) IsUsed(ctx context.Context) (bool, error) {
	used, err := p.HExists(ctx, p.namespace+IdentityKey, identityTicks).Result()
	return used, Wrap("look for processes", err)
}

// CopyIdentity copies the id and the losses of this partition, which give its numbers their
// meaning, to another one that no process has used. It fails with [bus.ErrUnavailable].
func (p *Partition) CopyIdentity(ctx context.Context, to *Partition) error {
	mark, err := p.HGetAll(ctx, p.namespace+IdentityKey).Result()
	if err != nil || mark[identityID] == "" {
		return Wrap("read the mark of the bus", err)
	}
	fields := []any{identityID, mark[identityID]}
	if losses := mark[identityLosses]; losses != "" {
		fields = append(fields, identityLosses, losses)
	}
	return Wrap("mark the bus", to.HSet(ctx, to.namespace+IdentityKey, fields...).Err())
}

// lossOf is the loss that a mark has noted, nil if none.
func (p *Partition) lossOf(mark map[string]string) *bus.DataLoss {
	if mark[identityLost] == "" {
		return nil
	}
	return &bus.DataLoss{
		Kind: bus.DataLossKind(mark[identityLost]), FoundAt: time.UnixMilli(Integer(mark[identityLostAt], 0)),
		Partition: p.NumberIfSeveral(),
	}
}

// AskLoss asks, in a pipeline, whether data was lost; [Partition.ParseLoss] reads the reply.
func (p *Partition) AskLoss(ctx context.Context, pipe Commands) Reply[map[string]string] {
	return pipe.HGetAll(ctx, p.namespace+IdentityKey)
}

// ParseLoss is the loss of data that is not acknowledged; nil if there is none.
func (p *Partition) ParseLoss(reply Reply[map[string]string]) *bus.DataLoss {
	return p.lossOf(reply.Val())
}

// Loss returns the data loss that is not acknowledged, nil if there is none. An invalid mark counts
// as none. It fails with [bus.ErrUnavailable].
func (p *Partition) Loss(ctx context.Context) (*bus.DataLoss, error) {
	mark := p.AskLoss(ctx, p.Commands)
	if IsWrongType(mark.Err()) {
		return nil, nil
	}
	return p.ParseLoss(mark), Wrap("read a loss", mark.Err())
}

// AcceptLoss forgets a loss of data, and returns it; nil if there was none. It fails with
// [bus.ErrUnavailable].
func (p *Partition) AcceptLoss(ctx context.Context) (*bus.DataLoss, error) {
	loss, err := p.Loss(ctx)
	if err != nil || loss == nil {
		return nil, err
	}
	return loss, Wrap("accept a loss", p.HDel(ctx, p.namespace+IdentityKey, identityLost, identityLostAt).Err())
}
