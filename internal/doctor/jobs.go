package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/rdb"
)

// jobExam is that of jobs. Its keys have the namespace.
type jobExam struct {
	*Examination
	work jobs.Keys
}

// findJobs looks for what does not fit in types, records, lists, lanes and data.
func findJobs(e *Examination) {
	x := jobExam{e, jobs.Keys{Namespace: e.Keys.Namespace}}
	x.findTypes()
	x.findForeign()
	for id, record := range e.Records {
		x.findRecord(id, record)
	}
	for name, ids := range e.Each(work.Open("")) {
		for id := range ids {
			record := e.Records[id]
			x.findListed(x.work.Open(jobs.TypeName(name)), id, record.Type == name && isOpen(record))
		}
	}
	for of, ids := range e.Each(ArchivePrefix) {
		colon := strings.LastIndexByte(of, ':') // a type's name may have one
		name, status := of[:max(colon, 0)], of[colon+1:]
		for id := range ids {
			record := e.Records[id]
			x.findListed(e.Full(ArchivePrefix+of), id, record.Type == name && record.Status == status)
		}
	}
	x.findLanes()
	x.findEnded()
	x.findCopies()
	x.findData()
}

// findCopies looks for jobs in the sets of those that share data whose records do not say so.
func (x jobExam) findCopies() {
	for of, ids := range x.Each(work.Copies("")) {
		copies := x.work.Copies(jobs.ID(of))
		if _, there := x.Elements[work.Data(jobs.ID(of))]; there && !x.hasJob(of) {
			continue // it goes with the data
		}
		for id := range ids {
			if x.Records[id].Shared != of {
				x.Add(copies, "lists "+jobs.ID(id).String()+", which does not share the data", "removed", []Check{
					Is(1, "SISMEMBER", copies, id), Not(of, "HGET", x.work.Job(jobs.ID(id)), "data"),
				}, Command{"SREM", copies, id})
			}
		}
	}
}

// findData looks for data that no job has. A job that begins to share it meanwhile is in its set.
func (x jobExam) findData() {
	for id := range x.Each(work.Data("")) {
		if x.hasJob(id) {
			continue
		}
		data, copies, job := x.work.Data(jobs.ID(id)), x.work.Copies(jobs.ID(id)), x.work.Job(jobs.ID(id))
		r, there := x.Records[id]
		checks := []Check{
			Is(1, "EXISTS", data), Is(len(x.Elements[work.Copies(jobs.ID(id))]), "SCARD", copies),
			Is(r.Shared, "HGET", job, "data"),
		}
		if !there {
			checks = append(checks, Is(0, "EXISTS", job))
		}
		x.Add(data, "is of a job that is not there", "removed", checks, Command{"DEL", data, copies})
	}
}

// hasJob reports whether data is that of a job, or of some that share it.
func (x jobExam) hasJob(data string) bool {
	if r, there := x.Records[data]; there && r.Shared == "" {
		return true
	}
	for id := range x.Elements[work.Copies(jobs.ID(data))] {
		if x.Records[id].Shared == data {
			return true
		}
	}
	return false
}

func isOpen(r Record) bool {
	return r.Status == string(jobs.Queued) || r.Status == string(jobs.InProgress)
}

// unchanged checks that a job's record says what was read of it; also if there was none.
func (x jobExam) unchanged(id string) []Check {
	job, r := x.work.Job(jobs.ID(id)), x.Records[id]
	return []Check{Is(r.Type, "HGET", job, "type"), Is(r.Status, "HGET", job, "status")}
}

func (x jobExam) findTypes() {
	types, schedules := x.work.Types(), x.work.Schedules()
	for name := range x.Elements[work.Types()] {
		if _, there := x.Elements[work.Type(jobs.TypeName(name))]; !there {
			x.Add(types, "lists "+name+", which is not there", "removed", []Check{
				Is(1, "SISMEMBER", types, name), Is(0, "EXISTS", x.work.Type(jobs.TypeName(name))),
			}, Command{"SREM", types, name})
		}
	}
	for name, fields := range x.Each(work.Type("")) {
		hash := x.work.Type(jobs.TypeName(name))
		if !x.Has(work.Types(), name) {
			x.Add(hash, "is not in "+work.Types(), "added there",
				[]Check{Is(1, "EXISTS", hash), Is(0, "SISMEMBER", types, name)}, Command{"SADD", types, name})
		}
		if owner := bus.ClientName(fields["owner"]); owner != "" && !x.Has(work.TypesOf(owner), name) {
			of := x.work.TypesOf(owner)
			x.Add(hash, "is not in "+work.TypesOf(owner), "added there", []Check{
				Is(string(owner), "HGET", hash, "owner"), Is(0, "SISMEMBER", of, name),
			}, Command{"SADD", of, name})
		}
		if fields["schedule"] != "" && fields["deleted"] != "1" && !x.Has(work.Schedules(), name) {
			x.Add(hash, "has a schedule, and is not in "+work.Schedules(), "added there, as of its last change", []Check{
				Is(fields["schedule"], "HGET", hash, "schedule"), Not(1, "HGET", hash, "deleted"),
				Is(0, "HEXISTS", schedules, name),
			}, Command{"HSET", schedules, name, fields["updated_at"]})
		}
	}
	for owner, names := range x.Each(work.TypesOf("")) {
		for name := range names {
			if hash := x.work.Type(jobs.TypeName(name)); x.Elements[work.Type(jobs.TypeName(name))]["owner"] != owner {
				of := x.work.TypesOf(bus.ClientName(owner))
				x.Add(of, "lists "+name+", which is not the client's", "removed", []Check{
					Is(1, "SISMEMBER", of, name), Not(owner, "HGET", hash, "owner"),
				}, Command{"SREM", of, name})
			}
		}
	}
	for name := range x.Elements[work.Schedules()] {
		if x.Elements[work.Type(jobs.TypeName(name))]["schedule"] == "" {
			x.Add(schedules, "lists "+name+", which has no schedule", "removed", []Check{
				Is(1, "HEXISTS", schedules, name), Is(0, "HSTRLEN", x.work.Type(jobs.TypeName(name)), "schedule"),
			}, Command{"HDEL", schedules, name})
		}
	}
}

// findForeign looks for types that belong to another partition. Nobody would look for them here.
// What is there of them is judged as that of others is.
func (x jobExam) findForeign() {
	if !x.Redis.IsOneOfSeveral() {
		return
	}
	for name := range x.Each(work.Type("")) {
		if hash := x.work.Type(jobs.TypeName(name)); !x.Redis.Owns(name) {
			x.Add(hash, "belongs to another partition", "", []Check{Is(1, "EXISTS", hash)})
		}
	}
}

// findRecord looks at a record: what it says has to be in the lists, and its data there.
func (x jobExam) findRecord(id string, r Record) {
	job, name := x.work.Job(jobs.ID(id)), jobs.TypeName(r.Type)
	checks := x.unchanged(id)
	if r.Type == "" || !isOpen(r) && !isArchived(r) {
		x.Add(job, "does not say what a job's record says", "", checks)
		return
	}
	if _, there := x.Elements[work.Type(name)]; !there {
		x.Add(job, "is of the type "+r.Type+", which is not there", "",
			append(checks, Is(0, "EXISTS", x.work.Type(name))))
		return
	}
	at := jobs.ID(cmp.Or(r.Shared, id))
	if _, there := x.Elements[work.Data(at)]; !there {
		x.Add(job, "has no data", "", append(checks, Is(0, "EXISTS", x.work.Data(at))))
	}
	if copies := x.work.Copies(at); r.Shared != "" && !x.Has(work.Copies(at), id) {
		x.Add(job, "shares data, and is not in "+work.Copies(at), "added there", append(checks,
			Is(r.Shared, "HGET", job, "data"), Is(0, "SISMEMBER", copies, id)), Command{"SADD", copies, id})
	}
	list, place := work.Open(name), r.Sequence
	if !isOpen(r) {
		list, place = work.Archive(name, jobs.Status(r.Status)), r.ArchivedAt
	}
	if !x.Has(list, id) {
		x.Add(job, "is not in "+list, "added there",
			append(checks, Is("", "ZSCORE", x.Full(list), id)), Command{"ZADD", x.Full(list), place, id})
	}
	if isOpen(r) {
		x.findPlace(id, r)
	}
}

func isArchived(r Record) bool { return slices.Contains(jobs.Archived[:], jobs.Status(r.Status)) }

// inFlight is by how much the place of an entry in flight is below its sequence, as in
// lua/lib/wide.lua of the queue.
const inFlight = 1 << 52

// findPlace looks at where the entry of a job stands in its lane. One that is in progress must be
// marked so, and no other one, else the limit of its type is not kept.
func (x jobExam) findPlace(id string, r Record) {
	short, entry := queues.Lane(bus.JobJob, r.Type), EntryOf(id)
	lane, text := x.Full(short), x.Elements[short][entry]
	said := ""
	if score, err := strconv.ParseFloat(text, 64); err == nil {
		said = rdb.FormatScore(score)
	}
	marked, job := strings.HasPrefix(said, "-"), x.work.Job(jobs.ID(id))
	checks := append(x.unchanged(id), Is(said, "ZSCORE", lane, entry))
	if r.Status == string(jobs.InProgress) && !marked {
		x.Add(job, "is in progress, and does not count against the limit of its type", "counted",
			checks, Command{"ZADD", lane, r.Sequence - inFlight, entry})
	} else if r.Status == string(jobs.Queued) && marked {
		x.Add(job, "is queued, and counts as one in progress", "put in its place",
			checks, Command{"ZADD", lane, r.Sequence, entry})
	}
}

// findListed looks at a job that a list has. It fits if it is there, and belongs there.
func (x jobExam) findListed(list, id string, fits bool) {
	if !fits {
		x.Add(list, "lists "+jobs.ID(id).String()+", which "+x.whatIs(id), "removed",
			append(x.unchanged(id), Not("", "ZSCORE", list, id)), Command{"ZREM", list, id})
	}
}

// whatIs says what has become of a job.
func (x jobExam) whatIs(id string) string {
	if r, there := x.Records[id]; there {
		return fmt.Sprintf("is %s, of the type %s", r.Status, r.Type)
	}
	return "is not there"
}

// findLanes looks for what stands in a lane though no job of its type waits or is in progress. The
// housekeeping wakes the next.
func (x jobExam) findLanes() {
	for name, standing := range x.Each(queues.Lane(bus.JobJob, "")) {
		lane := x.Jobs.Lane(bus.JobJob, name)
		for entry := range standing {
			id := JobIn(bus.QueueJobs, entry)
			r := x.Records[id]
			switch {
			case id == "":
				x.Add(lane, "lists "+ShowJob(entry)+", which is no job of a service", "removed",
					[]Check{Not("", "ZSCORE", lane, entry)}, Command{"ZREM", lane, entry})
			case r.Type != name || !isOpen(r):
				x.Add(lane, "lists "+jobs.ID(id).String()+", which "+x.whatIs(id), "removed",
					append(x.unchanged(id), Not("", "ZSCORE", lane, entry)), Command{"ZREM", lane, entry})
			}
		}
	}
}

// findEnded looks for jobs in the index of the queue that have ended, or are not there.
func (x jobExam) findEnded() {
	index := x.Jobs.JobsIndex(bus.QueueJobs)
	for entry, j := range x.Queues[bus.QueueJobs].Entries {
		if id := JobIn(bus.QueueJobs, entry); id != "" && j.Listed && !isOpen(x.Records[id]) {
			x.Add(index, "lists "+jobs.ID(id).String()+", which "+x.whatIs(id), "removed",
				append(x.unchanged(id), Is(1, "SISMEMBER", index, entry)), Command{"SREM", index, entry})
		}
	}
}
