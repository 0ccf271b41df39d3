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

// Of links.
const (
	slow         faultKind = "slow"          // latency and jitter, both ways
	sliced       faultKind = "sliced"        // a few bytes at a time
	reset        faultKind = "reset"         // instead of an answer
	cut          faultKind = "cut"           // a partition: connections dropped, and refused
	requestsLost faultKind = "requests lost" // half a partition
	answersLost  faultKind = "answers lost"  // the other half
)

// Of the machine.
const stalled faultKind = "stalled"

// fault is something that goes wrong with somebody for a while.
type fault struct {
	lane        string
	kind        faultKind
	victim      string
	at, lasting time.Duration // since the load began
	// began and ended are when it really did; died is when who was killed was dead.
	began, died, ended time.Time
}

// lane is one stream of faults. They come one after another, so that no victim has two at a time.
type lane struct {
	name    string
	kinds   []faultKind
	victims []string
	// pause is the time between two faults, lasting that which one takes.
	pause, lasting span
}

// span bounds a time in ms.
type span struct{ least, most int }

func (s span) draw(random *rand.Rand) time.Duration {
	return time.Duration(s.least+random.IntN(s.most-s.least)) * time.Millisecond
}

var (
	webs       = []string{"web 0", "web 1"}
	workers    = []string{"worker 0", "worker 1"}
	linkFaults = []faultKind{slow, sliced, reset, cut, requestsLost, answersLost}
)

var lanes = []lane{
	{"web", []faultKind{killed}, webs, span{1000, 4000}, span{0, 500}},
	{"worker", []faultKind{killed}, workers, span{2000, 6000}, span{0, 500}},
	{"redis", []faultKind{killed, frozen}, []string{"redis"}, span{1500, 5000}, span{0, 1500}},
	{"publishers > web", linkFaults, []string{linkName("publishers", webs[0]), linkName("publishers", webs[1])}, span{50, 600}, span{100, 1200}},
	{"web > redis", linkFaults, []string{linkName(webs[0], "redis"), linkName(webs[1], "redis")}, span{50, 600}, span{100, 1200}},
	{"worker > redis", linkFaults, []string{linkName(workers[0], "redis"), linkName(workers[1], "redis")}, span{300, 2000}, span{100, 800}},
	{"worker > subscriber", linkFaults, subscriberLinks(), span{50, 600}, span{100, 1500}},
}

func subscriberLinks() (names []string) {
	for _, s := range subscribers {
		names = append(names, linkName("workers", s.name))
	}
	return names
}

// plan says what goes wrong while the load lasts. It depends on its arguments alone.
func plan(seed uint64, load time.Duration) (all []*fault) {
	for number, lane := range lanes {
		random := rand.New(rand.NewPCG(seed, uint64(number)))
		var deck []faultKind // so that each kind has its turn
		for at := lane.pause.draw(random); ; {
			if len(deck) == 0 {
				deck = slices.Clone(lane.kinds)
				random.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
			}
			f := &fault{
				lane: lane.name, kind: deck[0], victim: lane.victims[random.IntN(len(lane.victims))],
				at: at, lasting: lane.lasting.draw(random),
			}
			deck = deck[1:]
			if at += f.lasting; at > load {
				break
			}
			all = append(all, f)
			at += lane.pause.draw(random)
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
	assert.Equal(t, plan(7, time.Minute), plan(7, time.Minute))
	assert.NotEqual(t, plan(7, time.Minute), plan(8, time.Minute))
}
