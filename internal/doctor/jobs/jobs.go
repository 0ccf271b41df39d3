// Package jobs examines the jobs of services: their types, records and data, the lists of those
// that have not ended and of archived ones, their entries in the queue, and the lanes that hold the
// limits of their types.
//
// An entry may be instant although its job has ended, or is scheduled too: who takes it next goes
// by the record. So only what the record lacks is wrong.
package jobs

import (
	"cmp"
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
		colon := strings.LastIndexByte(of, ':') // a type's name may have one
		name, status := of[:max(colon, 0)], of[colon+1:]
		for id := range ids {
			record := e.Records[id]
			x.findListed(e.Full(scan.ArchivePrefix+of), id, record.Type == name && record.Status == status)
		}
	}
	x.findLanes()
	x.findEnded()
	x.findCopies()
	x.findData()
}

// findCopies looks for jobs in the sets of those that share data whose records do not say so.
func (x examination) findCopies() {
	for of, ids := range x.Each(keys.Copies("")) {
		copies := x.work.Copies(jobs.ID(of))
		if _, there := x.Elements[keys.Data(jobs.ID(of))]; there && !x.hasJob(of) {
			continue // it goes with the data
		}
		for id := range ids {
			if x.Records[id].Shared != of {
				x.Add(copies, "lists "+jobs.ID(id).String()+", which does not share the data", "removed", []exam.Check{
					exam.Is(1, "SISMEMBER", copies, id), exam.Not(of, "HGET", x.work.Job(jobs.ID(id)), "data"),
				}, exam.Command{"SREM", copies, id})
			}
		}
	}
}

// findData looks for data that no job has. A job that begins to share it meanwhile is in its set.
func (x examination) findData() {
	for id := range x.Each(keys.Data("")) {
		if x.hasJob(id) {
			continue
		}
		data, copies, job := x.work.Data(jobs.ID(id)), x.work.Copies(jobs.ID(id)), x.work.Job(jobs.ID(id))
		r, there := x.Records[id]
		checks := []exam.Check{
			exam.Is(1, "EXISTS", data), exam.Is(len(x.Elements[keys.Copies(jobs.ID(id))]), "SCARD", copies),
			exam.Is(r.Shared, "HGET", job, "data"),
		}
		if !there {
			checks = append(checks, exam.Is(0, "EXISTS", job))
		}
		x.Add(data, "is of a job that is not there", "removed", checks, exam.Command{"DEL", data, copies})
	}
}

// hasJob reports whether data is that of a job, or of some that share it.
func (x examination) hasJob(data string) bool {
	if r, there := x.Records[data]; there && r.Shared == "" {
		return true
	}
	for id := range x.Elements[keys.Copies(jobs.ID(data))] {
		if x.Records[id].Shared == data {
			return true
		}
	}
	return false
}

func isOpen(r scan.Record) bool {
	return r.Status == string(jobs.Queued) || r.Status == string(jobs.InProgress)
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
		if owner := bus.ClientName(fields["owner"]); owner != "" && !x.Has(keys.TypesOf(owner), name) {
			of := x.work.TypesOf(owner)
			x.Add(hash, "is not in "+keys.TypesOf(owner), "added there", []exam.Check{
				exam.Is(string(owner), "HGET", hash, "owner"), exam.Is(0, "SISMEMBER", of, name),
			}, exam.Command{"SADD", of, name})
		}
		if fields["schedule"] != "" && fields["deleted"] != "1" && !x.Has(keys.Schedules(), name) {
			x.Add(hash, "has a schedule, and is not in "+keys.Schedules(), "added there, as of its last change", []exam.Check{
				exam.Is(fields["schedule"], "HGET", hash, "schedule"), exam.Not(1, "HGET", hash, "deleted"),
				exam.Is(0, "HEXISTS", schedules, name),
			}, exam.Command{"HSET", schedules, name, fields["updated_at"]})
		}
	}
	for owner, names := range x.Each(keys.TypesOf("")) {
		for name := range names {
			if hash := x.work.Type(jobs.TypeName(name)); x.Elements[keys.Type(jobs.TypeName(name))]["owner"] != owner {
				of := x.work.TypesOf(bus.ClientName(owner))
				x.Add(of, "lists "+name+", which is not the client's", "removed", []exam.Check{
					exam.Is(1, "SISMEMBER", of, name), exam.Not(owner, "HGET", hash, "owner"),
				}, exam.Command{"SREM", of, name})
			}
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
	at := jobs.ID(cmp.Or(r.Shared, id))
	if _, there := x.Elements[keys.Data(at)]; !there {
		x.Add(job, "has no data", "", append(checks, exam.Is(0, "EXISTS", x.work.Data(at))))
	}
	if copies := x.work.Copies(at); r.Shared != "" && !x.Has(keys.Copies(at), id) {
		x.Add(job, "shares data, and is not in "+keys.Copies(at), "added there", append(checks,
			exam.Is(r.Shared, "HGET", job, "data"), exam.Is(0, "SISMEMBER", copies, id)), exam.Command{"SADD", copies, id})
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
