// Package consoletest helps to test the console: with figures that are made up, a console with its
// bus, and a browser that has no scripts.
package consoletest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"routemaster/internal/overview"
)

// At is the time of the figures that are made up.
var At = time.Date(2026, 11, 23, 3, 53, 10, 0, time.UTC)

// Live shows figures that are made up. It is for concurrent use.
type Live struct {
	mu      sync.Mutex
	figures overview.Figures
}

// NewLive shows figures.
func NewLive(f overview.Figures) *Live { return &Live{figures: f} }

// Change changes the figures, and their time by 2 s.
func (l *Live) Change(f func(*overview.Figures)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.figures.At = l.figures.At.Add(2 * time.Second)
	l.figures.Subscribers = slices.Clone(l.figures.Subscribers)
	l.figures.Topics = slices.Clone(l.figures.Topics)
	f(&l.figures)
}

// Figures are the figures.
func (l *Live) Figures(context.Context) overview.Figures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.figures
}

// Tracks returns waves with a gap. The queue and its age rise since 02:31.
func (l *Live) Tracks(context.Context) overview.Tracks { return Tracks }

// Tracks finds a made-up track of any subject.
func Tracks(of overview.Subject, over overview.Range) (overview.Track, bool) {
	type wave struct {
		of   overview.Subject
		over string
	}
	key := wave{of, over.Name}
	if known, ok := waves.Load(key); ok {
		return known.(overview.Track), true
	}
	track := waveOf(of, over)
	waves.Store(key, track)
	return track, true
}

// waves are the tracks that were made up, since some have thousands of sines.
var waves sync.Map

func waveOf(of overview.Subject, over overview.Range) overview.Track {
	seed := float64(len(of.Subscriber)*7 + len(of.Topic)*3 + 1)
	calm := of.Subscriber != "" && of.Subscriber != "search"
	values := map[overview.Figure][]float32{}
	for i := range over.Points {
		gap := i == over.Points/3 || i == over.Points/3+1
		for figure, value := range stepAt(float64(i)/float64(over.Points), seed, calm) {
			if gap {
				value = math.NaN()
			}
			values[figure] = append(values[figure], float32(value))
		}
	}
	return overview.TrackOf(At, over, values)
}

// stepAt returns the figures at a time between 0 and 1.
func stepAt(x, seed float64, calm bool) map[overview.Figure]float64 {
	wave := 1 + .12*math.Sin(9*x+seed) + .07*math.Sin(47*x+3*seed) + .04*math.Sin(131*x)
	in := 900 * wave
	step := map[overview.Figure]float64{
		overview.In: in, overview.Out: in * (1.05 + .05*math.Sin(23*x)), overview.Succeeded: 90 * wave, overview.Failed: 0,
		overview.Dropped: 0, overview.Queued: 60 * wave, overview.Oldest: .4 * wave, overview.Health: 100,
		overview.Took: 84 * 90 * wave, overview.Waited: 520 * 90 * wave,
		overview.Used: 61e6 + 34e6*x, overview.Busy: 0, overview.Dead: 0,
	}
	if !calm {
		step[overview.Dead] = math.Round(310 * x)
	}
	if !calm && x > .3 {
		step[overview.Queued], step[overview.Oldest], step[overview.Failed] = 130_000*(x-.3)/.7, 4920*(x-.3)/.7, 6
	}
	if !calm && x > .75 {
		step[overview.Dropped] = 120 * (x - .7) * wave
	}
	return step
}

func pointer[T any](value T) *T { return &value }

// Calm are the figures of a bus where nothing is wrong.
func Calm() overview.Figures {
	f := overview.Figures{
		At: At, Seconds: 10, Published: pointer(971.2), Delivered: pointer(1020.4), Queued: 52, Dropped: pointer[int64](0),
		OldestAge: pointer(.4), Due: pointer[int64](3),
		Queues:   []overview.Queue{{Name: "main", Instant: 2, Scheduled: 7}, {Name: "aux", Scheduled: 4}, {Name: "jobs", Instant: 12}},
		JobTypes: []overview.JobType{{Name: "invoice", Queued: 12, InProgress: 4, Concurrency: 8, OldestAge: pointer(1.5), Succeeded: pointer(3.1), Failed: pointer(0.0), Expired: pointer(0.0)}},
		Machines: []overview.Machine{{Name: "parcel", Labels: 12_004, Moves: pointer(14.2), Failed: pointer(0.0)}},
		Memory:   &overview.Memory{Used: 61_200_000, Max: 104_800_000, High: 94_800_000, Low: 84_800_000},
		Clients: []overview.Client{
			{Name: "billing", Kept: 24_300_000, Limit: pointer[int64](35_250_000), Queued: 544},
			{Name: "search", Limit: pointer[int64](23_100_000), Queued: 12_950_000},
		},
		Processes: []overview.Process{
			{Kind: "web", Host: "web-1", PID: 12, Version: "1.2.3", StartedAt: overview.Time{Time: At.Add(-30 * time.Hour)}, SeenAt: overview.Time{Time: At}},
			{Kind: "worker", Host: "worker-1", PID: 7, Version: "1.2.3", StartedAt: overview.Time{Time: At.Add(-29 * time.Hour)}, SeenAt: overview.Time{Time: At}, Threads: 32, Busy: 8},
			{Kind: "worker", Host: "worker-2", PID: 7, Version: "1.2.3", StartedAt: overview.Time{Time: At.Add(-2 * time.Hour)}, SeenAt: overview.Time{Time: At}, Threads: 32, Busy: 3},
		},
		Threads: 64, Busy: 11, Problems: []overview.Problem{}, Warnings: []string{},
	}
	f.Subscribers, f.Topics = subscribers(), topics()
	return f
}

func subscribers() (all []overview.Subscriber) {
	names := []string{"shop", "mailer", "search", "alice", "bob", "billing", "warehouse-and-returns-of-the-north", "fraud"}
	for i := range 31 {
		name := fmt.Sprintf("service-%02d", i)
		if i < len(names) {
			name = names[i]
		}
		s := overview.Subscriber{
			Name: name, Topics: []string{"widgets", "parcels"}, Queued: int64(i % 3 * 26), Batches: pointer[int64](1), OldestAge: pointer(.1 + float64(i)/20),
			State: overview.OK, Hold: overview.Ready, Rate: pointer(982 / float64(i+1)), Sent: 1_204_881, Failed: pointer(0.0),
			Dropped: pointer[int64](0), Dead: pointer[int64](0), Health: 100, SinceAttempt: pointer(.1 * float64(i+1)), Timeout: .5,
		}
		if i%5 == 4 {
			s.State, s.Queued, s.OldestAge, s.Rate = overview.Idle, 0, nil, pointer(0.0)
		}
		all = append(all, s)
	}
	return all
}

func topics() (all []overview.Topic) {
	names := []string{"widgets", "parcels", "orders", "invoices", "customers", "prices", "stock", "routes", "drivers", "claims", "labels", "reviews"}
	for i, name := range names {
		all = append(all, overview.Topic{
			Name: name, Publisher: "warehouse", State: overview.OK, Rate: pointer(933 / float64(i*i+1)), Events: int64(129_620 * (12 - i)), Subscribers: 1 + i%4,
		})
	}
	return all
}

// Trouble are the figures of a bus at three in the morning.
func Trouble() overview.Figures {
	f := Calm()
	f.Queued, f.OldestAge, f.Dropped = 129_672, pointer(4920.0), pointer[int64](1204)
	f.Memory.Used = 95_100_000
	for i := range f.Subscribers {
		switch s := &f.Subscribers[i]; s.Name {
		case "search":
			s.State, s.Queued, s.Batches, s.OldestAge, s.Rate, s.Failed = overview.Stalled, 129_620, pointer[int64](1297), pointer(4920.0), pointer(0.0), pointer(1.0)
			s.Health, s.Trend, s.SinceAttempt, s.Failure, s.Dropped = 0, -8, pointer(41.7), "503", pointer[int64](1204)
			s.Dead = pointer[int64](310)
			s.Hold, s.HoldUntil = overview.Throttled, overview.Time{Time: At.Add(18300 * time.Millisecond)}
		case "mailer":
			s.State, s.Rate, s.Failed, s.Trend = overview.Flaky, pointer(37.8), pointer(.11), 1
		case "billing":
			s.State, s.Queued, s.OldestAge, s.Hold = overview.PausedState, 4411, pointer(1860.0), overview.Paused
		case "fraud":
			s.State, s.Queued, s.OldestAge, s.Failed, s.Failure = overview.Behind, 8204, pointer(412.0), pointer(.004), ""
		}
	}
	f.Topics[3].State, f.Topics[3].Rate = overview.Quiet, pointer(0.0)
	f.Topics[9].State, f.Topics[9].Subscribers = overview.Unheard, 0
	f.Problems = []overview.Problem{
		{Rule: "events-dropped", Severity: overview.Critical, Title: "Events are being lost.",
			Detail: "1,204 were dropped in the last 5 min, all of search. Redis is above its high mark (95.1 of 94.8 MB). It goes on until the queue of search shrinks.",
			Since:  overview.Time{Time: At.Add(-41 * time.Minute)}, Subscriber: "search"},
		{Rule: "stalled", Severity: overview.Warning, Title: "search has taken nothing for 41 min.",
			Detail: "129,620 events wait, the oldest for 1h22m. It answers 503. It is tried once a minute, and drains at once when it answers.",
			Since:  overview.Time{Time: At.Add(-41 * time.Minute)}, Subscriber: "search"},
		{Rule: "behind", Severity: overview.Warning, Title: "fraud is behind.",
			Detail: "8,204 events wait, the oldest for 6m52s, and they become more.", Since: overview.Time{Time: At.Add(-12 * time.Minute)}, Subscriber: "fraud"},
		{Rule: "quiet", Severity: overview.Note, Title: "Nothing is published to invoices.",
			Detail: "It had 93 events/s over the last 6 h.", Since: overview.Time{Time: At.Add(-9 * time.Minute)}, Topic: "invoices"},
	}
	return f
}

// Many are the figures of a bus with trouble, so many subscribers, and half as many topics.
func Many(subscribers int) overview.Figures {
	f := Trouble()
	for i := len(f.Subscribers); i < subscribers; i++ {
		one := f.Subscribers[i%len(f.Subscribers)]
		one.Name, one.State = fmt.Sprintf("service-%03d", i), overview.OK
		f.Subscribers = append(f.Subscribers, one)
	}
	for i := len(f.Topics); i < subscribers/2; i++ {
		one := f.Topics[i%len(f.Topics)]
		one.Name, one.State = fmt.Sprintf("topic-%03d", i), overview.OK
		f.Topics = append(f.Topics, one)
	}
	return f
}

// Away returns the figures of a bus whose Redis does not answer.
func Away() overview.Figures {
	f := Trouble()
	f.Redis, f.RedisLostAt = "connection refused", overview.Time{Time: At.Add(66 * time.Second)}
	f.Problems = slices.Insert(f.Problems, 0, overview.Problem{
		Rule: "redis-away", Severity: overview.Critical, Title: "Redis does not answer.",
		Detail: "Publishers get 503. web and the workers go on by themselves when it is back.", Since: f.RedisLostAt,
	})
	return f
}

// Empty returns the figures of an unused bus.
func Empty() overview.Figures {
	f := Calm()
	f.Subscribers, f.Topics, f.JobTypes, f.Machines = []overview.Subscriber{}, []overview.Topic{}, []overview.JobType{}, []overview.Machine{}
	f.Clients = []overview.Client{}
	f.Published, f.Delivered, f.Queued, f.OldestAge = pointer(0.0), pointer(0.0), 0, nil
	return f
}
