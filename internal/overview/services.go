package overview

import (
	"fmt"

	"routemaster/internal/bus"
)

// Problems of job types and state machines.

// ofTypes makes a problem of each job type that matches.
func (j *judge) ofTypes(is func(JobType) bool, say func(JobType) Problem) (found []Problem) {
	for _, t := range j.JobTypes {
		if is(t) {
			p := say(t)
			p.JobType = t.Name
			found = append(found, p)
		}
	}
	return found
}

// waitFor says how many jobs wait, and how long the oldest has.
func waitFor(t JobType) string {
	text := many(t.Queued, "job is", "jobs are") + " queued"
	if t.OldestAge != nil {
		text += ", the oldest for " + span(*t.OldestAge)
	}
	return text + "."
}

func olderJob(t JobType, seconds float64) bool {
	return t.OldestAge != nil && *t.OldestAge > seconds
}

func jobTypePaused(j *judge, r rule) []Problem {
	is := func(t JobType) bool { return t.Paused && t.Queued > 0 && olderJob(t, r.Over.Seconds()) }
	return j.ofTypes(is, func(t JobType) Problem {
		return Problem{
			Title:  "The job type " + t.Name + " is paused, and jobs wait.",
			Detail: sentences(waitFor(t), "It stays paused until somebody resumes it."),
		}
	})
}

func jobsGrowOld(j *judge, r rule) []Problem {
	is := func(t JobType) bool { return !t.Paused && t.HeldBack && olderJob(t, r.Above) }
	return j.ofTypes(is, func(t JobType) Problem {
		return Problem{
			Title: "Jobs of " + t.Name + " wait for their turn.",
			Detail: sentences(waitFor(t), fmt.Sprintf("%d of at most %d are in progress.", t.InProgress, t.Concurrency),
				"Jobs are enqueued faster than they are done, or their service does not report."),
		}
	})
}

// ended are problems with jobs that ended in the last minute. The alerts look back for 15 min.
func (j *judge) ended(r rule, rate func(JobType) *float64, what, why string) []Problem {
	is := func(t JobType) bool { return rate(t) != nil && *rate(t) > r.Above }
	return j.ofTypes(is, func(t JobType) Problem {
		jobs := *rate(t) * Lately.Seconds()
		return Problem{
			Title:  fmt.Sprintf("Jobs of %s %s.", t.Name, what),
			Detail: sentences(many(max(jobs, 1), "job", "jobs")+" in the last minute.", why),
		}
	})
}

func jobsFailed(j *judge, r rule) []Problem {
	return j.ended(r, func(t JobType) *float64 { return t.Failed }, "have failed",
		"They are not tried again. The archived jobs say why. Replay them once the cause is gone.")
}

func jobsExpired(j *judge, r rule) []Problem {
	return j.ended(r, func(t JobType) *float64 { return t.Expired }, "have expired", "Their turn did not come in time.")
}

// ofMachines makes a problem of each machine that matches.
func (j *judge) ofMachines(is func(Machine) bool, say func(Machine) Problem) (found []Problem) {
	for _, m := range j.Machines {
		if is(m) {
			p := say(m)
			p.Machine = m.Name
			found = append(found, p)
		}
	}
	return found
}

func labelsErrored(j *judge, r rule) []Problem {
	is := func(m Machine) bool { return float64(m.Errored) > r.Above }
	return j.ofMachines(is, func(m Machine) Problem {
		return Problem{
			Title: many(m.Errored, "label", "labels") + " of " + m.Name + " stopped with an error.",
			Detail: "Their action is not tried again, or machines have set them off through topics again and again. " +
				bus.Command("label list --errored", m.Name) + " names them, and " + bus.Command("label show", m.Name, "NAME") +
				" says of one why. " +
				"Retry them once the cause is gone.",
		}
	})
}

// movesUnpublished reports moves that stayed unpublished for the whole last minute.
func movesUnpublished(j *judge, r rule) []Problem {
	is := func(m Machine) bool { return float64(m.Held) > r.Above }
	return j.ofMachines(is, func(m Machine) Problem {
		return Problem{
			Title: many(m.Unpublished, "move", "moves") + " of " + m.Name + " wait to be published.",
			Detail: "Mostly the topic belongs to another client, or the publisher has gone; the workers' logs say why. " +
				"They are published as soon as that, or the definition, is corrected.",
		}
	})
}
