package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/outbound"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// count is how many partitions there are.
const count = 3

// partitioned is machines in partitions, on one Redis.
type partitioned struct{ *machinestest.Fixture }

func newPartitioned(t testing.TB, partitions rdb.Partitions) *partitioned {
	client := outbound.New(outbound.Config{ConnectTimeout: time.Minute, Timeout: time.Minute}, time.Now)
	t.Cleanup(client.Close)
	for _, p := range partitions {
		require.NoError(t, p.Release(t.Context()))
	}
	return &partitioned{machinestest.Beside(t, partitions, client)}
}

// newApart is one whose partitions are on a Redis of their own each.
func newApart(t *testing.T) (*partitioned, []*rdbtest.Server) {
	stores, servers := storetest.Apart(t, count, func(o *rdb.Options) { o.URL = rdbtest.Hurried(o.URL) })
	var partitions rdb.Partitions
	for _, st := range stores {
		partitions = append(partitions, st.Partition())
	}
	return newPartitioned(t, partitions), servers
}

func eachPartitioned(t *testing.T, test func(t *testing.T, f *partitioned)) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newPartitioned(t, server.Open(t).Partitions(machinestest.Namespace, count))
		f.Server = server
		test(t, f)
		f.RequireSound(t)
		f.requireAgreed(t)
	})
}

// machineOf is a machine whose states are gates that open for metadata of their names.
func machineOf(states ...string) *machines.Definitions {
	var list []string
	for i, name := range states {
		next := ""
		if i < len(states)-1 {
			next = ", next: " + states[i+1]
		}
		list = append(list, fmt.Sprintf("{gate: %s, triggers: [{metadata: %[1]s}], exit_condition: metadata.%[1]s%s}", name, next))
	}
	return load("state_machines: {m: {states: [" + strings.Join(list, ", ") + "]}}")
}

func load(yaml string) *machines.Definitions {
	d, _, err := definition.Load(definition.File{Name: "machines.yaml", Content: []byte(yaml)})
	if err != nil {
		panic(err)
	}
	d.Source = []byte(yaml)
	return d
}

// apply replaces the definitions of the bus.
func (f *partitioned) apply(next *machines.Definitions, moves ...machines.StateMove) {
	f.T.Helper()
	_, err := f.Stores.Apply(f.T.Context(), next, moves, f.Now)
	require.NoError(f.T, err)
}

// names returns label names for all partitions, as many as `each` for every partition.
func (f *partitioned) names(each int) (names []machines.LabelName) {
	in := make([]int, len(f.Partitions))
	for i := 0; len(names) < each*len(in); i++ {
		name := machines.LabelName(fmt.Sprintf("label-%d", i))
		if number := f.Partitions.OfLabel("m/" + string(name)).Number(); in[number] < each {
			in[number]++
			names = append(names, name)
		}
	}
	return names
}

// requireAgreed requires that all partitions have the same definitions, and nothing is prepared.
func (f *partitioned) requireAgreed(t require.TestingT) {
	first, err := f.Stores.All()[0].Edition(f.T.Context())
	require.NoError(t, err)
	require.Empty(t, first.Preparation)
	for number, st := range f.Stores.All() {
		edition, err := st.Edition(f.T.Context())
		require.NoError(t, err)
		require.Equal(t, first, edition, "in %d", number)
	}
}
