// Package jobs examines the jobs of services: their types, records and data, the lists of those
// that have not ended and of archived ones, their entries in the queue, and the lanes that hold the
// limits of their types.
//
// An entry may be instant although its job has ended, or is scheduled too: who takes it next goes
// by the record. So only what the record lacks is wrong.
package jobs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/doctor/exam"
	"routemaster/internal/doctor/scan"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstore"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

// The keys without a namespace, as findings show them.
var (
	keys    = jobstore.Keys{}
	entries = queue.Keys{}
)

// examination is that of jobs. Its keys have the namespace.
type examination struct {
	*exam.Examination
	work jobstore.Keys
}

// Find looks for what does not fit in types, records, lists, lanes and data.
func Find(e *exam.Examination) {
	x := examination{e, jobstore.Keys{Namespace: e.Keys.Namespace}}
	x.findTypes()
	x.findForeign()
	for id, record := range e.Records {
		x.findRecord(id, record)
	}
	for name, ids := range e.Each(keys.Open("")) {
		for id := range ids {
			record := e.Records[id]
			x.findListed(x.work.Open(jobs.TypeName(name)), id, record.Type == name && isOpen(record))
		}
	}
	for of, ids := range e.Each(scan.ArchivePrefix) {
		name, status, _ := strings.Cut(of, ":")
		for id := range ids {
			record := e.Records[id]
			x.findListed(e.Full(scan.ArchivePrefix+of), id, record.Type == name && record.Status == status)
		}
	}
	x.findLanes()
	x.findEnded()
	for id := range e.Each(keys.Data("")) {
		if _, there := e.Records[id]; !there {
			data := x.work.Data(jobs.ID(id))
			e.Add(data, "is of a job that is not there", "removed",
				[]exam.Check{exam.Is(1, "EXISTS", data), x.isGone(id)}, exam.Command{"DEL", data})
		}
	}
}

func isOpen(r scan.Record) bool {
	return r.Status == string(jobs.Queued) || r.Status == string(jobs.InProgress)
}

// isGone checks that there is no record of a job.
func (x examination) isGone(id string) exam.Check {
	return exam.Is(0, "EXISTS", x.work.Job(jobs.ID(id)))
}

// unchanged checks that a job's record says what was read of it; also if there was none.
func (x examination) unchanged(id string) []exam.Check {
	job, r := x.work.Job(jobs.ID(id)), x.Records[id]
	return []exam.Check{exam.Is(r.Type, "HGET", job, "type"), exam.Is(r.Status, "HGET", job, "status")}
}

func (x examination) findTypes() {
	types, schedules := x.work.Types(), x.work.Schedules()
	for name := range x.Elements[keys.Types()] {
		if _, there := x.Elements[keys.Type(jobs.TypeName(name))]; !there {
			x.Add(types, "lists "+name+", which is not there", "removed", []exam.Check{
				exam.Is(1, "SISMEMBER", types, name), exam.Is(0, "EXISTS", x.work.Type(jobs.TypeName(name))),
			}, exam.Command{"SREM", types, name})
		}
	}
	for name, fields := range x.Each(keys.Type("")) {
		hash := x.work.Type(jobs.TypeName(name))
		if !x.Has(keys.Types(), name) {
			x.Add(hash, "is not in "+keys.Types(), "added there",
				[]exam.Check{exam.Is(1, "EXISTS", hash), exam.Is(0, "SISMEMBER", types, name)}, exam.Command{"SADD", types, name})
		}
		if fields["schedule"] != "" && fields["deleted"] != "1" && !x.Has(keys.Schedules(), name) {
			x.Add(hash, "has a schedule, and is not in "+keys.Schedules(), "added there, as of its last change", []exam.Check{
				exam.Is(fields["schedule"], "HGET", hash, "schedule"), exam.Not(1, "HGET", hash, "deleted"),
				exam.Is(0, "HEXISTS", schedules, name),
			}, exam.Command{"HSET", schedules, name, fields["updated_at"]})
		}
	}
	for name := range x.Elements[keys.Schedules()] {
		if x.Elements[keys.Type(jobs.TypeName(name))]["schedule"] == "" {
			x.Add(schedules, "lists "+name+", which has no schedule", "removed", []exam.Check{
				exam.Is(1, "HEXISTS", schedules, name), exam.Is(0, "HSTRLEN", x.work.Type(jobs.TypeName(name)), "schedule"),
			}, exam.Command{"HDEL", schedules, name})
		}
	}
}

// findForeign looks for types that belong to another partition. Nobody would look for them here.
// What is there of them is judged as that of others is.
func (x examination) findForeign() {
	if !x.Redis.IsOneOfSeveral() {
		return
	}
	for name := range x.Each(keys.Type("")) {
		if hash := x.work.Type(jobs.TypeName(name)); !x.Redis.Owns(name) {
			x.Add(hash, "belongs to another partition", "", []exam.Check{exam.Is(1, "EXISTS", hash)})
		}
	}
}

// findRecord looks at a record: what it says has to be in the lists, and its data there.
func (x examination) findRecord(id string, r scan.Record) {
	job, name := x.work.Job(jobs.ID(id)), jobs.TypeName(r.Type)
	checks := x.unchanged(id)
	if r.Type == "" || !isOpen(r) && !isArchived(r) {
		x.Add(job, "does not say what a job's record says", "", checks)
		return
	}
	if _, there := x.Elements[keys.Type(name)]; !there {
		x.Add(job, "is of the type "+r.Type+", which is not there", "",
			append(checks, exam.Is(0, "EXISTS", x.work.Type(name))))
		return
	}
	if _, there := x.Elements[keys.Data(jobs.ID(id))]; !there {
		x.Add(job, "has no data", "", append(checks, exam.Is(0, "EXISTS", x.work.Data(jobs.ID(id)))))
	}
	list, place := keys.Open(name), r.Sequence
	if !isOpen(r) {
		list, place = keys.Archive(name, jobs.Status(r.Status)), r.ArchivedAt
	}
	if !x.Has(list, id) {
		x.Add(job, "is not in "+list, "added there",
			append(checks, exam.Is("", "ZSCORE", x.Full(list), id)), exam.Command{"ZADD", x.Full(list), place, id})
	}
	if isOpen(r) {
		x.findPlace(id, r)
	}
}

func isArchived(r scan.Record) bool { return slices.Contains(jobs.Archived[:], jobs.Status(r.Status)) }

// inFlight is by how much the place of an entry in flight is below its sequence, as in
// lua/lib/wide.lua of the queue.
const inFlight = 1 << 52

// findPlace looks at where the entry of a job stands in its lane. One that is in progress must be
// marked so, and no other one, else the limit of its type is not kept.
func (x examination) findPlace(id string, r scan.Record) {
	short, entry := entries.Lane(bus.JobJob, r.Type), scan.EntryOf(id)
	lane, text := x.Full(short), x.Elements[short][entry]
	said := ""
	if score, err := strconv.ParseFloat(text, 64); err == nil {
		said = rdb.FormatScore(score)
	}
	marked, job := strings.HasPrefix(said, "-"), x.work.Job(jobs.ID(id))
	checks := append(x.unchanged(id), exam.Is(said, "ZSCORE", lane, entry))
	if r.Status == string(jobs.InProgress) && !marked {
		x.Add(job, "is in progress, and does not count against the limit of its type", "counted",
			checks, exam.Command{"ZADD", lane, r.Sequence - inFlight, entry})
	} else if r.Status == string(jobs.Queued) && marked {
		x.Add(job, "is queued, and counts as one in progress", "put in its place",
			checks, exam.Command{"ZADD", lane, r.Sequence, entry})
	}
}

// findListed looks at a job that a list has. It fits if it is there, and belongs there.
func (x examination) findListed(list, id string, fits bool) {
	if !fits {
		x.Add(list, "lists "+jobs.ID(id).String()+", which "+x.whatIs(id), "removed",
			append(x.unchanged(id), exam.Not("", "ZSCORE", list, id)), exam.Command{"ZREM", list, id})
	}
}

// whatIs says what has become of a job.
func (x examination) whatIs(id string) string {
	if r, there := x.Records[id]; there {
		return fmt.Sprintf("is %s, of the type %s", r.Status, r.Type)
	}
	return "is not there"
}

// findLanes looks for what stands in a lane though no job of its type waits or is in progress. The
// housekeeping wakes the next.
func (x examination) findLanes() {
	for name, standing := range x.Each(entries.Lane(bus.JobJob, "")) {
		lane := x.Jobs.Lane(bus.JobJob, name)
		for entry := range standing {
			id := scan.JobIn(bus.QueueJobs, entry)
			r := x.Records[id]
			switch {
			case id == "":
				x.Add(lane, "lists "+exam.ShowJob(entry)+", which is no job of a service", "removed",
					[]exam.Check{exam.Not("", "ZSCORE", lane, entry)}, exam.Command{"ZREM", lane, entry})
			case r.Type != name || !isOpen(r):
				x.Add(lane, "lists "+jobs.ID(id).String()+", which "+x.whatIs(id), "removed",
					append(x.unchanged(id), exam.Not("", "ZSCORE", lane, entry)), exam.Command{"ZREM", lane, entry})
			}
		}
	}
}

// findEnded looks for jobs in the index of the queue that have ended, or are not there.
func (x examination) findEnded() {
	index := x.Jobs.JobsIndex(bus.QueueJobs)
	for entry, j := range x.Queues[bus.QueueJobs].Entries {
		if id := scan.JobIn(bus.QueueJobs, entry); id != "" && j.Listed && !isOpen(x.Records[id]) {
			x.Add(index, "lists "+jobs.ID(id).String()+", which "+x.whatIs(id), "removed",
				append(x.unchanged(id), exam.Is(1, "SISMEMBER", index, entry)), exam.Command{"SREM", index, entry})
		}
	}
}
