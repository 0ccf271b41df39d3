package rdb_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/rdb"
)

// TestSlotsOfKeys has the examples of the specification, and replies of CLUSTER KEYSLOT.
func TestSlotsOfKeys(t *testing.T) {
	for key, want := range map[string]int{
		"123456789": 0x31C3, "": 0, "foo": 12182, "{user1000}.following": 3443, "{user1000}.followers": 3443,
		"foo{}{bar}": 8363, "foo{{bar}}zap": 4015, "{bar": 4015, "foo{bar}{zap}": 5061, "{bar}": 5061,
	} {
		assert.Equal(t, want, rdb.SlotOf(key), key)
	}
}

// TestTagsNeverChange pins the tags: stored data is found only by them.
func TestTagsNeverChange(t *testing.T) {
	for partitions, want := range map[int][]string{
		1: {"p00.0"},
		3: {"p00.2", "p01.3", "p02.3"},
		12: {
			"p00.1b", "p01.q", "p02.1h", "p03.13", "p04.1c", "p05.1",
			"p06.2k", "p07.a", "p08.2", "p09.a", "p10.r", "p11.d",
		},
	} {
		var tags []string
		for i := range partitions {
			tags = append(tags, rdb.SlotTag(i, partitions))
		}
		assert.Equal(t, want, tags)
	}
}

// TestPartitionsAreDividedEvenly divides the slots among nodes as redis-cli does.
func TestPartitionsAreDividedEvenly(t *testing.T) {
	for partitions := 1; partitions <= 48; partitions++ {
		var of []int
		for i := range partitions {
			of = append(of, rdb.SlotOf("{"+rdb.SlotTag(i, partitions)+"}:topics"))
		}
		for nodes := 1; nodes <= partitions; nodes++ {
			owned := make([]int, nodes)
			for _, slot := range of {
				owned[slot*nodes/rdb.SlotCount]++
			}
			unevenness := slices.Max(owned) - slices.Min(owned)
			if partitions%nodes == 0 {
				assert.Zero(t, unevenness, "%d partitions on %d nodes: %v", partitions, nodes, owned)
			}
			assert.LessOrEqual(t, unevenness, 2, "%d partitions on %d nodes: %v", partitions, nodes, owned)
		}
	}
}
