package delivery

import (
	"context"
	"log/slog"
	"sync"

	"routemaster/internal/bus"
	"routemaster/internal/signature"
	"routemaster/internal/store"
)

// plan is what a subscriber's options mean for its deliveries.
type plan struct {
	version string
	options bus.Options
	secrets []signature.Secret
	// sealed says why the secrets cannot be opened; nil if they can.
	sealed error
}

// noPlan is that of subscribers without options.
var noPlan = &plan{}

// maxPlans is how many plans are kept in memory. Beyond that all are forgotten, and read again as
// they are needed.
const maxPlans = 10_000

// plans keeps the plans of subscribers by their version, which changes with every change: so a plan
// that is kept is never out of date. It is safe for concurrent use.
type plans struct {
	read    func(context.Context, bus.Token) (store.OptionsRecord, error)
	keyring signature.Keyring
	log     *slog.Logger

	mu    sync.Mutex
	known map[bus.Token]*plan
}

// of returns the plan for a batch. It asks Redis once for each version. It fails with
// [bus.ErrUnavailable].
func (p *plans) of(ctx context.Context, batch *store.Delivery) (*plan, error) {
	if batch.Plan == nil {
		return noPlan, nil
	}
	p.mu.Lock()
	known := p.known[batch.Subscriber]
	p.mu.Unlock()
	if known != nil && known.version == batch.Plan.Version {
		return known, nil
	}
	record, err := p.read(ctx, batch.Subscriber)
	if err != nil {
		return nil, err
	}
	if record.Unreadable != nil {
		p.log.LogAttrs(ctx, slog.LevelError, "a subscriber's option cannot be read; its default holds",
			fieldsOf(batch, slog.Any("error", record.Unreadable))...)
	}
	// It may be newer than the batch's: then it holds for this delivery already. Without options and
	// secrets, the version stands for an empty plan.
	read := p.compile(record)
	if read.version == "" {
		read.version = batch.Plan.Version
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= maxPlans {
		p.known = map[bus.Token]*plan{}
	}
	p.known[batch.Subscriber] = read
	return read, nil
}

func (p *plans) compile(record store.OptionsRecord) *plan {
	compiled := &plan{version: record.Plan, options: record.Options}
	list, err := signature.ParseList(record.Secrets)
	if err == nil {
		compiled.secrets, err = list.Open(p.keyring)
	}
	compiled.sealed = err
	return compiled
}
