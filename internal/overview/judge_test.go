package overview

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"routemaster/internal/bus"
)

var judgedFrom = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// afterStart is so many seconds after the start.
func afterStart(seconds float64) time.Time {
	return judgedFrom.Add(time.Duration(seconds * float64(time.Second)))
}

// atStart is a sample with subscribers of so many seconds after the start.
func atStart(seconds float64, subscribers ...SubscriberState) Sample {
	return Sample{At: afterStart(seconds), Subscribers: subscribers}
}

// lastProblem adds samples, and returns the figures of the last.
func lastProblem(samples ...Sample) (f Figures) {
	var s Sampler
	for _, sample := range samples {
		f = s.Add(sample)
	}
	return f
}

// point holds the figures of a step; figures left out are 0, and a nil point is an unknown step.
type point map[Figure]float32

var gap point

// part is so many steps of the same point.
type part struct {
	steps int
	point point
}

// past is a set of made-up tracks, which end at the start of the test. Missing values are gaps.
type past map[Subject]map[string][]part

func (p past) tracks(of Subject, over Range) (Track, bool) {
	parts, ok := p[of][over.Name]
	var points []point
	for _, part := range parts {
		points = append(points, slices.Repeat([]point{part.point}, part.steps)...)
	}
	points = append(slices.Repeat([]point{gap}, max(over.Points-len(points), 0)), points...)
	values := map[Figure][]float32{}
	for figure := Out; figure <= Dead; figure++ {
		for _, p := range points {
			value := p[figure]
			if p == nil {
				value = float32(math.NaN())
			}
			values[figure] = append(values[figure], value)
		}
	}
	return TrackOf(judgedFrom, over, values), ok
}

// fast is a past in steps of 10 s.
func fast(of Subject, parts ...part) past { return past{of: {Fast.Name: parts}} }

// minutes are so many minutes of the same point in steps of 10 s.
func minutes(n int, p point) part { return part{6 * n, p} }

var shop = Subject{Subscriber: "shop"}

// found judges the last of some samples, and returns its problems.
func found(p past, samples ...Sample) []Problem {
	f := lastProblem(samples...)
	Judge(&f, samples[len(samples)-1], p.tracks)
	return f.Problems
}

// sole is the only problem.
func sole(t *testing.T, p past, samples ...Sample) Problem {
	t.Helper()
	problems := found(p, samples...)
	require.Len(t, problems, 1)
	return problems[0]
}

// agoTime is so many minutes before the start.
func agoTime(minutes float64) Time { return Time{Time: afterStart(-60 * minutes)} }

func TestAStalledSubscriber(t *testing.T) {
	s := atStart(0, SubscriberState{
		Name: "search", Queued: 129_620, OldestAt: afterStart(-82 * 60), Failure: "503", AttemptedAt: afterStart(-41.7), Throttled: afterStart(18.3),
	})
	stuck, works := point{Queued: 5}, point{Queued: 5, Succeeded: 1}
	p := past{Subject{Subscriber: "search"}: {
		Fast.Name: {minutes(15, stuck)}, Slow.Name: {{100, works}, {10, stuck}, {1, gap}, {9, stuck}},
	}}
	assert.Equal(t, Problem{
		Rule: "stalled", Severity: Warning, Subscriber: "search", Title: "search has taken nothing for 40 min.",
		Detail: "129,620 events wait, the oldest for 1 h 22 min. It answers 503. It was tried 42 s ago, and will be again in 18 s. " +
			"When it answers, all that waits follows at once.",
		Since: agoTime(40),
	}, sole(t, p, s))

	s.Processes = []Process{{Kind: "web", SeenAt: Time{Time: judgedFrom}}}
	p[Subject{}] = map[string][]part{Fast.Name: {minutes(10, stuck), minutes(1, gap)}}
	assert.Equal(t, Problem{
		Rule: "no-worker", Severity: Critical, Title: "No worker runs.",
		Detail: "Nothing is delivered. 129,620 events are queued. Publishes are stored while Redis has room, and are delivered as soon as a " +
			"worker runs.",
		Since: agoTime(1),
	}, sole(t, p, s), "which is why it is stalled")
}

func TestProblemsOfSubscribers(t *testing.T) {
	hour, soon := afterStart(-2*3600), afterStart(3600)
	down, young := point{Health: 0, Queued: 1, Failed: 1}, point{Health: 0, Queued: 1, Succeeded: 1}
	for _, test := range []struct {
		sub    SubscriberState
		past   []part
		rule   string
		detail string
		since  Time
	}{
		{SubscriberState{Failure: "410"}, nil, "gone", "It answers 410 Gone. The bus does not unsubscribe it, and tries it once a minute at most. " +
			"Correct its endpoint, or delete the subscriber.", Time{}},
		{SubscriberState{Queued: 1, Throttled: soon, Failure: "dns", Health: 50}, []part{minutes(1, young), minutes(3, down)}, "failing",
			"The name of its host has no address. 1 event waits. When it answers, all that waits follows at once.", agoTime(3)},
		{SubscriberState{Queued: 1, Throttled: soon}, []part{minutes(1, young), minutes(5, down)}, "no-health",
			"1 event waits. Each success adds to its health.", agoTime(6)},
		{SubscriberState{Queued: 7, Health: 50, OldestAt: afterStart(-600)},
			[]part{{60, point{Succeeded: 1, Oldest: 100, Health: 50}}, {30, point{Succeeded: 1, Oldest: 600, Health: 50}}}, "behind",
			"7 events wait, the oldest for 10 min. It acknowledges 0/s. Its oldest event grows older: it takes events more slowly than they are " +
				"published. A larger max or max_in_flight may help, or a faster endpoint.", agoTime(5)},
		{SubscriberState{Queued: 7, Health: 50, Blocked: true, OldestAt: hour, Failure: "422"}, []part{minutes(15, point{Succeeded: 1, Queued: 7})}, "blocked",
			"It asks for strict_order, so later events wait. 7 events wait, the oldest for 2 h. It answers 422. " +
				"The bus tries the batch until it is acknowledged; with dead_letters it gives up.", Time{Time: hour}},
		{SubscriberState{Queued: 7, Paused: soon, OldestAt: hour}, nil, "paused",
			"7 events wait, the oldest for 2 h. Deliveries go on in 1 h.", Time{Time: hour}},
		{SubscriberState{Health: 50, AttemptedAt: judgedFrom, Dead: 1204}, nil, "dead-letters",
			"1,204 events are in its dead letters, which are kept for a while. `rtm dead list --subscriber=shop` says why each could not be delivered. " +
				"Redeliver or discard them.", Time{}},
	} {
		test.sub.Name = "shop"
		p := sole(t, fast(shop, test.past...), atStart(-10, test.sub), atStart(0, test.sub))
		assert.Equal(t, test.rule, p.Rule)
		assert.Equal(t, test.detail, p.Detail)
		assert.Equal(t, test.since, p.Since, test.rule)
		assert.Equal(t, "shop", p.Subscriber)
	}
}

func TestProblemsOfTheBus(t *testing.T) {
	well := func() Sample {
		s := atStart(0)
		s.Memory = &Memory{Used: 10_000_000, Max: 110_000_000, High: 100_000_000, Low: 90_000_000}
		s.Processes = []Process{{Kind: "worker", SeenAt: Time{Time: judgedFrom}, Threads: 10}, {Kind: "web", SeenAt: Time{Time: judgedFrom}}}
		s.Queues = []Queue{{Name: "main"}}
		return s
	}
	fine := minutes(15, point{Busy: 0})
	assert.Empty(t, found(fast(Subject{}, fine), well()))
	for _, test := range []struct {
		rule, detail string
		since        Time
		past         []part
		change       func(s *Sample)
	}{
		{"redis-unavailable", "No answer in 500 ms. Publishers get 503, and nothing is delivered. Web and workers go on by themselves when Redis is back. " +
			"The other figures are of the last time it could be read.", Time{Time: judgedFrom}, nil, func(s *Sample) { *s = Sample{At: judgedFrom, Redis: "No answer in 500 ms"} }},
		{"no-worker", "Nothing is delivered. 0 events are queued. Publishes are stored while Redis has room, and are delivered as soon as a worker runs.",
			Time{}, nil, func(s *Sample) { s.Processes = s.Processes[1:] }},
		{"redis-full", "10.0 of 110.0 MB are used. It refuses to write (OOM). Publishers get 503. What is queued is still delivered. " +
			"Give it more memory, or see what else fills it.", Time{}, nil, func(s *Sample) { s.Refuses = "OOM" }},
		{"redis-refuses", "It is a replica. It answers READONLY. Publishers get 503, and nothing is delivered. " +
			"Web and workers go on by themselves when Redis takes writes again.", Time{}, nil, func(s *Sample) { s.Refuses, s.Processes = "READONLY", nil }},
		{"redis-refuses", "It answers ERR command is disabled. Publishers get 503, and nothing is delivered. " +
			"Web and workers go on by themselves when Redis runs scripts again.", Time{}, nil, func(s *Sample) {
			s.Refuses, s.RefusesScripts, s.Processes = "ERR command is disabled", true, nil
		}},
		{"no-worker", "Nothing is delivered. 0 events are queued. Publishes are stored while Redis has room, and are delivered as soon as a worker runs.",
			Time{}, nil, func(s *Sample) { s.Processes, s.Running = nil, settled+1 }},
		{"no-job-threads", "No job is sent to its service or brought up when it is due, and no deadline is kept. " +
			"All workers run with ROUTEMASTER_JOB_THREADS=0. Set it for one of them at least, and restart that.", Time{}, nil,
			func(s *Sample) {
				s.Processes[0].JobThreads, s.Queues = new(0), append(s.Queues, Queue{Name: "jobs", Scheduled: 1})
			}},
		{"no-machine-threads", "No label moves. All workers run with ROUTEMASTER_MACHINE_THREADS=0. Set it for one of them at least, and restart that.",
			Time{}, nil, func(s *Sample) {
				s.Processes[0].MachineThreads, s.Queues = new(0), append(s.Queues, Queue{Name: "machines", Instant: 3})
			}},
		{"events-dropped", "1,204 events dropped in the last 5 min. Redis is above its high mark (100.2 of 100.0 MB). The bus drops the oldest batches " +
			"of the client that has most queued, while Redis is above its high mark. Give it more memory, or see why queues grow.", agoTime(2), []part{minutes(1, point{Dropped: 200.6667}), minutes(1, point{})},
			func(s *Sample) { s.Memory.Used = 100_250_000; s.Memory.High = 100_000_000 }},
		{"events-unreadable", "12 events in the last 5 min. Something other than the bus has written to its keys. The workers' logs name the subscribers.",
			agoTime(2), []part{minutes(1, point{Unreadable: 2}), minutes(1, point{})}, nil},
		{"keys-damaged", "subscriber:shop and topic:widgets: not of the type that the bus writes, so what belongs there is missing here. " +
			"The bus leaves such keys alone. `rtm doctor` says what can be repaired.", Time{}, nil, func(s *Sample) { s.Damaged = []string{"subscriber:shop", "topic:widgets"} }},
		{"redis-nearly-full", "95.0 MB are used. If it goes on as in the last 15 min, it is full in about 6 min. Above 100.0 MB the oldest batches are dropped.",
			agoTime(10), []part{{30, point{Used: 84_000_000}}, {60, point{Used: 95_000_000}}}, func(s *Sample) { s.Memory.Used = 95_000_000 }},
		{"account-nearly-full", "Its jobs, job types and labels take 91 % of what they may. Beyond that they get 507, and its schedules skip their times. " +
			"Have it delete what it does not need (labels take a day to go), or raise its limit with ROUTEMASTER_CLIENT_MEMORY.", Time{}, nil, func(s *Sample) {
			s.Clients = []Client{{Name: "shop", Kept: 45_100_000, Limit: new(int64(90_000_000)), Share: 0.91}, {Name: "mail", Share: 0.9}, {Name: "root", Kept: 99_000_000}}
		}},
		{"workers-busy", "10 of 10 deliver, and 4 batches wait for one. Add workers or threads, or see which subscribers are slow.", agoTime(10),
			[]part{minutes(5, point{Busy: 1}), minutes(10, point{Busy: 1, Waiting: 3})}, func(s *Sample) { s.Processes[0].Busy, s.Queues[0].Instant = 10, 4 }},
		{"data-lost", "Redis came back with older data than it had. What was stored since is gone, acknowledged events and new clients among it. " +
			"It was restored from a backup, or a replica that lagged behind was promoted. Restore a backup if you have one. " +
			"Then acknowledge it: `rtm doctor --accept-loss`.", agoTime(30), nil,
			func(s *Sample) { s.Lost = []bus.DataLoss{{Kind: bus.DataOlder, FoundAt: agoTime(30).Time}} }},
		{"data-lost", "Redis came back with the data of another bus, or with one that was begun anew. What was stored before may be gone, " +
			"acknowledged events among it. If this is not the Redis that it should be, have ROUTEMASTER_REDIS_URL lead to that. " +
			"Restore a backup if you have one. Then acknowledge it: `rtm doctor --accept-loss`.", agoTime(30), nil,
			func(s *Sample) { s.Lost = []bus.DataLoss{{Kind: bus.DataOther, FoundAt: agoTime(30).Time}} }},
		{"data-lost", "Partitions 0 and 17: Redis came back without the data of the bus. What was there is gone, acknowledged events among it, " +
			"and clients get 503 or 404 for it. Partition 3: Redis came back with older data than it had. " +
			"What was stored since is gone, acknowledged events and new clients among it. " +
			"It was restored from a backup, or a replica that lagged behind was promoted. Restore a backup if you have one. " +
			"Then acknowledge it: `rtm doctor --accept-loss`.", agoTime(30), nil,
			func(s *Sample) {
				s.Lost = []bus.DataLoss{
					{Kind: bus.DataEmpty, FoundAt: agoTime(10).Time, Partition: "00"}, {Kind: bus.DataOlder, FoundAt: agoTime(30).Time, Partition: "03"},
					{Kind: bus.DataEmpty, FoundAt: agoTime(20).Time, Partition: "17"},
				}
			}},
		{"partition-away", "Redis does not answer there. Publishes to topics there get 503, and nothing is delivered from there. " +
			"`rtm cluster status` names the nodes. Start them, or have replicas take over: web and workers go on by themselves.", Time{}, nil,
			func(s *Sample) { s.Away = []int{4} }},
		{"partition-held", "Publishes to topics there get 503, and nothing is delivered from there. An operator holds it for a move, its slot is moving, " +
			"or its node came back without its keys: `rtm cluster status` says which. When no slot is moving, have it used again: " +
			"`rtm cluster release 4 7`. If keys are lost, then run `rtm doctor --fix`.", Time{}, nil, func(s *Sample) { s.Held = []int{4, 7} }},
		{"not-durable", "It keeps nothing. It evicts.", Time{}, nil, func(s *Sample) { s.Risks = []string{"It keeps nothing.", "It evicts."} }},
		{"worker-died", "4 threads did not report for 30 s, in the last 15 min. The bus has put their jobs back into the queue. " +
			"Events may have been delivered twice.", agoTime(10), []part{{1, point{Scrubbed: 4}}, {59, point{}}}, nil},
		{"clocks-apart", "Compared with the clock of Redis, a worker is 12 s ahead and a web is 5.1 s behind. Such a process goes by the clock of Redis, " +
			"and requeues no jobs of dead workers. Synchronize the clocks.", Time{}, nil, func(s *Sample) { s.Processes[0].Ahead, s.Processes[1].Ahead = 12_000, -5_100 }},
		{"credentials-refused", "8 a second get 401. A client has a token that was removed or is mistyped, or secrets are being guessed. " +
			`The log of web says where they come from: look for "refused credentials".`, Time{}, nil, func(s *Sample) { s.Processes[0].Refused, s.Processes[1].Refused = 0.5, 7.4 }},
		{"requests-throttled", "2 a second get 429: they have wrong credentials too often, or a client sends more at once than it may. " +
			"The metric routemaster_http_requests_total says to which routes.", Time{}, nil, func(s *Sample) { s.Processes[1].Throttled = 1.6 }},
		{"versions-differ", "1.2 (1 process) and 1.3 (1 process). Expected only during an update.", Time{}, nil,
			func(s *Sample) { s.Processes[0].Version, s.Processes[1].Version = "1.3", "1.2" }},
	} {
		s := well()
		if test.change != nil {
			test.change(&s)
		}
		var problems []string
		for _, p := range found(fast(Subject{}, test.past...), s) {
			problems = append(problems, p.Rule)
			if p.Rule == test.rule {
				assert.Equal(t, test.detail, p.Detail)
				assert.Equal(t, test.since, p.Since, test.rule)
			}
		}
		assert.Contains(t, problems, test.rule)
	}
}

// TestAHistoryThatHasEnded has a history that no worker has written for 10 min: the problems at its
// end were not in the last minutes.
func TestAHistoryThatHasEnded(t *testing.T) {
	s := Sample{At: afterStart(600), Processes: []Process{{Kind: "web", SeenAt: Time{Time: afterStart(600)}}}}
	p := sole(t, fast(Subject{}, minutes(15, point{Dropped: 5, Unreadable: 5})), s)
	assert.Equal(t, "no-worker", p.Rule)
	assert.Equal(t, Time{Time: judgedFrom}, p.Since, "when the history ended")
}

func TestWhatIsNoProblemYet(t *testing.T) {
	worker := Process{Kind: "worker", SeenAt: Time{Time: judgedFrom}, Threads: 10, Busy: 10}
	none := worker
	none.JobThreads, none.Busy = new(0), 0
	jobs := []Queue{{Name: "jobs", Instant: 9}}
	for name, s := range map[string]Sample{
		"one of two workers runs jobs":    {At: judgedFrom, Processes: []Process{none, {Kind: "worker", SeenAt: none.SeenAt, JobThreads: new(1)}}, Queues: jobs},
		"an older worker says nothing":    {At: judgedFrom, Processes: []Process{none, {Kind: "worker", SeenAt: none.SeenAt}}, Queues: jobs},
		"no job waits for threads":        {At: judgedFrom, Processes: []Process{none}, Queues: []Queue{{Name: "jobs"}, {Name: "main", Instant: 1}}},
		"a process that has just begun":   {At: judgedFrom, Running: settled},
		"processes that cannot be read":   {At: judgedFrom, Running: time.Hour, Unread: []Unread{{Part: PartProcesses}}},
		"workers that tell nothing":       {At: judgedFrom, Processes: []Process{{Kind: "web", SeenAt: Time{Time: judgedFrom}}}, Subscribers: []SubscriberState{{AttemptedAt: judgedFrom}}},
		"paused for a moment":             atStart(0, SubscriberState{Queued: 7, Paused: afterStart(9), OldestAt: afterStart(-60)}),
		"busy for a moment":               {At: judgedFrom, Processes: []Process{worker}, Queues: []Queue{{Name: "main", Instant: 9}}},
		"no memory is known":              {At: judgedFrom, Memory: &Memory{Used: 5}},
		"one wrong token a second":        {At: judgedFrom, Processes: []Process{{Kind: "web", SeenAt: Time{Time: judgedFrom}, Refused: 1, Throttled: 1}, worker}},
		"a clock that is nearly right":    {At: judgedFrom, Processes: []Process{{Kind: "worker", SeenAt: Time{Time: judgedFrom}, Ahead: -4_999}}},
		"a job type that does not wait":   {At: judgedFrom, JobTypes: []JobTypeState{{Name: "ship", Paused: true}}},
		"a machine that has moved things": {At: judgedFrom, Machines: []MachineState{{Name: "trial", Unpublished: 7}}},
	} {
		assert.Empty(t, found(fast(Subject{}, minutes(2, point{Busy: 1, Waiting: 9})), s), name)
	}
}

func TestProblemsOfServices(t *testing.T) {
	for _, test := range []struct {
		rule, title, detail string
		before, now         JobTypeState
	}{
		{"job-type-paused", "The job type ship is paused, and jobs wait.", "3 jobs are queued, the oldest for 2 h. It stays paused until somebody resumes it.",
			JobTypeState{}, JobTypeState{Paused: true, Queued: 3, OldestAt: afterStart(-2 * 3600)}},
		{"jobs-grow-old", "Jobs of ship wait for their turn.", "3 jobs are queued, the oldest for 6 min. 2 of at most 2 are in progress. " +
			"Jobs are enqueued faster than they are done, or their service does not report.",
			JobTypeState{Waiting: 1, OldestAt: afterStart(-360)}, JobTypeState{Queued: 3, Waiting: 3, InProgress: 2, Concurrency: 2, OldestAt: afterStart(-360)}},
		{"jobs-failed", "Jobs of ship have failed.", "2 jobs in the last minute. They are not tried again. The archived jobs say why. " +
			"Replay them once the cause is gone.", JobTypeState{Failed: 1}, JobTypeState{Failed: 3}},
		{"jobs-expired", "Jobs of ship have expired.", "1 job in the last minute. Their turn did not come in time.",
			JobTypeState{Expired: 1}, JobTypeState{Expired: 2}},
	} {
		test.before.Name, test.now.Name = "ship", "ship"
		p := sole(t, nil, Sample{At: afterStart(-60), JobTypes: []JobTypeState{test.before}}, Sample{At: judgedFrom, JobTypes: []JobTypeState{test.now}})
		assert.Equal(t, Problem{Rule: test.rule, Severity: Warning, Title: test.title, Detail: test.detail, JobType: "ship"}, p)
	}
	machine := func(seconds float64, m MachineState) Sample {
		return Sample{At: afterStart(seconds), Machines: []MachineState{m}}
	}
	p := sole(t, nil, machine(-60, MachineState{Name: "trial", Unpublished: 1}), machine(0, MachineState{Name: "trial", Unpublished: 2_000}))
	assert.Equal(t, []string{"2,000 moves of trial wait to be published.", "trial"}, []string{p.Title, p.Machine})
	assert.Empty(t, found(nil, machine(-60, MachineState{Name: "trial"}), machine(0, MachineState{Name: "trial", Unpublished: 2_000})), "they have just come")
	p = sole(t, nil, machine(0, MachineState{Name: "trial", Errored: 1}))
	assert.Equal(t, []string{"1 label of trial stopped with an error.", "trial"}, []string{p.Title, p.Machine})
}

func TestTheOrderOfProblems(t *testing.T) {
	s := atStart(0, SubscriberState{Name: "few", Queued: 1, OldestAt: afterStart(-1000)},
		SubscriberState{Name: "b", Queued: 9, OldestAt: afterStart(-1000), Health: 0, Dead: 1},
		SubscriberState{Name: "a", Queued: 9, OldestAt: afterStart(-1000)},
		SubscriberState{Name: "off", Failure: "410"})
	s.Damaged = []string{"x"}
	var order []string
	for _, p := range found(nil, s) {
		order = append(order, strings.TrimSpace(p.Rule+" "+p.Subscriber))
	}
	assert.Equal(t, []string{"keys-damaged", "gone off", "stalled a", "stalled b", "stalled few", "dead-letters b"}, order)

	severities := map[Severity]int{Critical: 0, Warning: 1, Note: 2}
	for i, r := range rules[1:] {
		assert.GreaterOrEqual(t, severities[r.Severity], severities[rules[i].Severity], r.Name)
	}
}

// TestRedisAwayKeepsStates shows that a bus whose Redis is away keeps its states.
func TestRedisAwayKeepsStates(t *testing.T) {
	s := atStart(0, SubscriberState{Name: "shop", Queued: 9, OldestAt: afterStart(-1000)})
	away := Sample{At: afterStart(2), Redis: "no answer"}
	f := lastProblem(s, away)
	Judge(&f, away, nil)
	assert.Equal(t, Stalled, f.Subscribers[0].State)
	assert.Equal(t, "redis-unavailable", f.Problems[0].Rule)
	assert.Equal(t, Time{Time: afterStart(2)}, f.Problems[0].Since)
}

func TestSpans(t *testing.T) {
	for want, seconds := range map[string]float64{
		"0.4 s": 0.4, "42 s": 41.7, "119 s": 119, "2 min": 120, "41 min": 2499, "1 h": 3600, "1 h 22 min": 4920, "3 days": 3.5 * 86400,
	} {
		assert.Equal(t, want, span(seconds))
	}
}

func TestTheConsolesPageListsTheRules(t *testing.T) {
	page, err := os.ReadFile("../../docs/operating.md")
	require.NoError(t, err)
	for _, r := range rules {
		assert.Regexp(t, "\\n\\|[^|]*`"+r.Name+"`[^|]*\\| "+string(r.Severity)+" \\|", string(page))
	}
}

// TestThresholdsAreThoseOfTheAlerts reads the example alerts.
func TestThresholdsAreThoseOfTheAlerts(t *testing.T) {
	text, err := os.ReadFile("../../examples/alerts.yaml")
	require.NoError(t, err)
	type alert struct {
		Alert, Expr, For string
		Labels           struct{ Severity Severity }
	}
	var file struct {
		Groups []struct{ Rules []alert }
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	alerts := map[string]alert{}
	for _, a := range file.Groups[0].Rules {
		alerts[a.Alert] = a
	}
	for _, r := range rules {
		a := alerts[r.Alert]
		if r.Alert == "" {
			continue
		}
		above := strconv.FormatFloat(r.Above, 'f', -1, 64)
		assert.Regexp(t, `(> |== )`+above+`( |$|\n)`, a.Expr, r.Name)
		assert.Equal(t, a.Labels.Severity, r.Severity, r.Name)
		if r.Over > 0 {
			over := strings.TrimSuffix(r.Over.String(), "0s")
			assert.Contains(t, a.Expr+"["+a.For+"]", "["+strings.TrimSuffix(over, "h0m"), r.Name)
		}
	}
	assert.Contains(t, alerts["RoutemasterEventsGrowOld"].Expr, "[10m])) > 0.5")
}
