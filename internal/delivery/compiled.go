package delivery

import (
	"context"
	"log/slog"
	"sync"

	"routemaster/internal/bus"
	"routemaster/internal/signature"
	"routemaster/internal/store"
)

// compiledOptions are a subscriber's options, prepared for its deliveries.
type compiledOptions struct {
	version string
	options bus.Options
	secrets []signature.Secret
	// sealed says why the secrets cannot be opened; nil if they can.
	sealed error
}

// noOptions are the compiled options of subscribers without options.
var noOptions = &compiledOptions{}

// maxCompiled is how many subscribers' options are kept in memory. Beyond that all are forgotten,
// and read again when they are needed.
const maxCompiled = 10_000

// optionsCache keeps the compiled options of subscribers by their version, which changes with every
// change: so kept ones are never out of date. It is safe for concurrent use.
type optionsCache struct {
	read    func(context.Context, bus.Token) (store.OptionsRecord, error)
	keyring signature.Keyring
	log     *slog.Logger

	mu    sync.Mutex
	known map[bus.Token]*compiledOptions
}

// of returns the options for a batch. It asks Redis once for each version. It fails with
// [bus.ErrUnavailable].
func (p *optionsCache) of(ctx context.Context, batch *store.Delivery) (*compiledOptions, error) {
	if batch.Basis == nil {
		return noOptions, nil
	}
	p.mu.Lock()
	known := p.known[batch.Subscriber]
	p.mu.Unlock()
	if known != nil && known.version == batch.Basis.Version {
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
	// secrets, the version stands for empty ones.
	read := p.compile(record)
	if read.version == "" {
		read.version = batch.Basis.Version
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= maxCompiled {
		p.known = map[bus.Token]*compiledOptions{}
	}
	p.known[batch.Subscriber] = read
	return read, nil
}

func (p *optionsCache) compile(record store.OptionsRecord) *compiledOptions {
	compiled := &compiledOptions{version: record.Version, options: record.Options}
	list, err := signature.ParseList(record.Secrets)
	if err == nil {
		compiled.secrets, err = list.Open(p.keyring)
	}
	compiled.sealed = err
	return compiled
}
