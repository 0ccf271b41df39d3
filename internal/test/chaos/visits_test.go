package chaos

import (
	"fmt"
	"io"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
)

// movingLabels is how many labels have not arrived at their end.
func (c *chaos) movingLabels() int64 {
	counts, err := engine.NewBus(c.stores.Partitions()).CountAll(c.t.Context())
	if err != nil || len(counts) != 1 {
		return -1
	}
	for _, of := range counts[0].States {
		if of.State == end {
			return int64(*chaosLabels) - of.Labels
		}
	}
	return -1
}

// requireLabels requires that no label was lost, that each has arrived at its end and is in no
// other state, that its history tells how it came there, and that its webhooks were called as that
// says.
func (c *chaos) requireLabels(report io.Writer) {
	s := c.labels
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Equal(c.t, *chaosLabels, s.sent, "labels sent on their last round")
	st, ctx := engine.NewBus(c.stores.Partitions()), c.t.Context()
	definitions, err := st.Definitions(ctx)
	require.NoError(c.t, err)
	counts, errored, err := st.Counts(ctx, definitions, roundsMachine)
	require.NoError(c.t, err)
	assert.Zero(c.t, errored, "errored labels")
	for _, of := range counts {
		if of.State != end {
			assert.Zero(c.t, of.Labels, "labels in %s", of.State)
		}
	}
	in := c.listed(st, definitions)
	assert.Len(c.t, in, *chaosLabels)
	v := visits{calls: s.calls, why: c.faults}
	for number := range *chaosLabels {
		name := labelName(number)
		label, _, err := st.Of(roundsMachine, name).Label(ctx, roundsMachine, name)
		if !assert.NoError(c.t, err, "%s was acknowledged, and is lost", name) {
			continue
		}
		if label.State != end || in[name] != end || !label.Resting {
			v.blame("%s is in %s, and in the list of %s; it rests: %v", name, label.State, in[name], label.Resting)
		}
		moves, count, err := st.Of(roundsMachine, name).History(ctx, &label)
		require.NoError(c.t, err)
		v.addLabel(&label, moves, count)
	}
	for of, calls := range v.calls {
		for _, call := range calls {
			if !v.why.failedOver(labelProxy, call.arrived, call.arrived) { // which may have undone the visit
				v.blame("%s was called at %s with a token of no visit", of.path, clock(call.arrived))
			}
		}
	}
	assert.Empty(c.t, v.wrong)
	assert.Positive(c.t, v.count)
	assert.Positive(c.t, s.redefined)
	fmt.Fprintf(report, "%d labels, %d of them sent to their end while there were faults; definitions replaced %d times; %d moves, %d visits to actions, "+
		"%d calls of webhooks: %d failed, %d again after they were acknowledged, %d under way when their label left\n",
		*chaosLabels, s.early, s.redefined, v.moves, v.count, v.called, v.failed, v.again, v.late)
}

// listed returns the labels in the lists of all states.
func (c *chaos) listed(st *engine.Bus, d *machines.Definitions) map[machines.LabelName]machines.StateName {
	in := map[machines.LabelName]machines.StateName{}
	for _, state := range d.Machine(roundsMachine).States {
		f := engine.Filter{State: state.Name, Limit: 1000}
		for more := true; more; more = f.After != "" {
			list, next, err := st.List(c.t.Context(), roundsMachine, f)
			require.NoError(c.t, err)
			for _, l := range list {
				assert.Empty(c.t, in[l.Name], "%s is in two lists", l.Name)
				in[l.Name] = l.State
			}
			f.After = next
		}
	}
	return in
}

// visits compares the visits of labels to actions, as their histories tell them, with the calls of
// the webhooks.
type visits struct {
	// calls are the calls that belong to no visit so far.
	calls map[webhook][]*attempt
	why   faults

	moves, count, called, failed, again, late int
	// wrong lists the findings that no fault explains.
	wrong []string
}

func (v *visits) blame(format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

// addLabel takes account of the history of a label, the latest move first.
func (v *visits) addLabel(label *machines.Label, moves []machines.Move, count int64) {
	if int64(len(moves)) != count || moves[0].To != end || moves[len(moves)-1].From != "" {
		v.blame("%s has %d of %d moves in its history, the last to %s", label.Name, len(moves), count, moves[0].To)
		return
	}
	v.moves += len(moves) - 1
	for i := 1; i < len(moves); i++ {
		entered, left := moves[i], moves[i-1]
		if left.From != entered.To || left.At.Before(entered.At) {
			v.blame("%s came to %s at %s, and left %s at %s", label.Name, entered.To, clock(entered.At), left.From, clock(left.At))
		}
		if entered.To == "calls" || entered.To == "files" {
			at := *label
			at.Moves = int64(len(moves) - 1 - i)
			v.addVisit(webhook{fmt.Sprintf("/%s/%s", entered.To, label.Name), at.IdempotencyToken()}, entered.At, left.At)
		}
	}
}

// addVisit takes account of a visit to an action: its webhook is acknowledged at least once, all
// calls have one token, and come while the label is there. A call was under way when the label left
// if it failed for its worker, or that was killed, and the service got it all the same: that takes
// bytes on their way a short time. The history has times in whole ms.
func (v *visits) addVisit(of webhook, entered, left time.Time) {
	calls := v.calls[of]
	delete(v.calls, of)
	v.count++
	v.called += len(calls)
	acknowledged := 0
	for i, call := range calls {
		if call.arrived.Before(entered) && !v.why.failedOver(labelProxy, call.arrived, entered) {
			v.blame("%s was called at %s, before %s", of.path, clock(call.arrived), clock(entered))
		}
		if after := call.arrived.Sub(left.Add(time.Millisecond)); after >= 0 {
			v.late++
			if after > faultMargin || v.why.again(labelProxy, &attempt{arrived: entered, acknowledged: left}) == "" {
				v.blame("%s was called at %s, and the label had left at %s", of.path, clock(call.arrived), clock(left))
			}
		}
		if call.acknowledged.IsZero() {
			v.failed++
			continue
		}
		if acknowledged++; i < len(calls)-1 {
			v.again++
			if v.why.again(labelProxy, call) == "" {
				v.blame("%s was acknowledged at %s, and called again", of.path, clock(call.acknowledged))
			}
		}
	}
	if acknowledged == 0 {
		v.blame("%s was not acknowledged, and the label left at %s", of.path, clock(left))
	}
}
