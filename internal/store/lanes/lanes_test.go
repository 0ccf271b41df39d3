package lanes_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

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

	for _, c := range []struct {
		stored []any
		name   string
		lane   int
	}{
		{[]any{"abcdefgh", "63"}, "abcdefgh", 63},
		{[]any{"ABCDEFGH", "2", "more"}, "ABCDEFGH", 2},
		{[]any{"forgotten", "2"}, "", 0},
		{[]any{nil, nil}, "", 0},
		{nil, "", 0},
	} {
		generation, lane := all.Place(c.stored)
		assert.Equal(t, c.name, generation.Name, "%v", c.stored)
		assert.Equal(t, c.lane, lane, "%v", c.stored)
	}
}
