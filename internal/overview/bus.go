package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
)

// Problems of the bus itself: Redis, its data, and processes.

func redisUnavailable(j *judge, _ rule) []Problem {
	return one(j.Redis != "", func() Problem {
		return Problem{
			Title: "Redis does not answer.",
			Detail: sentences(strings.TrimSuffix(j.Redis, ".")+".", "Publishers get 503, and nothing is delivered.",
				"Web and workers go on by themselves when Redis is back.", "The other figures are of the last time it could be read."),
			Since: j.RedisLostAt,
		}
	})
}

// noRoom is the code of a Redis that has no memory left.
const noRoom = "OOM"

// refusals says why Redis refuses calls, by its codes.
var refusals = map[string]string{
	"READONLY":   "It is a replica.",
	"MISCONF":    "It cannot save its data to disk; its log says why.",
	"NOREPLICAS": "It has fewer replicas than it is set to need.",
	"NOPERM":     "Its access rules do not let the bus.",
}

// losses explain the kinds of data loss, except the loss of everything.
var losses = map[bus.DataLossKind]string{
	bus.DataOther: "What was stored before may be gone, acknowledged events among it. If this is not the Redis that it should be, " +
		"have ROUTEMASTER_REDIS_URL lead to that.",
	bus.DataOlder: "What was stored since is gone, acknowledged events and new clients among it. It was restored from a backup, " +
		"or a replica that lagged behind was promoted.",
}

// consequence explains a loss. A partition that has lost everything is held.
func consequence(loss bus.DataLoss) string {
	switch {
	case losses[loss.Kind] != "":
		return losses[loss.Kind]
	case loss.Partition != "":
		return "What was there is gone, acknowledged events among it, and clients get 503 or 404 for it."
	}
	return "Tokens, subscribers and acknowledged events are gone, and clients get 401."
}

// lostWhere begins a sentence with the partitions that have a loss of a kind; empty on a bus
// without partitions.
func lostWhere(lost []bus.DataLoss, kind bus.DataLossKind) string {
	var where []string
	for _, loss := range lost {
		if loss.Kind == kind && loss.Partition != "" {
			where = append(where, strings.TrimPrefix(loss.Partition, "0"))
		}
	}
	switch len(where) {
	case 0:
		return ""
	case 1:
		return "Partition " + where[0] + ": "
	}
	return "Partitions " + list(where) + ": "
}

func dataLost(j *judge, _ rule) []Problem {
	lost := j.sample.Lost
	return one(len(lost) > 0, func() Problem {
		var said []bus.DataLossKind
		var details []string
		since := lost[0].FoundAt
		for _, loss := range lost {
			if loss.FoundAt.Before(since) {
				since = loss.FoundAt
			}
			if !slices.Contains(said, loss.Kind) {
				said = append(said, loss.Kind)
				details = append(details, lostWhere(lost, loss.Kind)+loss.Kind.String(), consequence(loss))
			}
		}
		details = append(details, "Restore a backup if you have one.", "Then acknowledge it: `rtm doctor --accept-loss`.")
		return Problem{Title: "Redis has lost data.", Detail: sentences(details...), Since: Time{Time: since}}
	})
}

func partitionAway(j *judge, _ rule) []Problem {
	return one(len(j.sample.Away) > 0, func() Problem {
		return Problem{
			Title: partitions(j.sample.Away) + " away.",
			Detail: sentences("Redis does not answer there. Publishes to topics there get 503, and nothing is delivered from there.",
				"`rtm cluster status` names the nodes. Start them, or have replicas take over: web and workers go on by themselves."),
		}
	})
}

func partitionHeld(j *judge, _ rule) []Problem {
	return one(len(j.sample.Held) > 0, func() Problem {
		return Problem{
			Title: partitions(j.sample.Held) + " held.",
			Detail: sentences("Publishes to topics there get 503, and nothing is delivered from there.",
				"An operator holds it for a move, its slot is moving, or its node came back without its keys: `rtm cluster status` says which.",
				"When no slot is moving, have it used again: `rtm cluster release "+numbers(j.sample.Held, " ")+"`.",
				"If keys are lost, then run `rtm doctor --fix`."),
		}
	})
}

// partitions begins a sentence: Partition 4 is, Partitions 4, 7 are.
func partitions(all []int) string {
	if len(all) == 1 {
		return "Partition " + numbers(all, "") + " is"
	}
	return "Partitions " + numbers(all, ", ") + " are"
}

func numbers(all []int, between string) string {
	var texts []string
	for _, n := range all {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, between)
}

func notDurable(j *judge, _ rule) []Problem {
	return one(len(j.sample.Risks) > 0, func() Problem {
		return Problem{Title: "Redis may lose what it has.", Detail: sentences(j.sample.Risks...)}
	})
}

func redisFull(j *judge, _ rule) []Problem {
	return one(j.sample.Refuses == noRoom, func() Problem {
		used := ""
		if m := j.Memory; m != nil {
			used = fmt.Sprintf("%s of %s MB are used.", megabytes(m.Used), megabytes(m.Max))
		}
		return Problem{
			Title: "Redis is full.",
			Detail: sentences(used, "It refuses to write ("+noRoom+"). Publishers get 503. What is queued is still delivered.",
				"Give it more memory, or see what else fills it."),
		}
	})
}

func redisRefuses(j *judge, _ rule) []Problem {
	code, refuses, again := j.sample.Refuses, "write", "takes writes"
	if j.sample.RefusesScripts {
		refuses, again = "run scripts", "runs scripts"
	}
	return one(code != "" && code != noRoom, func() Problem {
		return Problem{
			Title: "Redis refuses to " + refuses + ".",
			Detail: sentences(refusals[code], "It answers "+code+". Publishers get 503, and nothing is delivered.",
				"Web and workers go on by themselves when Redis "+again+" again."),
		}
	})
}

// settled is after how long all workers of a bus have told of themselves.
const settled = Alive + 5*time.Second

// noWorker finds nothing while Redis refuses writes, because then no process can send a heartbeat,
// nor while the processes cannot be read. Workers without heartbeats, like the Ruby original's, are
// recognized by their deliveries.
func noWorker(j *judge, _ rule) []Problem {
	isWorker := func(p Process) bool { return p.Kind == "worker" }
	delivers := func(sub Subscriber) bool { return attempted(sub, Alive.Seconds()) }
	asked := len(j.Processes) > 0 || j.sample.Running > settled
	known := asked && j.sample.Refuses == "" && !j.sample.Lacks(PartProcesses)
	j.idle = known && !slices.ContainsFunc(j.Processes, isWorker) && !slices.ContainsFunc(j.Subscribers, delivers)
	return one(j.idle, func() Problem {
		return Problem{
			Title: "No worker runs.",
			Detail: sentences("Nothing is delivered. "+events(j.Queued)+" are queued.",
				"Publishes are stored while Redis has room, and are delivered as soon as a worker runs."),
			Since: j.lastSample(),
		}
	})
}

func noJobThreads(j *judge, _ rule) []Problem {
	return j.unserved(bus.QueueJobs, "No worker runs jobs.",
		"No job is sent to its service or brought up when it is due, and no deadline is kept.", "ROUTEMASTER_JOB_THREADS")
}

func noMachineThreads(j *judge, _ rule) []Problem {
	return j.unserved(bus.QueueMachines, "No worker runs state machines.", "No label moves.", "ROUTEMASTER_MACHINE_THREADS")
}

// unserved finds a queue that has jobs, while all workers that live say that they have no thread
// for it.
func (j *judge) unserved(queue bus.Queue, title, means, setting string) []Problem {
	is := func(q Queue) bool { return q.Name == string(queue) && q.Instant+q.Scheduled > 0 }
	waits := slices.ContainsFunc(j.Queues, is) && Unserved(queue, j.Processes, j.At)
	return one(waits, func() Problem {
		return Problem{
			Title:  title,
			Detail: sentences(means, "All workers run with "+setting+"=0. Set it for one of them at least, and restart that."),
		}
	})
}

// lastSample returns the end of the last step that the history has. Workers write it.
func (j *judge) lastSample() Time {
	track := j.fast(Subject{})
	var last Time
	for i := range knownOf(track.last(15*time.Minute, Queued)) {
		last.Time = track.at(track.missing + i + 1)
	}
	return last
}

// positive reports whether something was counted.
func positive(n float32) bool { return n > 0 }

func eventsDropped(j *judge, r rule) []Problem {
	total, _ := sumOf(j.fast(Subject{}).last(r.Over, Dropped))
	in := spanOf(r.Over)
	if lately := j.Dropped; lately != nil && float64(*lately) > total { // the history is a step behind
		total, in = float64(*lately), spanOf(Lately)
	}
	return one(total > r.Above, func() Problem {
		losers, of := j.losers(r), ""
		if len(losers) > 0 {
			of = " of " + list(losers)
		}
		p := Problem{
			Title: "Events are being lost.",
			Detail: sentences(fmt.Sprintf("%s%s dropped in the last %s.", events(total), of, in), j.aboveMark(),
				"The bus drops the oldest batches of the client that has most queued, while Redis is above its high mark. Give it more memory, or see why queues grow."),
			Since: j.since(Subject{}, r.Over, is(Dropped, positive)),
		}
		if len(losers) == 1 {
			p.Subscriber = losers[0]
		}
		return p
	})
}

// losers returns the subscribers whose events were dropped, those with the most first.
func (j *judge) losers(r rule) (names []string) {
	lost := map[string]float64{}
	for _, sub := range j.Subscribers {
		total, _ := sumOf(j.fast(Subject{Subscriber: sub.Name}).last(r.Over, Dropped))
		if sub.Dropped != nil {
			total = max(total, float64(*sub.Dropped))
		}
		if total > 0 {
			names, lost[sub.Name] = append(names, sub.Name), total
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(lost[b], lost[a]), cmp.Compare(a, b)) })
	return names
}

func (j *judge) aboveMark() string {
	if j.Memory == nil || j.Memory.Used <= j.Memory.High {
		return ""
	}
	return fmt.Sprintf("Redis is above its high mark (%s of %s MB).", megabytes(j.Memory.Used), megabytes(j.Memory.High))
}

func eventsUnreadable(j *judge, r rule) []Problem {
	total, _ := sumOf(j.fast(Subject{}).last(r.Over, Unreadable))
	return one(total > r.Above, func() Problem {
		return Problem{
			Title: "Events cannot be read, and are lost.",
			Detail: sentences(fmt.Sprintf("%s in the last %s.", events(total), spanOf(r.Over)),
				"Something other than the bus has written to its keys. The workers' logs name the subscribers."),
			Since: j.since(Subject{}, r.Over, is(Unreadable, positive)),
		}
	})
}

func keysDamaged(j *judge, _ rule) []Problem {
	return one(len(j.sample.Damaged) > 0, func() Problem {
		return Problem{
			Title: many(len(j.sample.Damaged), "key in Redis is", "keys in Redis are") + " damaged.",
			Detail: sentences(list(j.sample.Damaged)+": not of the type that the bus writes, so what belongs there is missing here.",
				"The bus leaves such keys alone. `rtm doctor` says what can be repaired."),
		}
	})
}

func redisNearlyFull(j *judge, r rule) []Problem {
	if j.Memory == nil || j.Memory.High == 0 {
		return nil
	}
	limit := r.Above * float64(j.Memory.High)
	return one(float64(j.Memory.Used) > limit, func() Problem {
		p := Problem{
			Title: "Redis is about to be full.",
			Detail: sentences(fmt.Sprintf("%s MB are used.", megabytes(j.Memory.Used)), j.fullIn(),
				fmt.Sprintf("Above %s MB the oldest batches are dropped.", megabytes(j.Memory.High))),
			Since: j.since(Subject{}, 0, is(Used, func(used float32) bool { return float64(used) > limit })),
		}
		return p
	})
}

// fullIn says when Redis will reach its high mark, if it fills as it did in the last 15 min.
func (j *judge) fullIn() string {
	slope, known := j.fast(Subject{}).slope(15*time.Minute, Used)
	left := float64(j.Memory.High-j.Memory.Used) / slope
	if !known || slope <= 0 || left <= 0 || left > (24*time.Hour).Seconds() {
		return ""
	}
	return "If it goes on as in the last 15 min, it is full in about " + span(left) + "."
}

func accountNearlyFull(j *judge, r rule) (found []Problem) {
	for _, c := range j.Clients {
		if c.Share <= r.Above {
			continue
		}
		found = append(found, Problem{
			Title: "The account of " + c.Name + " is nearly full.",
			Detail: fmt.Sprintf("Its jobs, job types and labels take %.0f %% of what they may. Beyond that they get 507, and its schedules skip their times. "+
				"Have it delete what it does not need (labels take a day to go), or raise its limit with ROUTEMASTER_CLIENT_MEMORY.", 100*c.Share),
		})
	}
	return found
}

func workersBusy(j *judge, r rule) []Problem {
	full := condition{Busy, Waiting, func(busy, waiting float32) bool {
		return float64(busy) > r.Above && waiting > 0
	}}
	main := slices.IndexFunc(j.Queues, func(q Queue) bool { return q.Name == "main" })
	is := j.Threads > 0 && main >= 0 && j.Queues[main].Instant > 0 && float64(j.Busy) > r.Above*float64(j.Threads)
	long, _ := j.fast(Subject{}).all(r.Over, full)
	return one(is && long, func() Problem {
		return Problem{
			Title: "Nearly all worker threads are busy.",
			Detail: sentences(fmt.Sprintf("%d of %d deliver, and %s wait for one.", j.Busy, j.Threads, many(j.Queues[main].Instant, "batch", "batches")),
				"Add workers or threads, or see which subscribers are slow."),
			Since: j.since(Subject{}, 0, full),
		}
	})
}

func workerDied(j *judge, r rule) []Problem {
	total, _ := sumOf(j.fast(Subject{}).last(r.Over, Scrubbed))
	return one(total > r.Above, func() Problem {
		return Problem{
			Title: "A worker died.",
			Detail: sentences(many(total, "thread", "threads")+" did not report for 30 s, in the last "+spanOf(r.Over)+".",
				"The bus has put their jobs back into the queue. Events may have been delivered twice."),
			Since: j.since(Subject{}, r.Over, is(Scrubbed, positive)),
		}
	})
}

func clocksApart(j *judge, r rule) []Problem {
	var apart []string
	for _, p := range j.Processes {
		seconds, where := float64(p.Ahead)/1000, "ahead"
		if seconds < 0 {
			seconds, where = -seconds, "behind"
		}
		if seconds > r.Above {
			apart = append(apart, fmt.Sprintf("a %s is %s %s", p.Kind, span(seconds), where))
		}
	}
	return one(len(apart) > 0, func() Problem {
		return Problem{
			Title:  "Clocks differ.",
			Detail: "Compared with the clock of Redis, " + list(apart) + ". Such a process goes by the clock of Redis, and requeues no jobs of dead workers. Synchronize the clocks.",
		}
	})
}

// credentialsRefused leaves out the requests without credentials, which ask for a challenge.
func credentialsRefused(j *judge, r rule) []Problem {
	rate := j.ofWeb(func(p Process) float64 { return p.Refused })
	return one(rate > r.Above, func() Problem {
		return Problem{
			Title: "Many requests have wrong credentials.",
			Detail: fmt.Sprintf("%.0f a second get 401. A client has a token that was removed or is mistyped, or secrets are being guessed. "+
				`The log of web says where they come from: look for "refused credentials".`, rate),
		}
	})
}

func requestsThrottled(j *judge, r rule) []Problem {
	rate := j.ofWeb(func(p Process) float64 { return p.Throttled })
	return one(rate > r.Above, func() Problem {
		return Problem{
			Title: "Many requests are turned away.",
			Detail: fmt.Sprintf("%.0f a second get 429: they have wrong credentials too often, or a client sends more at once than it may. "+
				"The metric routemaster_http_requests_total says to which routes.", rate),
		}
	})
}

// ofWeb is the sum of a figure of all processes.
func (j *judge) ofWeb(figure func(Process) float64) (sum float64) {
	for _, p := range j.Processes {
		sum += figure(p)
	}
	return sum
}

func versionsDiffer(j *judge, _ rule) []Problem {
	processes := map[string]int{}
	var versions []string
	for _, p := range j.Processes {
		if processes[p.Version]++; processes[p.Version] == 1 {
			versions = append(versions, p.Version)
		}
	}
	return one(len(versions) > 1, func() Problem {
		slices.Sort(versions)
		for i, v := range versions {
			versions[i] = fmt.Sprintf("%s (%s)", v, many(processes[v], "process", "processes"))
		}
		return Problem{Title: "Processes have different versions.", Detail: list(versions) + ". Expected only during an update."}
	})
}

func topicQuiet(j *judge, r rule) (found []Problem) {
	for _, t := range j.Topics {
		if t.State == Quiet {
			found = append(found, Problem{
				Title:  t.Name + " is quiet.",
				Detail: fmt.Sprintf("Nothing was published to it for %s. Its mean of the last 6 h is %s.", spanOf(r.Over), perSecond(j.usually(t))),
				Since:  j.since(Subject{Topic: t.Name}, 0, is(In, func(rate float32) bool { return rate == 0 })), Topic: t.Name,
			})
		}
	}
	return found
}

func nobodyListens(j *judge, _ rule) (found []Problem) {
	for _, t := range j.Topics {
		if t.State == Unheard {
			found = append(found, Problem{
				Title: "Nobody listens to " + t.Name + ".",
				Detail: "Events are published to it, and no client is subscribed. No queue takes them. " +
					"Who subscribes gets what is published from then on.",
				Topic: t.Name,
			})
		}
	}
	return found
}
