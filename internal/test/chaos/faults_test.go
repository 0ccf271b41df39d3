package chaos

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// faultKind is something that goes wrong.
type faultKind string

// Of processes.
const (
	killed faultKind = "killed" // SIGKILL, and started again
	frozen faultKind = "frozen" // takes connections, and does not answer
)

// Of the connections between two parties.
const (
	slow          faultKind = "slow"           // latency and jitter, both ways
	sliced        faultKind = "sliced"         // a few bytes at a time
	reset         faultKind = "reset"          // instead of an answer
	cut           faultKind = "cut"            // a partition: connections dropped, and refused
	requestsLost  faultKind = "requests lost"  // half a partition
	responsesLost faultKind = "responses lost" // the other half
)

// Faults of the host.
const (
	stalled faultKind = "stalled"
	tooLate faultKind = "too late" // a response
)

// fault disturbs one process or proxy for a while.
type fault struct {
	stream      string
	kind        faultKind
	victim      string
	at, lasting time.Duration // since the load began
	// began and ended are when it really did; died is when a killed process was dead.
	began, died, ended time.Time
	// refusing is for how long after that a node of a cluster refuses everything.
	refusing time.Duration
	// concerns names the subscribers and services that another master than before has now.
	concerns []string
}

// stream is one stream of faults. They come one after another, so that no victim has two at a time.
type stream struct {
	name    string
	kinds   []faultKind
	victims []string
	// pause is the time between two faults, lasting that which one takes.
	pause, lasting span
}

// span bounds a time in ms.
type span struct{ shortest, longest int }

func (s span) draw(random *rand.Rand) time.Duration {
	return time.Duration(s.shortest+random.IntN(s.longest-s.shortest)) * time.Millisecond
}

var (
	webs        = []string{"web 0", "web 1"}
	workers     = []string{"worker 0", "worker 1"}
	proxyFaults = []faultKind{slow, sliced, reset, cut, requestsLost, responsesLost}
)

// streams are the streams of faults that exist wherever the bus has its data.
var streams = []stream{
	{"web", []faultKind{killed}, webs, span{1000, 4000}, span{0, 500}},
	{"worker", []faultKind{killed}, workers, span{2000, 6000}, span{0, 500}},
	{"publishers > web", proxyFaults, []string{proxyName("publishers", webs[0]), proxyName("publishers", webs[1])}, span{50, 600}, span{100, 1200}},
	{"worker > subscriber", proxyFaults, subscriberProxies(), span{50, 600}, span{100, 1500}},
}

func subscriberProxies() (names []string) {
	for _, s := range subscribers {
		names = append(names, proxyName("workers", s.name))
	}
	return append(names, proxyName("workers", jobProxy), proxyName("workers", labelProxy))
}

// plan draws the faults of a run. It depends on its arguments only.
func plan(seed uint64, load time.Duration, streams []stream) (all []*fault) {
	for number, stream := range streams {
		random := rand.New(rand.NewPCG(seed, uint64(number)))
		var deck []faultKind // so that each kind has its turn
		for at := stream.pause.draw(random); ; {
			if len(deck) == 0 {
				deck = slices.Clone(stream.kinds)
				random.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
			}
			f := &fault{
				stream: stream.name, kind: deck[0], victim: stream.victims[random.IntN(len(stream.victims))],
				at: at, lasting: stream.lasting.draw(random),
			}
			deck = deck[1:]
			if at += f.lasting; at > load {
				break
			}
			all = append(all, f)
			at += stream.pause.draw(random)
		}
	}
	return all
}

// step is the beginning or the end of a fault.
type step struct {
	at     time.Duration
	fault  *fault
	begins bool
}

// steps puts the beginnings and ends of faults in the order in which they come.
func steps(planned []*fault) (all []step) {
	for _, f := range planned {
		all = append(all, step{f.at, f, true}, step{f.at + f.lasting, f, false})
	}
	slices.SortStableFunc(all, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return all
}

func TestASeedMakesOnePlan(t *testing.T) {
	assert.Equal(t, plan(7, time.Minute, streams), plan(7, time.Minute, streams))
	assert.NotEqual(t, plan(7, time.Minute, streams), plan(8, time.Minute, streams))
}
