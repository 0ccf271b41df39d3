package top

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/overview"
)

// names returns the names of a table's rows, as shown.
func (t *table) names() (names []string) {
	for _, r := range t.rows {
		names = append(names, r.name())
	}
	return names
}

func TestSortAndFilter(t *testing.T) {
	figures := overview.Figures{Subscribers: []overview.Subscriber{
		{Name: "b", Queued: 5, Health: 100}, {Name: "a", Queued: 5, Health: 3, OldestAge: known(2)}, {Name: "Shop", Queued: 9, Health: 40, OldestAge: known(1)},
		{Name: "shop[2]", Health: 100},
	}}
	for _, test := range []struct {
		sort, filter string
		reversed     bool
		want         []string
	}{
		{"", "", false, []string{"Shop", "a", "b", "shop[2]"}}, // most queued, then by name
		{"", "", true, []string{"shop[2]", "a", "b", "Shop"}},
		{"name", "", false, []string{"Shop", "a", "b", "shop[2]"}},
		{"name", "", true, []string{"shop[2]", "b", "a", "Shop"}},
		{"health", "", false, []string{"a", "Shop", "b", "shop[2]"}},    // the worst first
		{"oldest", "", false, []string{"a", "Shop", "b", "shop[2]"}},    // unknown ones last
		{"oldest", "", true, []string{"Shop", "a", "b", "shop[2]"}},     // always
		{"publisher", "", false, []string{"Shop", "a", "b", "shop[2]"}}, // a column of another table
		{"done", "", false, []string{"Shop", "a", "b", "shop[2]"}},
		{"", "SHOP", false, []string{"Shop", "shop[2]"}}, // whatever the case
		{"", "^a|b$", false, []string{"a", "b"}},         // a regular expression
		{"", "[2", false, []string{"shop[2]"}},           // no regular expression
		{"", "nobody", false, nil},
	} {
		require.NoError(t, Options{Interval: time.Second, Sort: test.sort}.Validate())
		tables := newTables(Options{Sort: test.sort})
		tables[0].reversed = test.reversed
		tables.fill(figures, compileFilter(test.filter))
		assert.Equal(t, test.want, tables[0].names(), "%+v", test)
	}
}

func TestOptionsAreValidated(t *testing.T) {
	assert.ErrorContains(t, Options{Interval: 100 * time.Millisecond}.Validate(), "an interval is from 500ms to 1h")
	assert.ErrorContains(t, Options{Interval: 2 * time.Hour}.Validate(), "an interval is from 500ms to 1h")
	assert.ErrorContains(t, Options{Interval: time.Second, Sort: "size"}.Validate(), `no column "size" to sort by; there are name, queued, oldest`)
}

func TestWhatIsToBeLookedAt(t *testing.T) {
	level := func(s overview.Subscriber, column string) level {
		for i, c := range newSubscriberTable().columns {
			if c.name == column {
				return subscriberRow(s)[i].level
			}
		}
		panic(column)
	}
	for age, want := range map[float64]int{0.5: int(usual), 3629: int(usual), 3631: int(warning), 3901: int(alarming)} {
		assert.Equal(t, want, int(level(overview.Subscriber{OldestAge: &age, Timeout: 3600}, "oldest")), "an event of %v s may be %d s old", age, 3600)
	}
	for health, want := range map[int]int{100: int(usual), 75: int(usual), 74: int(warning), 24: int(alarming), 0: int(alarming)} {
		assert.Equal(t, want, int(level(overview.Subscriber{Health: health}, "health")), health)
	}
	for n, want := range map[int64]int{0: int(idle), 1: int(warning)} {
		failed := float64(n)
		row := machineRow(overview.Machine{Errored: n, Failed: &failed, Unpublished: n})
		assert.Equal(t, []int{want, want}, []int{int(row[2].level), int(row[4].level)}, n)
	}
	for kept, want := range map[int64]int{0: int(idle), 900: int(usual), 901: int(warning)} {
		row := clientRow(overview.Client{Kept: kept, Limit: new(int64(5000)), Share: float64(kept) / 1000})
		assert.Equal(t, want, int(row[1].level), kept)
		row = clientRow(overview.Client{Kept: kept})
		assert.NotEqual(t, int(warning), int(row[1].level), "it may keep anything")
		assert.True(t, row[2].unknown)
	}
	for failed, want := range map[float64]int{0: int(idle), 0.1: int(warning), 0.5: int(alarming)} {
		assert.Equal(t, want, int(level(overview.Subscriber{Failed: &failed}, "failed")), failed)
	}
}
