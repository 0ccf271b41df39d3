package overview

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestWhatCouldNotBeReadIsNotKnown has samples of which the second or the third lacks a part.
func TestWhatCouldNotBeReadIsNotKnown(t *testing.T) {
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
		{"topics", [3]string{2: PartTopics}, nil, 1.0, false},
		{"counters", [3]string{2: PartCounters}, 1.0, 1.0, true},
		{"counters, the time before", [3]string{1: PartCounters}, 1.0, 1.0, true},
		{"all but that, at first", [3]string{0: PartTopics, 1: PartTopics}, nil, 1.0, false},
	} {
		var s Sampler
		var f Figures
		for i, unread := range test.unread {
			n := int64(10 * i)
			sample := Sample{
				At: epoch.Add(time.Duration(i) * 10 * time.Second), Unread: []string{unread},
				Topics:      []TopicState{{Name: "widgets", Events: n}},
				Subscribers: []SubscriberState{{Name: "shop", Sent: n, Counts: Counts{Dropped: 1000}}},
			}
			if unread == PartTopics {
				sample.Topics = nil
			}
			if unread == PartCounters {
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
