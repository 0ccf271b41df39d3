package doctor_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/doctor"
	"routemaster/internal/rdb"
	"routemaster/internal/store/storetest"
)

// dividedPatient is a bus with partitions, with something to break. Topic a, of partition 00, has
// subscribers there and in 01. There, events 1 to 3 have arrived; 4 and 5 were taken by a worker,
// w1, that carries them; 6 waits. Topic b, of 00 too, has the subscriber in 01, and no event yet.
type dividedPatient struct {
	*storetest.Partitions
	ctx          context.Context
	a, b         bus.TopicName
	local, other bus.Token
}

func newDividedPatient(t *testing.T, client *rdb.Client) *dividedPatient {
	p := &dividedPatient{Partitions: storetest.NewPartitions(t, client), ctx: t.Context()}
	p.a, p.b = p.TopicIn(0, 0), p.TopicIn(0, 1)
	p.local, p.other = p.AddSubscriber(0, 10, p.a), p.AddSubscriber(1, 10, p.a, p.b)
	p.PublishEvents(p.a, 1, 3)
	require.Equal(t, 1, p.Relay(0))
	p.MS += 20
	p.PublishEvents(p.a, 4, 5)
	require.NotNil(t, p.TakeRelay(0, "w1"))
	p.PublishEvents(p.a, 6, 6)
	p.RequireSound()
	return p
}

// key is a key of a partition, in full.
func (p *dividedPatient) key(number rdb.Number, key string) string {
	return p.All[number].Namespace() + key
}

// line is a finding as tests have it.
func line(f doctor.Finding) string {
	return fmt.Sprintf("%s %s: %s [%s]", f.Partition, f.Key, f.Problem, f.Remedy)
}

// examine returns the findings of an examination, a line each.
func (p *dividedPatient) examine(fix bool) []string {
	p.T.Helper()
	lines := []string{}
	stats, err := doctor.Of(p.Bus, 0).Examine(p.ctx, fix, func(f doctor.Finding) {
		require.Equal(p.T, fix && f.Remedy != "", f.Fixed, line(f))
		lines = append(lines, line(f))
	})
	require.NoError(p.T, err)
	require.Empty(p.T, stats.Unchecked)
	return lines
}

// requireDelivered requires that both subscribers get all events of topic a, once, and the events
// published now.
func (p *dividedPatient) requireDelivered() {
	p.T.Helper()
	p.PublishEvents(p.a, 7, 7)
	p.PublishEvents(p.b, 1, 1)
	_, err := p.Queues[0].Scrub(p.ctx, p.Now().Add(time.Hour), bus.QueueRelay)
	require.NoError(p.T, err)
	for range 3 {
		p.MS += 1000
		for number := range p.All {
			p.Relay(rdb.Number(number))
		}
	}
	assert.Equal(p.T, storetest.UpTo(1, 7), p.Received(0, p.local, p.a))
	assert.Equal(p.T, storetest.UpTo(1, 7), p.Received(1, p.other, p.a))
	assert.Equal(p.T, storetest.UpTo(1, 1), p.Received(1, p.other, p.b))
	p.RequireNothingLeft()
}
