package rdb

import (
	"context"
	"log/slog"
	"time"
)

// place is where partitions are: one Redis, or the nodes of a cluster.
type place interface {
	// open returns the client that reads and writes a partition, and its connection state.
	// Partition is its name in the log.
	open(namespace, partition string) (library, *connectionState)
	// connect makes a connection of its own to a partition, on which Redis takes longest at most.
	connect(namespace string, longest time.Duration, state *connectionState) library
	// where tells apart the Redis servers that a partition may be on.
	where(namespace string) string
	ping(ctx context.Context) error
	close() error
}

// single is one Redis, at an address or where sentinels say.
type single struct {
	source source
	db     library
	state  *connectionState
}

func newSingle(from source, log *slog.Logger) *single {
	s := &single{source: from, db: from.Connect(), state: newConnectionState(log)}
	s.db.AddHook(s.state)
	return s
}

func (s *single) open(_, _ string) (library, *connectionState) { return s.db, s.state }

func (s *single) connect(_ string, longest time.Duration, state *connectionState) library {
	db := s.source.ConnectWaiter(longest)
	db.AddHook(state)
	return db
}

func (s *single) where(string) string { return "here" }

func (s *single) ping(ctx context.Context) error { return s.db.Ping(ctx).Err() }

func (s *single) close() error { return s.db.Close() }
