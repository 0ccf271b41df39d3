package overview

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWhatCouldNotBeReadIsOfTheLastTime takes samples that lack a part.
func TestWhatCouldNotBeReadIsOfTheLastTime(t *testing.T) {
	value := func(n *float64) any {
		if n == nil {
			return nil
		}
		return *n
	}
	for _, test := range []struct {
		name    string
		unread  [3]string
		in, out any
		unsure  bool
	}{
		{"all is read", [3]string{}, 1.0, 1.0, false},
		{"topics", [3]string{2: PartTopics}, 1.0, 1.0, false},
		{"never", [3]string{PartTopics, PartTopics, PartTopics}, nil, 1.0, false},
		{"but now", [3]string{PartTopics, PartTopics}, nil, 1.0, false},
		{"subscribers", [3]string{2: PartSubscribers}, 1.0, 1.0, false},
		{"counters", [3]string{2: PartCounters}, 1.0, 1.0, true},
		{"counters, the time before", [3]string{1: PartCounters}, 1.0, 1.0, true},
	} {
		var s Sampler
		var f Figures
		for i, unread := range test.unread {
			n := int64(10 * i)
			sample := at(float64(10*i)).topic("widgets", n).subscriber(SubscriberState{Name: "shop", Sent: n, Counts: Counts{Dropped: 1000}})
			if unread != "" {
				sample.Unread = []Unread{{Part: unread, Why: "no answer"}}
			}
			switch unread {
			case PartTopics:
				sample.Topics = nil
			case PartSubscribers:
				sample.Subscribers = nil
			case PartCounters:
				sample.Subscribers[0].Counts = Counts{}
			}
			f = s.Add(sample)
		}
		assert.Equal(t, test.in, value(f.Published), test.name)
		assert.Equal(t, test.out, value(f.Delivered), test.name)
		if test.unsure {
			assert.Nil(t, f.Dropped, test.name)
		} else {
			assert.Equal(t, int64(0), *f.Dropped, test.name)
		}
	}
}

// TestEachPartIsKept reads everything first, then only the time.
func TestEachPartIsKept(t *testing.T) {
	full := at(0).topic("widgets", 5).subscriber(SubscriberState{
		Name: "shop", Topics: []string{"widgets"}, Queued: 2, OldestAt: after(-3), Failure: "503", Health: 7,
	})
	full.Memory, full.Due = &Memory{Used: 5}, 6
	full.Queues = []Queue{{Name: "main", Instant: 4}}
	full.JobTypes, full.Machines = []JobTypeState{{Name: "ship"}}, []MachineState{{Name: "trial"}}
	full.Clients = []Client{{Name: "shop", Kept: 3, Limit: new(int64(9)), Queued: 2}}
	full.Processes = []Process{{Kind: "worker", Threads: 8, Busy: 3, SeenAt: Time{start}}}
	bare := at(10)
	for part := range kept {
		bare.Unread = append(bare.Unread, Unread{Part: part, Why: "no answer"})
	}
	var s Sampler
	before := s.Add(full)
	f := s.Add(bare)
	require.Len(t, f.Unread, len(kept))
	for _, u := range f.Unread {
		assert.Equal(t, Time{start}, u.ReadAt, u.Part)
		assert.Contains(t, f.Warnings, "The "+u.Part+" could not be read: no answer.")
	}
	f.Unread, f.Warnings = before.Unread, before.Warnings
	f.At, f.Seconds = before.At, before.Seconds
	assert.Equal(t, before, f)

	f = (&Sampler{}).Add(bare)
	assert.Equal(t, Time{}, f.Unread[0].ReadAt, "it never was")
	assert.Empty(t, f.Subscribers)
}

// TestSubscriptionsAreKept stops reading the last results and the topics of subscribers, and the
// ages of their backlogs.
func TestSubscriptionsAreKept(t *testing.T) {
	shop := SubscriberState{Name: "shop", Topics: []string{"widgets"}, Queued: 2, OldestAt: after(-3), Failure: "503"}
	before := at(0).topic("widgets", 5).subscriber(shop)
	shop.Topics, shop.OldestAt, shop.Failure, shop.Queued = nil, time.Time{}, "", 9
	now := at(2).topic("widgets", 5).topic("new", 1).subscriber(shop).subscriber(SubscriberState{Name: "new"})
	now.Unread = []Unread{{Part: PartSubscriptions}, {Part: PartOldest}}
	f := last(before, now)
	assert.Equal(t, []any{int64(9), "503", known(3.0), []string{"widgets"}},
		[]any{f.Subscribers[0].Queued, f.Subscribers[0].Failure, f.Subscribers[0].OldestAge, f.Subscribers[0].Topics})
	assert.Equal(t, []int{1, 0}, []int{f.Topics[0].Subscribers, f.Topics[1].Subscribers})
	assert.Equal(t, known(3.0), f.OldestAge)
}
