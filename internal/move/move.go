package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Options say what a run does.
type Options struct {
	// From and To are the partitions of the old and of the new bus.
	From, To []*rdb.Partition
	// Switch has publishes go to the new bus from now on. Cancel opens the old one again, if a switch
	// was broken off, and ends the move.
	Switch, Cancel bool
	// Version is that of this program: processes of another one may not know of moves. Empty if that
	// does not matter.
	Version string
	// Now is the clock, that of the host if it is nil.
	Now func() time.Time

	step func(name string) // what tests do after a step, by its name
}

// Phase is how far a move is after a run.
type Phase string

// The phases.
const (
	// Copied means that the old bus serves, and the new one has all that it needs to take its place.
	Copied Phase = "copied"
	// Draining means that the new bus serves, and something is left to be delivered from the old one.
	Draining Phase = "draining"
	// Over means that nothing is left to do.
	Over Phase = "over"
	// Cancelled means that the old bus serves, and nothing is being moved.
	Cancelled Phase = "cancelled"
)

// Report is what a run has done, and what is left.
type Report struct {
	Phase Phase `json:"phase"`
	// Tokens, Topics and Subscribers are what was copied, or was there already, and Changed how many
	// of all these were written by this run, or removed.
	Tokens      int `json:"tokens"`
	Topics      int `json:"topics"`
	Subscribers int `json:"subscribers"`
	Changed     int `json:"changed"`
	// Released is how many subscribers get their events from the new bus since this run, Waiting those
	// for whom something is left on the old one.
	Released int       `json:"released"`
	Waiting  []Waiting `json:"waiting,omitempty"`
	// DeadLetters and History are how many events stay behind on the old bus.
	DeadLetters int64 `json:"dead_letters_left"`
	History     int64 `json:"history_events_left"`
	// The processes that live.
	OldWebs    int `json:"old_webs"`
	OldWorkers int `json:"old_workers"`
	NewWebs    int `json:"new_webs"`
	NewWorkers int `json:"new_workers"`
}

// Run does the next step of a move, as far as that can be done now. It fails with
// [bus.ErrUnavailable], or because something is refused; it can be repeated in any case. The report
// has no figures yet that [Look] adds.
func Run(ctx context.Context, o Options) (Report, error) {
	m := newMover(o)
	err := m.run(ctx)
	if errors.Is(err, bus.ErrMoving) { // see [fence.Script]
		err = fmt.Errorf("%w (%v)", errOvertaken, err)
	}
	return m.report, err
}

// mover is one run.
type mover struct {
	Options
	from, to  *side
	id, runID string // the UIDs of the move and of the run
	report    Report
}

func newMover(o Options) *mover {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.step == nil {
		o.step = func(string) {}
	}
	return &mover{Options: o, from: newSide("the old Redis", o.From, o.step), to: newSide("the new Redis", o.To, o.step), runID: newID()}
}

// changed counts what was written.
func (m *mover) changed(n int) {
	m.report.Changed += n
	m.step("copied")
}

func (m *mover) run(ctx context.Context) error {
	is, err := m.readState(ctx)
	switch {
	case err != nil:
		return err
	case m.Cancel:
		return m.cancel(ctx, is)
	case is == elsewhere:
		return errElsewhere
	case is == cancelling:
		return errCancelling
	case is == draining:
		return m.goOn(ctx)
	case is == finished:
		return m.finish(ctx)
	case is == broken && !m.Switch:
		return errBroken
	}
	if is != broken { // else it is opened first
		if err := m.requireMovable(ctx); err != nil {
			return err
		}
	}
	if err := m.begin(ctx, is); err != nil {
		return err
	}
	if m.Switch {
		if err := m.switchOver(ctx); err != nil {
			return err
		}
		return m.goOn(ctx)
	}
	m.report.Phase = Copied
	return m.copy(ctx)
}

// goOn drains the old bus, and ends the move when that is done.
func (m *mover) goOn(ctx context.Context) error {
	m.report.Phase = Draining
	if err := m.open(ctx); err != nil {
		return fmt.Errorf("the switch was not ended, and cannot be undone; publishers get 503 in part: run this again: %w", err)
	}
	if err := m.drain(ctx); err != nil || len(m.report.Waiting) > 0 {
		return err
	}
	// A failover may have opened the old bus for a while: see open.
	if err := m.from.requireMovable(ctx); err != nil {
		return err
	}
	return m.finish(ctx)
}

// open opens the new bus, after the old one has said that there is no way back. A failover may have
// undone either later.
func (m *mover) open(ctx context.Context) error {
	if err := m.from.become(ctx, m.mark(switchedBus)); err != nil {
		return err
	}
	return m.to.become(ctx, m.mark(newBus))
}

// finish ends a move that is over: the old bus stays closed for ever, the new one forgets it all.
func (m *mover) finish(ctx context.Context) error {
	m.report.Phase = Over
	if err := m.from.become(ctx, m.mark(overBus)); err != nil {
		return err
	}
	held, err := m.to.heldTokens(ctx)
	if err != nil {
		return m.to.blame(err)
	}
	if len(held) > 0 { // by a mistake of ours; they would be for ever
		if err := m.to.become(ctx, m.mark(newBus)); err != nil {
			return err
		}
	}
	for _, token := range held {
		if err := m.release(ctx, token, &subscriber{}); err != nil {
			return m.to.blame(err)
		}
	}
	return m.to.become(ctx, mark{})
}

// Look adds to a report what stays behind, and who runs. It fails with [bus.ErrUnavailable].
func Look(ctx context.Context, o Options, r *Report) (err error) {
	m := newMover(o)
	if r.DeadLetters, r.History, err = m.from.countLeft(ctx); err != nil {
		return err
	}
	if r.OldWebs, r.OldWorkers, err = m.from.countProcesses(ctx, m.Now()); err != nil {
		return err
	}
	r.NewWebs, r.NewWorkers, err = m.to.countProcesses(ctx, m.Now())
	return err
}

// countLeft counts the events in dead letters and in histories.
func (s *side) countLeft(ctx context.Context) (letters, kept int64, err error) {
	for i, at := range s.partitions {
		var sums, fields rdb.Reply[[]string]
		err := at.Pipelined(ctx, "count what is left behind", func(pipe rdb.Commands) {
			sums, fields = pipe.HVals(ctx, s.keys[i].DeadLetterEvents()), pipe.HKeys(ctx, s.keys[i].Plans())
		})
		if err != nil {
			return 0, 0, s.blame(err)
		}
		for _, events := range sums.Val() {
			letters += rdb.Integer(events, 0)
		}
		var lengths []rdb.Reply[int64]
		err = at.Reads(ctx, "count what is left behind", func(pipe rdb.Commands) {
			for _, field := range fields.Val() {
				if topic, is := strings.CutPrefix(field, store.HistoryField("")); is {
					lengths = append(lengths, pipe.LLen(ctx, s.keys[i].History(bus.TopicName(topic))))
				}
			}
		})
		if err != nil {
			return 0, 0, s.blame(err)
		}
		for _, length := range lengths {
			kept += length.Val()
		}
	}
	return letters, kept, nil
}

// countProcesses counts the processes of a bus that live.
func (s *side) countProcesses(ctx context.Context, now time.Time) (webs, workers int, err error) {
	all, err := s.processes(ctx, now)
	for _, one := range all {
		switch one.Kind {
		case "web":
			webs++
		case "worker":
			workers++
		}
	}
	return webs, workers, err
}

func msTime(text string) time.Time { return time.UnixMilli(rdb.Integer(text, 0)) }
