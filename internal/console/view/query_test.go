package view

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/overview"
)

func TestQueries(t *testing.T) {
	for text, want := range map[string]Query{
		"":                              {Page: 1},
		"q=shop&sort=-queued&page=2":    {"shop", "-queued", 2},
		"page=0":                        {Page: 1},
		"page=-3":                       {Page: 1},
		"page=99999999999999999999":     {Page: 1},
		"page=x":                        {Page: 1},
		"q=a%ffb":                       {Filter: "ab", Page: 1},
		"q=" + strings.Repeat("é", 150): {Filter: strings.Repeat("é", 100), Page: 1},
		"other=1&q=state%3Afailing+a":   {Filter: "state:failing a", Page: 1},
	} {
		values, err := url.ParseQuery(text)
		require.NoError(t, err)
		got := ParseQuery(values)
		assert.Equal(t, want, got, text)
		again, err := url.ParseQuery(strings.TrimPrefix(got.String(), "?"))
		require.NoError(t, err)
		assert.Equal(t, got, ParseQuery(again), text)
	}
	assert.Equal(t, "?", Query{Page: 1}.String())
}

// bus is a few subscribers in all kinds of states.
func subscribers() []overview.Subscriber {
	return []overview.Subscriber{
		{Name: "idle", State: overview.Idle, Topics: []string{"parcels"}},
		{Name: "shop", State: overview.OK, Queued: 52, OldestAge: new(0.1), Rate: new(982.0), Topics: []string{"widgets"}},
		{Name: "search", State: overview.Stalled, Queued: 129_620, OldestAge: new(4920.0), Rate: new(0.0), Failed: new(1.0), Topics: []string{"parcels", "widgets"}},
		{Name: "mailer", State: overview.Flaky, Queued: 3, Rate: new(37.8), Failed: new(0.11), Topics: []string{"widgets"}},
		{Name: "Mail-in", State: overview.Stalled, Queued: 200_000},
		{Name: "gone", State: overview.Gone, Queued: 1},
	}
}

func names(rows []overview.Subscriber) (names []string) {
	for _, row := range rows {
		names = append(names, row.Name)
	}
	return names
}

func TestListsAreFilteredAndSorted(t *testing.T) {
	for _, c := range []struct{ filter, sort, want string }{
		{"", "", "gone Mail-in search mailer shop idle"},
		{"", "-state", "idle shop mailer search Mail-in gone"},
		{"", "name", "Mail-in gone idle mailer search shop"},
		{"", "-queued", "Mail-in search shop mailer gone idle"},
		{"", "queued", "idle gone mailer shop search Mail-in"},
		{"", "-oldest", "search shop Mail-in gone idle mailer"},
		{"", "-failed", "search mailer Mail-in gone idle shop"},
		{"", "history", "gone Mail-in search mailer shop idle"},
		{"", "nonsense", "gone Mail-in search mailer shop idle"},
		{"mail", "name", "Mail-in mailer"},
		{"MAIL", "name", "Mail-in mailer"},
		{"state:stalled", "name", "Mail-in search"},
		{TroubleFilter, "", "gone Mail-in search"},
		{"state:stalled mail", "", "Mail-in"},
		{"topic:widgets", "name", "mailer search shop"},
		{"topic:widget", "", ""},
		{"color:red", "", ""},
		{"state:", "", ""},
	} {
		l := Subscribers.Page(subscribers(), Query{Filter: c.filter, Sort: c.sort, Page: 1})
		assert.Equal(t, strings.Fields(c.want), append([]string{}, names(l.Rows)...), "%q by %q", c.filter, c.sort)
		assert.Equal(t, 6, l.All)
		assert.Len(t, l.Rows, l.Matching)
	}
}

func TestHeadsSort(t *testing.T) {
	head := func(sort, name string) Head {
		for _, h := range Subscribers.Page(subscribers(), Query{Filter: "a", Sort: sort, Page: 1}).Heads {
			if h.ID == "subscribers-"+name {
				return h
			}
		}
		t.Fatal("there is no column " + name)
		return Head{}
	}
	for _, c := range []struct{ sort, name, sorted, to string }{
		{"", "state", "ascending", "?q=a&sort=-state"},
		{"-state", "state", "descending", "?q=a"},
		{"", "queued", "", "?q=a&sort=-queued"},
		{"-queued", "queued", "descending", "?q=a&sort=queued"},
		{"queued", "queued", "ascending", "?q=a&sort=-queued"},
		{"queued", "state", "", "?q=a"},
		{"queued", "name", "", "?q=a&sort=name"},
		{"", "history", "", ""},
	} {
		h := head(c.sort, c.name)
		assert.Equal(t, [2]string{c.sorted, c.to}, [2]string{h.Sorted, h.To}, "%s of a list by %q", c.name, c.sort)
	}
}

func TestListsHavePages(t *testing.T) {
	many := make([]overview.Subscriber, 120)
	for i := range many {
		many[i].Name = fmt.Sprintf("s%03d", i)
	}
	for _, c := range []struct {
		of, page       int
		rows, from, to int
		previous, next string
	}{
		{0, 1, 0, 0, 0, "", ""},
		{0, 7, 0, 0, 0, "", ""},
		{50, 1, 50, 1, 50, "", ""},
		{51, 1, 50, 1, 50, "", "?page=2&sort=name"},
		{120, 2, 50, 51, 100, "?sort=name", "?page=3&sort=name"},
		{120, 3, 20, 101, 120, "?page=2&sort=name", ""},
		{120, 999, 20, 101, 120, "?page=2&sort=name", ""},
	} {
		l := Subscribers.Page(many[:c.of], Query{Sort: "name", Page: c.page})
		assert.Len(t, l.Rows, c.rows)
		assert.Equal(t, [2]int{c.from, c.to}, [2]int{l.From, l.To})
		assert.Equal(t, [2]string{c.previous, c.next}, [2]string{l.Previous, l.Next})
	}
}

func TestTopics(t *testing.T) {
	all := []overview.Topic{
		{Name: "widgets", State: overview.OK, Rate: new(933.0), Publisher: "Warehouse"},
		{Name: "parcels", State: overview.Unheard, Rate: new(3.0), Publisher: "post", Events: 9},
		{Name: "new", State: overview.Unclaimed},
	}
	for filter, want := range map[string]string{
		"": "new parcels widgets", "publisher:warehouse": "widgets", "state:nobody-listens": "parcels", "state:ok w": "widgets",
	} {
		var got []string
		for _, topic := range Topics.Page(all, Query{Filter: filter}).Rows {
			got = append(got, topic.Name)
		}
		assert.Equal(t, strings.Fields(want), got, filter)
	}
	assert.Equal(t, "widgets", Busiest(all, 1)[0].Name)
	assert.Len(t, Busiest(all, 6), 3)
	assert.Equal(t, "new", all[2].Name, "the elements stay as they are")
	assert.Equal(t, []string{"gone", "Mail-in"}, names(Worst(subscribers(), 2)))
	assert.Equal(t, 3, CountInTrouble(subscribers()))
}
