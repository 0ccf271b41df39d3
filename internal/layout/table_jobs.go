package layout

import "routemaster/internal/rdb"

var jobRows = []Row{
	{Name: "JobTypes", Key: "work:types", Kind: rdb.Set, Whose: EachType, Words: "the names of all job types, those included that are being deleted"},
	{Name: "JobTypesOf", Key: "work:types:of:{client}", Kind: rdb.Set, Whose: EachType, Words: "the same, of one client; root has none"},
	{
		Name: "JobType", Key: "work:type:{type}", Kind: rdb.Hash, Whose: OfType, Words: "a job type",
		Fields: []Field{
			{"strategy", "set by clients, as the next ten"}, {"attempts", "how many a job has"}, {"concurrency", "how many jobs are in progress at most"},
			{"url", "empty for below `DOWNSTREAM_URL`, or `pull`"}, {"timeout", "ms"}, {"retention", "s"}, {"paused", "1 while it is"},
			{"schedule", "a cron expression"}, {"timezone", "of the schedule"}, {"schedule_data", "data of its jobs"},
			{"clients", "names with a space between, empty for all"},
			{"owner", "name of the client"}, {"created_at", "when (µs)"}, {"updated_at", "when (µs)"}, {"revision", "raised by every change"},
			{"clock", "the last number of its sequence, which is a time or a little later"},
			{"kept", "what it takes in its owner's account, with its jobs (bytes)"}, {"standing", "of its service"},
			{"hold", "raised when the service asks for time, or another is to be tried"},
			{"held_until", "until when (µs), while the service asks for time"}, {"holds", "how often in a row it asked"},
			{"wake_from", "a place, while the jobs behind it are woken after that"},
			{"schedule_shared", "where the data of its schedule's jobs is"},
			{"schedule_open", "ids of these jobs, all that have not ended among them"},
			{"skipped_at", "when its schedule skipped a time last (µs), while it does"}, {"skip_reason", "why"},
			{"deleted", "1 while a deletion is under way, or archived jobs are left"},
		},
	},
	{Name: "Schedules", Key: "work:schedules", Kind: rdb.Hash, Whose: EachType, Words: "type to the time that its schedule has enqueued last (µs)"},
	{
		Name: "Job", Key: "work:job:{job}", Kind: rdb.Hash, Whose: OfJob, Words: "a job, queued or archived; its data apart. A time of 0 is none",
		Fields: []Field{
			{"type", "name of its type"}, {"status", "queued, in progress or how it ended"}, {"attempts", "how many are left"},
			{"sequence", "its place in its lane, less 2^52 while it is in progress"}, {"created_at", "when (µs)"},
			{"run_after", "when (µs); absent for `created_at`"}, {"updated_at", "when (µs); absent for `created_at`"}, {"expires_at", "when (µs)"},
			{"worker", "the worker that has it pending"}, {"deadline", "when (µs)"},
			{"reported", "the last reports that were accepted, each an attempt and a status"},
			{"once", "1 for a job that is tried once, whatever its type says by now"},
			{"ended", "the attempt that a deadline or the death of a worker ended"}, {"hold", "its type's when it was taken"},
			{"reason", "the one for clients and the one for root, with the character 1F between, if they differ"},
			{"started", "when the last attempt began (µs)"}, {"archived_at", "when (µs)"}, {"traceparent", "of the request"},
			{"data", "where its data is, if it shares them"}, {"tries", "the last 20 attempts that failed or were put off, see below"},
			{"noted", "bytes of `tries`, with the `reason` of the last: they are in the account of the type's owner"},
		},
	},
	{Name: "JobData", Key: "work:data:{data}", Kind: rdb.String, Whose: OfData, Words: "a job's data as it was sent, unless [compacted](http-api.md#jobs)"},
	{Name: "JobCopies", Key: "work:copies:{data}", Kind: rdb.Set, Whose: OfData, Words: "the ids of the jobs that share data, if a job has shared it"},
	{Name: "OpenJobs", Key: "work:open:{type}", Kind: rdb.SortedSet, Whose: OfType, Words: "ids of a type's jobs that have not ended, by sequence"},
	{Name: "ArchivedJobs", Key: "work:archive:{type}:{status}", Kind: rdb.SortedSet, Whose: OfTypeBefore, Words: "ids of its archived jobs, by their time (µs), or a little later"},
	{Name: "RemovedJob", Key: "work:removed:{type}:{job}", Kind: rdb.String, Whose: OfTypeBefore, Expires: "after a day", Words: "until when (ms) the id of a removed job with `once` is refused"},
	{Name: "JobPulls", Key: "work:pulls", Kind: rdb.Stream, Whose: Never, Words: "one entry, renewed when there may be something to fetch"},
}

var machineRows = []Row{
	{
		Name: "Definitions", Key: "machines:definitions", Kind: rdb.Hash, Whose: Everywhere, Words: "the definitions of all machines",
		Fields: []Field{
			{"version", "from 1, raised by each change"}, {"applied_at", "when (ms)"}, {"yaml", "the definitions"},
			{"moves", "where the labels in states that have vanished go (JSON)"},
			{"outline", "each machine's states, true for gates (JSON): for a program that cannot read `yaml`"},
			{"preparing", "with partitions, while others are about to take their place: when that was prepared (ms) and a text of its own, and a line for each state that vanishes"},
		},
	},
	{
		Name: "Walks", Key: "machines:walks", Kind: rdb.Hash, Whose: Everywhere, Words: "walk to how far it has come (JSON), see below",
	},
	{
		Name: "Label", Key: "machines:label:{machine}/{label}", Kind: rdb.Hash, Whose: OfLabel, Words: "a label and its visit",
		Fields: []Field{
			{"state", "the state it is in"}, {"created_at", "when (ms)"}, {"entered_at", "when (ms)"}, {"by", "the client in whose account it is"},
			{"moves", "how many, ever"}, {"version", "how often the metadata were changed"}, {"previous", "the state before"},
			{"asked", "of the visit, as the next: the trigger that has come since a worker took the label"},
			{"taken", "a text of the call by which a worker has it"}, {"trigger", "the one before"},
			{"pending", "1 if it is evaluated again each minute"}, {"steps", "moves of the run"},
			{"failures", "of its evaluations"}, {"error", "of its evaluations"}, {"attempts", "of its action that failed"},
			{"status", "of its action"}, {"reason", "of its action, or of a label that is paused in its gate"}, {"errored_at", "when (ms), likewise"},
			{"acknowledged", "status of its webhook, if the label could not move at once as the definitions were replaced"},
			{"traceparent", "of the last traced request that had it looked at, until its run ends"},
			{"hops", "of the event of another move that had it looked at, until its run ends"},
			{"deleted_at", "when (ms); with `created_at` and `moves` it is kept for a day"},
		},
	},
	{Name: "LabelMetadata", Key: "machines:metadata:{machine}/{label}", Kind: rdb.String, Whose: OfLabel, Words: "its metadata, JSON"},
	{Name: "LabelHistory", Key: "machines:history:{machine}/{label}", Kind: rdb.List, Whose: OfLabel, Words: "its last moves, JSON, the latest first"},
	{Name: "LabelNames", Key: "machines:names:{machine}", Kind: rdb.SortedSet, Whose: EachLabel, Words: "names of its labels that are not deleted, scores 0"},
	{Name: "LabelsIn", Key: "machines:labels:{machine}:{state}", Kind: rdb.SortedSet, Whose: EachLabel, Words: "names of the labels in a state, scores 0"},
	{Name: "ErroredLabels", Key: "machines:errored:{machine}", Kind: rdb.SortedSet, Whose: EachLabel, Words: "names of its errored labels, scores 0"},
	{Name: "MachineOutbox", Key: "machines:outbox:{machine}", Kind: rdb.List, Whose: Own, Words: "its moves that are to be published, the oldest first"},
	{
		Name: "MachinePublished", Key: "machines:published:{machine}", Kind: rdb.Hash, Whose: Own, Exact: true, Words: "how far that has come",
		Fields: []Field{{"count", "how many moves ever came into the outbox"}, {"last", "number of the last one that is being published"}},
	},
	{Name: "MachineStandings", Key: "machines:standings:{machine}", Kind: rdb.Hash, Whose: Everywhere, Words: "state to the standing of its webhook or feeds"},
}
