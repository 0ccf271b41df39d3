package store_test

import (
	"testing"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

const topic = bus.TopicName("widgets")

type world = storetest.Partitions

func each(t *testing.T, test func(t *testing.T, w *world)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) { test(t, storetest.NewPartitions(t, server.Open(t))) })
}
