package move_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/move"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// TestAMoveUnderLoad has publishers who await each answer, and ask either bus in turn, as through a
// balancer of whose webs a part is on each; workers on both; and a move that is broken off in the
// middle and repeated. Each subscriber gets each event of each topic once, in order. The embedded
// engine would take most of the time; TestAMoveThatIsBrokenOff publishes at each step there too.
func TestAMoveUnderLoad(t *testing.T) {
	for _, of := range layouts {
		t.Run(fmt.Sprintf("%d to %d", of.from, of.to), func(t *testing.T) {
			moveUnderLoad(t, newSide(t, rdbtest.Real(t).Open(t), of.from), newSide(t, rdbtest.Real(t).Open(t), of.to))
		})
	}
}

// TestAMoveToACluster, and back.
func TestAMoveToACluster(t *testing.T) {
	c := rdbtest.NewCluster(t, 3, time.Minute)
	one, cluster := rdbtest.Real(t).Open(t), c.Open(t)
	from, to := newSide(t, one, 0), newSide(t, cluster, 12)
	moveUnderLoad(t, from, to)
	back := newSide(t, rdbtest.Real(t).Open(t), 0)
	moveUnderLoad(t, to, back)
}

const (
	loadTopics      = 4
	loadSubscribers = 5
	maxWaiting      = 60 // events of a topic
)

func loadTopic(i int) bus.TopicName { return bus.TopicName("topic_" + string(rune('a'+i))) }

func loadToken(i int) bus.Token { return bus.Token(fmt.Sprintf("reader%d--1", i)) }

// load is what publishers and workers do on both buses.
type load struct {
	t        *testing.T
	buses    [2]*side
	before   [loadTopics]int          // the number of the last event before
	last     [loadTopics]atomic.Int64 // the number of the last that was accepted
	accepted [2]atomic.Int64          // how many events each bus has accepted

	mu  sync.Mutex
	got map[bus.Token]map[bus.TopicName][]int
}

func moveUnderLoad(t *testing.T, from, to *side) {
	l := &load{t: t, buses: [2]*side{from, to}, got: map[bus.Token]map[bus.TopicName][]int{}}
	from.register(storetest.Publisher)
	for i := range loadSubscribers {
		topics := []bus.TopicName{loadTopic(i % loadTopics), loadTopic((i + 1) % loadTopics)}
		from.subscribe(loadToken(i), topics...)
		l.got[loadToken(i)] = map[bus.TopicName][]int{topics[0]: nil, topics[1]: nil}
	}
	topics, _, err := storetest.Topics(t.Context(), inspect.OfBus(from.Bus))
	require.NoError(t, err)
	for _, topic := range topics { // of the move before
		i := int(topic.Name[len(topic.Name)-1] - 'a')
		l.before[i] = int(topic.Events)
		l.last[i].Store(topic.Events)
	}

	ctx, stopAll := context.WithCancel(t.Context())
	var publishers, workers sync.WaitGroup
	publishing, stopPublishing := context.WithCancel(ctx)
	defer stopAll()
	for i := range loadTopics {
		publishers.Go(func() { l.publish(publishing, i) })
	}
	for _, s := range l.buses {
		workers.Go(func() { l.work(ctx, s) })
	}
	l.awaitAccepted(0, 50)
	for steps := 1; ; steps *= 2 { // the copy is broken off ever later
		if l.runUntil(steps, false) == nil {
			break
		}
	}
	for steps := 1; ; steps *= 2 { // and so is the switch
		err := l.runUntil(steps, true)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, context.Canceled)
	}
	l.awaitAccepted(1, 50)
	for {
		report, err := run(from, to)
		require.NoError(t, err)
		if report.Phase == move.Over {
			break
		}
	}
	l.awaitAccepted(1, 100)
	stopPublishing()
	publishers.Wait()
	require.Eventually(t, l.isAllReceived, time.Minute, 10*time.Millisecond)
	stopAll()
	workers.Wait()
	for token, topics := range l.got {
		for topic, numbers := range topics {
			i := int(topic[len(topic)-1] - 'a')
			require.Equal(t, storetest.UpTo(l.before[i]+1, int(l.last[i].Load())), numbers, "%s of %s", topic, token)
		}
	}
	requireSound(from, to)
}

// runUntil runs rtm move, and breaks it off after some steps.
func (l *load) runUntil(steps int, isSwitch bool) error {
	ctx, cancel := context.WithCancel(l.t.Context())
	defer cancel()
	o := move.Options{From: l.buses[0].partitions, To: l.buses[1].partitions, Switch: isSwitch}
	o.AtSteps(func(string) {
		if steps--; steps == 0 {
			cancel()
		}
	})
	_, err := move.Run(ctx, o)
	return err
}

// publish publishes events of a topic, one after the other, until the context is done.
func (l *load) publish(ctx context.Context, i int) {
	for turn := i; ctx.Err() == nil; turn++ {
		if l.waiting(i) > maxWaiting {
			time.Sleep(time.Millisecond) // until workers have delivered some
			continue
		}
		at := turn % 2
		next := int(l.last[i].Load()) + 1
		err := l.buses[at].publish(loadTopic(i), next, next)
		if errors.Is(err, bus.ErrMoving) || at == 1 && errors.Is(err, bus.ErrTokenUnknown) {
			continue // it is closed, or knows nobody yet
		}
		if err != nil {
			l.t.Errorf("publish: %v", err)
			return
		}
		l.last[i].Store(int64(next))
		l.accepted[at].Add(1)
	}
}

// awaitAccepted waits until a bus has accepted so many events.
func (l *load) awaitAccepted(at int, events int64) {
	l.t.Helper()
	require.Eventually(l.t, func() bool { return l.accepted[at].Load() >= events }, time.Minute, time.Millisecond)
}

// work delivers what is due on a bus until the context is done.
func (l *load) work(ctx context.Context, s *side) {
	for ctx.Err() == nil {
		s.deliverTo(l.t.Context(), func(events []got) {
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, one := range events {
				l.got[one.token][one.topic] = append(l.got[one.token][one.topic], one.number)
			}
		})
	}
}

// waiting is how many events of a topic have not reached the last of its subscribers.
func (l *load) waiting(i int) (most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, topics := range l.got {
		if numbers, is := topics[loadTopic(i)]; is {
			most = max(most, int(l.last[i].Load())-l.before[i]-len(numbers))
		}
	}
	return most
}

func (l *load) isAllReceived() bool {
	for i := range loadTopics {
		if l.waiting(i) > 0 {
			return false
		}
	}
	return true
}
