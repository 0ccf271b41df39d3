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
	"routemaster/internal/wire"
)

// Record is the part of a job's record that the scan reads.
type Record struct {
	Type, Status string
	// Shared is where the data is that the job shares; empty for its own.
	Shared string
	// Sequence and ArchivedAt are in µs; the latter is 0 for a job that has not ended.
	Sequence, ArchivedAt int64
	// Noted is how many bytes it has that say why attempts failed.
	Noted int64
}

var recordFields = []string{"type", "status", "sequence", "archived_at", "data", "noted"}

// takeRecord takes in a job's record. One that is gone meanwhile has no field.
func (s *Scan) takeRecord(id string, values []any) {
	if len(values) != len(recordFields) || values[0] == nil && values[1] == nil && values[2] == nil {
		return
	}
	text := func(i int) string { return s.once(rdb.Text(values[i])) }
	s.Records[id] = Record{
		Type: text(0), Status: text(1), Shared: text(4),
		Sequence: rdb.Integer(rdb.Text(values[2]), 0), ArchivedAt: rdb.Integer(rdb.Text(values[3]), 0),
		Noted: rdb.Integer(rdb.Text(values[5]), 0),
	}
}

// EntryOf is the entry of a job in its queue.
func EntryOf(id string) string { return wire.PackJob(bus.Job{Name: bus.JobJob, Args: []string{id}}) }

// JobIn is the id of the job that an entry of a queue is about; empty if it is about something
// else.
func JobIn(q bus.Queue, packed string) string {
	if q != bus.QueueJobs {
		return ""
	}
	job, err := wire.UnpackJob(packed)
	if err != nil || job.Name != bus.JobJob || len(job.Args) != 1 || EntryOf(job.Args[0]) != packed {
		return ""
	}
	return job.Args[0]
}

// jobExam examines jobs. Its keys have the namespace.
type jobExam struct {
	*Examination
}

// findJobs looks for damage in types, records, lists, lanes and data.
func findJobs(e *Examination) {
	x := jobExam{e}
	x.findTypes()
	for id, record := range e.Records {
		x.findRecord(id, record)
	}
	for name, ids := range e.Each(keys.OpenJobs("")) {
		for id := range ids {
			record := e.Records[id]
			x.findListed(keys.OpenJobs(name), id, record.Type == name && isOpen(record))
		}
	}
	for of, ids := range e.Each(ArchivePrefix) {
		colon := strings.LastIndexByte(of, ':') // a type's name may have one
		name, status := of[:max(colon, 0)], of[colon+1:]
		for id := range ids {
			record := e.Records[id]
			x.findListed(ArchivePrefix+of, id, record.Type == name && record.Status == status)
		}
	}
	x.findLanes()
	x.findEnded()
	x.findCopies()
	x.findData()
}

// findCopies looks for jobs that a set lists as sharing data, though their records do not.
func (x jobExam) findCopies() {
	for of, ids := range x.Each(keys.JobCopies("")) {
		if _, there := x.Elements[keys.JobData(of)]; there && !x.hasJob(of) {
			continue // it goes with the data
		}
		for id := range ids {
			if x.Records[id].Shared != of {
				x.mustNotList(keys.JobCopies(of), "lists "+jobs.ID(id).String()+", which does not share the data", id,
					Not(of, "HGET", x.Keys.Job(id), "data"))
			}
		}
	}
}

// findData looks for data that no job has. A job that begins to share it meanwhile is in its set.
func (x jobExam) findData() {
	for id := range x.Each(keys.JobData("")) {
		if x.hasJob(id) {
			continue
		}
		data, copies, job := x.Keys.JobData(id), x.Keys.JobCopies(id), x.Keys.Job(id)
		r, there := x.Records[id]
		checks := []Check{
			Is(1, "EXISTS", data), Is(len(x.Elements[keys.JobCopies(id)]), "SCARD", copies),
			Is(r.Shared, "HGET", job, "data"),
		}
		if !there {
			checks = append(checks, Is(0, "EXISTS", job))
		}
		x.Add(data, "is of a job that is not there", "removed", checks, Command{"DEL", data, copies})
	}
}

// hasJob reports whether a job owns or shares the data.
func (x jobExam) hasJob(data string) bool {
	if r, there := x.Records[data]; there && r.Shared == "" {
		return true
	}
	for id := range x.Elements[keys.JobCopies(data)] {
		if x.Records[id].Shared == data {
			return true
		}
	}
	return false
}

func isOpen(r Record) bool {
	return r.Status == string(jobs.Queued) || r.Status == string(jobs.InProgress)
}

// unchanged checks that a job's record, or its absence, is as scanned.
func (x jobExam) unchanged(id string) []Check {
	job, r := x.Keys.Job(id), x.Records[id]
	return []Check{Is(r.Type, "HGET", job, "type"), Is(r.Status, "HGET", job, "status")}
}

func (x jobExam) findTypes() {
	for name := range x.Elements[keys.JobTypes()] {
		if _, there := x.Elements[keys.JobType(name)]; !there {
			x.mustNotList(keys.JobTypes(), "lists "+name+", which is not there", name, Is(0, "EXISTS", x.Keys.JobType(name)))
		}
	}
	for name, fields := range x.Each(keys.JobType("")) {
		key, hash := keys.JobType(name), x.Keys.JobType(name)
		x.mustList(key, keys.JobTypes(), name, nil)
		if owner := fields["owner"]; owner != "" {
			x.mustList(key, keys.JobTypesOf(bus.ClientName(owner)), name, nil, Is(owner, "HGET", hash, "owner"))
		}
		if fields["schedule"] != "" && fields["deleted"] != "1" && !x.Has(keys.Schedules(), name) {
			x.mustListAs(key, "has a schedule, and is not in "+keys.Schedules(), "added there, as of its last change",
				keys.Schedules(), name, fields["updated_at"],
				Is(fields["schedule"], "HGET", hash, "schedule"), Not(1, "HGET", hash, "deleted"))
		}
	}
	for owner, names := range x.Each(keys.JobTypesOf("")) {
		for name := range names {
			if x.Elements[keys.JobType(name)]["owner"] != owner {
				x.mustNotList(keys.JobTypesOf(bus.ClientName(owner)), "lists "+name+", which is not the client's", name,
					Not(owner, "HGET", x.Keys.JobType(name), "owner"))
			}
		}
	}
	for name := range x.Elements[keys.Schedules()] {
		if x.Elements[keys.JobType(name)]["schedule"] == "" {
			x.mustNotList(keys.Schedules(), "lists "+name+", which has no schedule", name,
				Is(0, "HSTRLEN", x.Keys.JobType(name), "schedule"))
		}
	}
}

// findRecord checks a record: the lists must match it, and its data must exist.
func (x jobExam) findRecord(id string, r Record) {
	job, name := x.Keys.Job(id), r.Type
	checks := x.unchanged(id)
	if r.Type == "" || !isOpen(r) && !isArchived(r) {
		x.Add(job, "does not say what a job's record says", "", checks)
		return
	}
	if _, there := x.Elements[keys.JobType(name)]; !there {
		x.Add(job, "is of the type "+r.Type+", which is not there", "",
			append(checks, Is(0, "EXISTS", x.Keys.JobType(name))))
		return
	}
	at := cmp.Or(r.Shared, id)
	if _, there := x.Elements[keys.JobData(at)]; !there {
		x.Add(job, "has no data", "", append(checks, Is(0, "EXISTS", x.Keys.JobData(at))))
	}
	if copies := keys.JobCopies(at); r.Shared != "" && !x.Has(copies, id) {
		x.mustListAs(keys.Job(id), "shares data, and is not in "+copies, "added there", copies, id, nil,
			append(checks, Is(r.Shared, "HGET", job, "data"))...)
	}
	list, place := keys.OpenJobs(name), r.Sequence
	if !isOpen(r) {
		list, place = keys.ArchivedJobs(name, r.Status), r.ArchivedAt
	}
	x.mustList(keys.Job(id), list, id, place, checks...)
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
	short, entry := keys.Lane(bus.JobJob, r.Type), EntryOf(id)
	lane, text := x.Full(short), x.Elements[short][entry]
	said := ""
	if score, err := strconv.ParseFloat(text, 64); err == nil {
		said = rdb.FormatScore(score)
	}
	marked, job := strings.HasPrefix(said, "-"), x.Keys.Job(id)
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
		x.mustNotList(list, "lists "+jobs.ID(id).String()+", which "+x.whatIs(id), id, x.unchanged(id)...)
	}
}

// whatIs describes a job's current state.
func (x jobExam) whatIs(id string) string {
	if r, there := x.Records[id]; there {
		return fmt.Sprintf("is %s, of the type %s", r.Status, r.Type)
	}
	return "is not there"
}

// findLanes looks for entries of a lane without an open job of its type. The housekeeping wakes the
// next one.
func (x jobExam) findLanes() {
	for name, standing := range x.Each(keys.Lane(bus.JobJob, "")) {
		lane := keys.Lane(bus.JobJob, name)
		for entry := range standing {
			id := JobIn(bus.QueueJobs, entry)
			r := x.Records[id]
			switch {
			case id == "":
				x.mustNotList(lane, "lists "+ShowJob(entry)+", which is no job of a service", entry)
			case r.Type != name || !isOpen(r):
				x.mustNotList(lane, "lists "+jobs.ID(id).String()+", which "+x.whatIs(id), entry, x.unchanged(id)...)
			}
		}
	}
}

// findEnded looks for jobs in the index of the queue that have ended, or are not there.
func (x jobExam) findEnded() {
	for entry, j := range x.Queues[bus.QueueJobs].Entries {
		if id := JobIn(bus.QueueJobs, entry); id != "" && j.Listed && !isOpen(x.Records[id]) {
			x.mustNotList(keys.JobsIndex(bus.QueueJobs), "lists "+jobs.ID(id).String()+", which "+x.whatIs(id), entry,
				x.unchanged(id)...)
		}
	}
}

// findWork looks for jobs that have not ended and whose queue entry is missing.
func findWork(e *Examination) {
	x := jobExam{e}
	open := func(yield func(string) bool) {
		for id, r := range e.Records {
			if isOpen(r) && !yield(EntryOf(id)) {
				return
			}
		}
	}
	e.findMissing(bus.QueueJobs, open, func(entry string) (string, []Check) {
		id := JobIn(bus.QueueJobs, entry)
		return x.Keys.Job(id), x.unchanged(id)
	})
}
