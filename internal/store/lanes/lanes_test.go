package lanes_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/lanes"
)

func TestGenerationsAreRead(t *testing.T) {
	one := lanes.Parse([]any{nil, nil, nil})
	assert.Equal(t, lanes.Generations{{Lanes: 1}}, one)
	assert.Equal(t, "shop--1", one.Last().Lane("shop--1", 0))
	assert.Zero(t, one.Fence())

	all := lanes.Parse([]any{"/1/7 abcdefgh/64/5 broken", "ABCDEFGH", "3"})
	assert.Equal(t, lanes.Generations{{"", 1, 7}, {"abcdefgh", 64, 5}, {"ABCDEFGH", 3, 0}}, all)
	assert.EqualValues(t, 12, all.Fence())
	assert.Equal(t, "shop--1/ABCDEFGH/2", all.Last().Lane("shop--1", 2))
}

func TestPlacesAreRead(t *testing.T) {
	server := rdbtest.Embedded(t)
	p := server.Open(t).Partition("")
	all := lanes.Generations{{"abcdefgh", 64, 5}, {"ABCDEFGH", 3, 0}}
	inDefault := lanes.Place{Generation: lanes.Default[0]}
	var ids []bus.BatchID
	var want []lanes.Place
	for id, c := range map[bus.BatchID]struct {
		state []any
		place lanes.Place
	}{
		"first":     {[]any{"generation", "abcdefgh", "lane", "63"}, lanes.Place{Generation: all[0], Lane: 63}},
		"last":      {[]any{"generation", "ABCDEFGH", "lane", "2", "more", "1"}, lanes.Place{Generation: all[1], Lane: 2}},
		"forgotten": {[]any{"generation", "forgotten", "lane", "2"}, inDefault},
		"without":   {[]any{"more", "1"}, inDefault},
		"none":      {nil, inDefault},
	} {
		if c.state != nil {
			require.NoError(t, server.Raw.HSet(t.Context(), store.Keys{}.BatchState(id), c.state...).Err())
		}
		ids, want = append(ids, id), append(want, c.place)
	}
	require.NoError(t, server.Raw.Set(t.Context(), store.Keys{}.BatchState("damaged"), "x", 0).Err())
	ids, want = append(ids, "damaged"), append(want, inDefault)
	places, err := all.Places(t.Context(), p, ids)
	require.NoError(t, err)
	assert.Equal(t, want, places)
	places, err = lanes.Default.Places(t.Context(), p, ids[:1])
	require.NoError(t, err)
	assert.Equal(t, []lanes.Place{inDefault}, places)
}
