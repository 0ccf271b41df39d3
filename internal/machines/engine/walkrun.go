package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"routemaster/internal/machines"
	"routemaster/internal/machines/condition"
	"routemaster/internal/queue"
	"routemaster/internal/telemetry"
)

const (
	// sliceLabels is how many labels a walk reads at once, which takes Redis half a ms.
	sliceLabels = 50
	// A walk lets others go first after walkTime, and waits for walkPause while workers have
	// maxInstant labels to look at: labels that clients have changed should not wait for all of a
	// walk.
	walkTime   = time.Second
	maxInstant = 1000
	walkPause  = 20 * time.Millisecond
	// anywhere is how far apart the times are at which some time zone has a time of day: their offsets
	// are multiples of it.
	anywhere = 15 * time.Minute
)

// Walk is the handler of [bus.JobWalk]. It looks at the labels of one state, as a trigger is due or
// the definitions have changed: it reads them in slices, evaluates gates that need no feed, and
// queues the labels whose gate opens, or may open.
func (r *Runner) Walk(ctx context.Context, task *queue.Task) queue.Result {
	machine, name := machines.Name(task.Job.Args[0]), task.Job.Args[1]
	next, err := walker{r, r.stores.All()[task.Partition]}.walk(ctx, machine, name)
	switch {
	case errors.Is(err, machines.ErrChanged): // the definitions: it goes on by the current ones
		return queue.Result{RetryAt: r.now()}
	case err != nil:
		telemetry.LogFailure(r.log, "could not look at the labels for which a trigger is due", err, "machine", machine, "walk", name)
		return queue.Result{RetryAt: r.now().Add(firstRetry)}
	}
	return queue.Result{RetryAt: next}
}

// walker walks over the labels of a partition.
type walker struct {
	*Runner
	store *Store
}

// walk does a part of a walk, and returns when to go on; zero for a walk that is not needed any
// more.
func (r walker) walk(ctx context.Context, machine machines.Name, name string) (next time.Time, err error) {
	definitions, err := r.store.Definitions(ctx)
	if err != nil {
		return next, err
	}
	w, needed := definitions.Walk(machine, name)
	if !needed {
		return next, r.store.Forget(ctx, machine, name)
	}
	progress, err := r.store.Progress(ctx, w)
	if err != nil {
		return next, err
	}
	if w.Trigger == nil {
		return r.review(ctx, definitions, w, progress)
	}
	return r.walkTimed(ctx, definitions, w, progress)
}

// walkTimed is a walk whose trigger is due at times.
func (r walker) walkTimed(
	ctx context.Context, d *machines.Definitions, w machines.Walk, p Progress,
) (next time.Time, err error) {
	now := r.now()
	if start := startOf(p, d, now); start != p {
		p = start
		if err := r.store.Step(ctx, d, w, p, nil); err != nil {
			return next, err
		}
	}
	if p.Due == 0 {
		due, ok := dueLast(w.Trigger, time.UnixMilli(p.At), now)
		if !ok {
			return dueNext(w.Trigger, now), nil
		}
		p.Due = due.UnixMilli()
	}
	m := d.Machine(w.Machine)
	wants := func(label *machines.Label) bool { return r.wants(ctx, m, w, p, label) }
	done, err := r.slices(ctx, d, w, &p, wants)
	if err != nil || !done {
		return now.Add(walkPause), err
	}
	due := time.UnixMilli(p.Due)
	return dueNext(w.Trigger, due), r.store.Step(ctx, d, w, Progress{At: p.Due}, nil)
}

// startOf returns the progress from which a walk goes on. A new trigger was not due before it was
// defined. A time ahead of now was noted by a process whose clock was wrong.
func startOf(p Progress, d *machines.Definitions, now time.Time) Progress {
	limit := now.Add(machines.MaxAhead).UnixMilli()
	if p.Due > limit {
		p.Due, p.After = 0, ""
	}
	switch {
	case p.At == 0:
		p.At = min(d.AppliedAt.UnixMilli(), now.UnixMilli())
	case p.At > limit:
		p.At = now.UnixMilli()
	}
	return p
}

// review queues all labels of a state once.
func (r walker) review(
	ctx context.Context, d *machines.Definitions, w machines.Walk, p Progress,
) (next time.Time, err error) {
	done, err := r.slices(ctx, d, w, &p, func(*machines.Label) bool { return true })
	if err != nil || !done {
		return r.now().Add(walkPause), err
	}
	return next, r.store.Forget(ctx, w.Machine, w.Name())
}

// slices looks at the labels from where a walk is, for some time. It reports whether these were
// all.
func (r walker) slices(
	ctx context.Context, d *machines.Definitions, w machines.Walk, p *Progress, wants func(*machines.Label) bool,
) (done bool, err error) {
	for began := r.now(); r.now().Sub(began) < walkTime; {
		instant, err := r.store.Instant(ctx, r.now())
		if err != nil || instant > maxInstant {
			return false, err
		}
		labels, err := r.store.Slice(ctx, w, p.After, sliceLabels)
		if err != nil || len(labels) == 0 {
			return err == nil, err
		}
		var wanted []machines.LabelName
		for i := range labels {
			if wants(&labels[i]) {
				wanted = append(wanted, labels[i].Name)
			}
		}
		p.After = labels[len(labels)-1].Name
		if err := r.store.Step(ctx, d, w, *p, wanted); err != nil {
			return false, err
		}
	}
	return false, nil
}

// wants reports whether a worker has to look at a label for which a trigger is due: unless its
// condition does not hold, whatever feeds say.
func (r *Runner) wants(
	ctx context.Context, m *machines.Machine, w machines.Walk, p Progress, label *machines.Label,
) bool {
	due := time.UnixMilli(p.Due)
	if zone := w.Trigger.Zone; len(zone.Metadata) > 0 && w.Trigger.TimeOfDay != nil {
		metadata, err := machines.ParseObject(label.Metadata)
		if err != nil {
			return false
		}
		location, err := zone.In(metadata)
		if err != nil {
			return true // so that it is shown
		}
		if location == nil {
			return false
		}
		var ok bool
		if due, ok = w.Trigger.Latest(time.UnixMilli(p.At), due, location); !ok {
			return false
		}
	}
	if label.EnteredAt.After(due) {
		return false
	}
	label.Trigger = w.Trigger.String()
	e, err := r.evaluator.Begin(ctx, m, label, false)
	if err != nil {
		return true
	}
	open, err := m.State(w.State).Gate.Condition.Evaluate(e.Environment)
	if err != nil && !errors.Is(err, condition.ErrUnknown) {
		r.log.Debug("could not evaluate the gate of a label", slog.String("machine", string(m.Name)),
			slog.String("label", string(label.Name)), slog.Any("error", err))
	}
	return open || err != nil
}

// dueLast returns the last time in (after, now] at which a trigger was due for some label.
func dueLast(t *machines.Trigger, after, now time.Time) (time.Time, bool) {
	if t.TimeOfDay == nil || len(t.Zone.Metadata) == 0 {
		return t.Latest(after, now, nil)
	}
	due := now.Truncate(anywhere).Add(sinceQuarter(t))
	if due.After(now) {
		due = due.Add(-anywhere)
	}
	return due, due.After(after)
}

// dueNext returns the next time at which a trigger is due for some label.
func dueNext(t *machines.Trigger, after time.Time) time.Time {
	if t.TimeOfDay == nil || len(t.Zone.Metadata) == 0 {
		due, _ := t.Next(after, nil)
		return due
	}
	due := after.Truncate(anywhere).Add(sinceQuarter(t))
	if !due.After(after) {
		due = due.Add(anywhere)
	}
	return due
}

// sinceQuarter is the time of day of a trigger since the last quarter of an hour.
func sinceQuarter(t *machines.Trigger) time.Duration {
	return time.Duration(*t.TimeOfDay) * time.Second % anywhere
}
