package layout

import "routemaster/internal/rdb"

// FieldPage is the page with the fields of hashes, and with tables of keys.
const FieldPage = "docs/fields-in-redis.md"

// internals is the page with the keys of the bus.
const internals = "INTERNALS.md"

// namespace gives all scripts the prefix of all keys, as the queue's library is the first. No
// script declares KEYS: which keys an entry concerns is only known inside.
const namespace = "local ns = ARGV[1]\n"

// Groups are the table. The functions of keys are in the order of the rows.
var Groups = []Group{
	{Name: "bus", Lua: "store/lua/lib/keys.lua", Page: internals, Rows: busRows},
	{Name: "queue", Lua: "queue/lua/lib/keys.lua", Head: namespace, Page: internals, Rows: queueRows},
	{Name: "accounts", Lua: "account/lua/keys.lua", Page: internals, Rows: accountRows},
	{Name: "letters", Lua: "store/lua/lib/keys.lua", Page: FieldPage, Rows: letterRows},
	{Name: "console", Lua: "console/lua/keys.lua", Page: FieldPage, Rows: consoleRows},
	{Name: "partitions", Lua: "store/lua/lib/relay_keys.lua", Page: FieldPage, Rows: partitionRows},
	{Name: "jobs", Lua: "jobs/lua/lib/keys.lua", Page: FieldPage, Rows: jobRows},
	{Name: "machines", Lua: "machines/engine/lua/lib/keys.lua", Page: FieldPage, Rows: machineRows},
}

var busRows = []Row{
	{Name: "Topics", Key: "topics", Kind: rdb.Set, Whose: EachTopic, Founding: true, Words: "all topic names"},
	{
		Name: "Topic", Key: "topic:{name}", Kind: rdb.Hash, Whose: OfTopic, Founding: true, Exact: true,
		Words: "a topic",
		Fields: []Field{
			{"publisher", "token of the client that publishes to it"},
			{"counter", "how many events it received, ever"},
			{"last_event", "the last of them, packed"},
		},
	},
	{
		Name: "History", Key: "history:{name}", Kind: rdb.List, Whose: OfTopic,
		Words: "what the topic received, oldest first: 8 bytes of time (ms), then the packed event",
	},
	{
		Name: "HistoryLimits", Key: "history:limits:{name}", Kind: rdb.Hash, Whose: OfTopic, Exact: true,
		Words: "the limits of a history that has some, and its state; it goes with the history",
		Fields: []Field{
			{"events", "limit: how many"}, {"age", "limit: how old (ms)"}, {"bytes", "limit: how large"},
			{"first", "position of the oldest entry, or of the next event if there is none"},
			{"size", "bytes of the entries"},
			{"last", "when the newest was received (ms)"},
		},
	},
	{Name: "Owners", Key: "topic_owners", Kind: rdb.Hash, Whose: EachTopic, Words: "topic to the name of the client that owns it or first named it"},
	{Name: "Owned", Key: "topic_owners:counts", Kind: rdb.Hash, Whose: Counted, Words: "client name to the number of its topics, without zeros"},
	{Name: "Unused", Key: "topic_owners:unused", Kind: rdb.Hash, Whose: EachTopic, Words: "topic to when it was first seen without publisher, subscriber and event"},
	{Name: "Subscribers", Key: "subscribers", Kind: rdb.Set, Whose: EachToken, Founding: true, Words: "all subscribers' tokens"},
	{Name: "TopicSubscribers", Key: "subscribers:{name}", Kind: rdb.Set, Whose: EachToken, Founding: true, Words: "the tokens subscribed to a topic"},
	{Name: "SubscriberTopics", Key: "topics:{token}", Kind: rdb.Set, Whose: OfToken, Founding: true, Words: "the topics a subscriber is subscribed to"},
	{
		Name: "Subscriber", Key: "subscriber:{token}", Kind: rdb.Hash, Whose: OfToken, Founding: true, Exact: true,
		Words: "the subscription and its health",
		Fields: []Field{
			{"callback", "URL to send events to"}, {"timeout", "how long events may wait for others (ms)"},
			{"max_events", "how many events a batch may have"}, {"uuid", "credential of its deliveries"},
			{"health_points", "0 to 100"}, {"last_attempted_at", "when a delivery was last attempted (ms)"},
		},
	},
	{
		Name: "Delivery", Key: "delivery:{token}", Kind: rdb.Hash, Whose: OfToken, Exact: true,
		Words: "what the deliveries to a subscriber have shown; it goes with the subscriber",
		Fields: []Field{
			{"name", "the client's name"}, {"events_sent", "how many were acknowledged, ever"},
			{"refusals", "deliveries refused since the last success"}, {"refused_since", "when the first of these was (ms)"},
			{"throttled_until", "absent if nothing failed since the last success, 0 if the client has subscribed again since, else until when (ms); with `events_sent` the standing"},
			{"retried_at", "when a refused batch was tried again (ms), while that is done now and then"},
			{"plan", "version of the options"}, {"paused_until", "until when deliveries are paused (ms)"}, {"paced_until", "until when they are paced (ms)"},
			{"test", "UID of the test event that waits"},
			{"overtaken", "UIDs of batches in flight when the subscription was last mended: if they fail, they are tried again at once and nothing is throttled"},
			{"notices", "UIDs of its gap notices in the queue; some may be gone"},
			{"ahead", "how many of its batches may be taken ahead: 1, 3 or 7; absent for none"},
			{"former", "UIDs of batches of a deleted subscription that were in flight when its client subscribed again: they are not delivered again"},
		},
	},
	{Name: "Tokens", Key: "api_tokens:by_token", Kind: rdb.Hash, Whose: Everywhere, Founding: true, Words: "token to client name"},
	{Name: "Rotations", Key: "api_tokens:rotations", Kind: rdb.Hash, Whose: Everywhere, Words: "token to the new one that takes its place, until that is done"},
	{Name: "TokensUsed", Key: "api_tokens:used", Kind: rdb.Hash, Whose: First, Words: "token to when it was last used (ms), to the minute"},
	{
		Name: "Identity", Key: rdb.IdentityKey, Kind: rdb.Hash, Whose: Never,
		Words: "by which processes notice that Redis has lost data",
		Fields: []Field{
			{"id", "drawn by chance"}, {"ticks", "every process adds to it every 5 s"},
			{"before", "the id before a loss, if it is a new one"}, {"lost", "`empty`, `deleted`, `other` or `older`"},
			{"lost_at", "when the loss was noticed (ms)"}, {"losses", "how many there were"},
		},
	},
	{Name: "Batch", Key: "batch:{bid}", Kind: rdb.List, Whose: OfBatch, Founding: true, Words: "token, creation time, attempts, then the packed events, oldest first"},
	{Name: "Current", Key: "batches:current:{token}", Kind: rdb.Set, Whose: OfToken, Founding: true, Words: "the UIDs of the subscriber's current batches, at most one"},
	{
		Name: "CurrentOfLane", Key: "batches:current:{token}/{n}", Kind: rdb.Set, Whose: OfToken, Zero: "Current",
		Words: "the same, of its lanes but the first",
	},
	{
		Name: "Failed", Key: "batches:failed:{token}", Kind: rdb.SortedSet, Whose: OfToken, Expires: "2 days after the last failure",
		Words: "its batches whose last delivery failed, see [deliveries](docs/fields-in-redis.md#deliveries)",
	},
	{Name: "Traceparents", Key: "batches:traceparents:{bid}", Kind: rdb.List, Whose: OfBatch, Expires: "after 24 h", Words: "`traceparent;tracestate` of up to 8 publishes"},
	{
		Name: "BatchState", Key: "batches:state:{bid}", Kind: rdb.Hash, Whose: OfBatch,
		Words: "what a batch needs beyond its list; it goes with the batch",
		Fields: []Field{
			{"lane", "number of its lane, unless that is 0"},
			{"revision", "how often its content has changed since it was closed"}, {"refusals", "of its content"},
			{"suspect", "one of so many first events is refused"}, {"webhook_id", "the id that its content had as a dead letter"},
			{"test", "1 for a test event"}, {"replay", "UID of its replay"}, {"gap", "1 for a gap notice"},
		},
	},
	{Name: "Original", Key: "batches:{bid}", Kind: rdb.List, Whose: OfBatch, Founding: true, Words: "where the Ruby original has a batch"},
	{
		Name: "Options", Key: "options:{token}", Kind: rdb.Hash, Whose: OfToken,
		Words: "option to its value (JSON), if not the default, and more; it goes with the subscriber",
		Fields: []Field{
			{"plan", "version of the options"}, {"secrets", "signing secrets (JSON), sealed"},
			{"past_lanes", "how many lanes there were, if there were more, until nothing is queued"},
		},
	},
	{
		Name: "Plans", Key: "plans", Kind: rdb.Hash, Whose: EachPlan,
		Words: "what a publish must know besides: token to the version of its lanes; `/` and a topic to 1 if it keeps a history; `?` and a watched topic to its channel",
	},
	{
		Name: "Gaps", Key: "gaps:{token}", Kind: rdb.Hash, Whose: OfToken,
		Words: "what its gap notice tells that waits; it goes as the notice is taken",
		Fields: []Field{
			{"batch", "UID of the notice"}, {"events", "how many were lost"}, {"batches", "in how many batches"},
			{"since", "when the first of them was created (ms)"}, {"until", "when the last was (ms)"}, {"reason", "why they were lost"},
		},
	},
	{Name: "Retention", Key: "retention", Kind: rdb.Set, Whose: EachToken, Words: "the tokens of subscribers with `keep_age` or `keep_events`"},
	{Name: "Attempts", Key: "attempts:{token}", Kind: rdb.List, Whose: OfToken, Expires: "a week after the last", Words: "records of its last attempts (packed), latest first"},
	{Name: "BatchesIndex", Key: "batches:index", Kind: rdb.SortedSet, Whose: EachBatch, Founding: true, Words: "the UIDs of all batches, by creation time"},
	{Name: "EventGauge", Key: "batches:gauges:event", Kind: rdb.Hash, Whose: EachToken, Founding: true, Words: "token to the number of queued events, without zeros"},
	{Name: "BatchGauge", Key: "batches:gauges:batch", Kind: rdb.Hash, Whose: EachToken, Founding: true, Words: "token to the number of batches, without zeros"},
	{Name: "BytesGauge", Key: "batches:gauges:bytes", Kind: rdb.Hash, Whose: EachToken, Words: "token to the bytes of packed events that are queued, without zeros"},
	{Name: "Idempotency", Key: "idempotency:{client}/{slice}", Kind: rdb.Hash, Whose: Everywhere, Expires: "as a whole", Words: "a slice of a client's idempotency keys"},
	{Name: "Counters", Key: "counters", Kind: rdb.Hash, Whose: First, Founding: true, Words: "counter to its value, ever"},
	{Name: "Monitored", Key: "counters:monitored", Kind: rdb.Hash, Whose: First, Words: "the same, as last sent to a metric service"},
	{Name: "Migration", Key: "migration", Kind: rdb.String, Whose: Own, Expires: "by itself", Words: "there while the Ruby original may run too"},
	{Name: "Copying", Key: "copying", Kind: rdb.String, Whose: Never, Words: "since when (ms) a bus is being copied here: not all of it is there"},
}

// entriesOf are whose entries the queues have, and workersOf whose workers. Some queues are about
// the partition itself.
var (
	entriesOf = map[string]Whose{"main": EachEntry, "jobs": EachEntry, "machines": EachEntry, "aux": Own, "relay": Own}
	workersOf = map[string]Whose{"main": Everywhere, "jobs": Everywhere, "machines": Everywhere, "aux": Own, "relay": Own}
)

var queueRows = []Row{
	{Name: "JobsIndex", Key: "jobs:index:{q}", Kind: rdb.Set, Each: entriesOf, Founding: true, Words: "all jobs of queue `main`, `aux`, `jobs`, `machines` or `relay`, in any state"},
	{Name: "Scheduled", Key: "jobs:scheduled:{q}", Kind: rdb.SortedSet, Each: entriesOf, Founding: true, Words: "jobs to run later, by deadline"},
	{Name: "Instant", Key: "jobs:instant:{q}", Kind: rdb.List, Each: entriesOf, Founding: true, Words: "jobs to run now; see below"},
	{Name: "PendingIndex", Key: "jobs:pending:index:{q}", Kind: rdb.Set, Each: workersOf, Founding: true, Words: "the workers that may have a pending job"},
	{Name: "Pending", Key: "jobs:pending:{q}:{worker}", Kind: rdb.List, Whose: EachEntry, Founding: true, Words: "the one job that a worker is running"},
	{
		Name: "Lane", Key: "jobs:lane:{kind}:{lane}", Kind: rdb.SortedSet, Each: map[string]Whose{"batch": OfToken, "job": OfType},
		Words: "a lane's jobs in order; only while it has any",
	},
	{Name: "MaxInFlight", Key: "jobs:max_in_flight", Kind: rdb.Hash, Whose: Everywhere, Words: "kind to how many jobs of a lane may be in flight"},
	{Name: "Workers", Key: "workers", Kind: rdb.Hash, Whose: Everywhere, Founding: true, Words: "worker to when it was last active"},
}

var accountRows = []Row{
	{Name: "Accounts", Key: "accounts", Kind: rdb.Hash, Whose: Counted, Words: "client name to the bytes that it keeps, and more; see below"},
}

var letterRows = []Row{
	{Name: "DeadLetters", Key: "deadletters:index:{token}", Kind: rdb.SortedSet, Whose: OfToken, Words: "the UIDs of its dead letters by time of death"},
	{Name: "DeadLetter", Key: "deadletter:{bid}", Kind: rdb.List, Whose: OfLetter, Words: "events that died together, as a batch's list"},
	{
		Name: "DeadLetterCause", Key: "deadletter:why:{bid}", Kind: rdb.Hash, Whose: OfLetter,
		Words: "why and when it died; it goes with the dead letter",
		Fields: []Field{
			{"reason", "why it died"}, {"status", "of the last response"}, {"error", "of the last attempt"}, {"note", "more words"},
			{"webhook_id", "id of its deliveries"}, {"revision", "of the batch"}, {"bytes", "of the packed events"}, {"died_at", "when (ms)"},
			{"lane", "number of its lane, unless that is 0"},
		},
	},
	{Name: "DeadLetterEvents", Key: "deadletters:events", Kind: rdb.Hash, Whose: EachToken, Words: "token to the number of events in its dead letters, without zeros"},
	{Name: "DeadLetterBytes", Key: "deadletters:bytes", Kind: rdb.Hash, Whose: EachToken, Words: "token to the bytes of these events, without zeros"},
	{
		Name: "Replay", Key: "replay:{replay}", Kind: rdb.Hash, Whose: OfReplay, Expires: "a day after the replay has ended and its batches have gone",
		Words: "what a replay copies, and how far it is",
		Fields: []Field{
			{"token", "of the subscriber"}, {"topic", "its name"}, {"next", "position of the next event to copy"}, {"to", "position of the last"},
			{"copied", "how many events"}, {"skipped", "how many events"}, {"state", "`running`, `done`, `cancelled` or `failed`"},
			{"created_at", "when (ms)"}, {"asked", "the range of the request"}, {"error", "why it failed"},
		},
	},
	{Name: "RunningReplays", Key: "replays:running", Kind: rdb.Set, Whose: EachReplay, Words: "the UIDs of replays that copy, or have batches queued"},
	{Name: "ReplayBatches", Key: "replays:batches:{replay}", Kind: rdb.Set, Whose: OfReplay, Words: "the UIDs of a replay's batches that may be queued"},
	{Name: "Replays", Key: "replays:of:{token}", Kind: rdb.Set, Whose: OfToken, Expires: "with the last of them", Words: "the UIDs of a subscriber's replays"},
}

var consoleRows = []Row{
	{
		Name: "Session", Key: "console:session:{id}", Kind: rdb.Hash, Whose: First, Expires: "when it ends",
		Words: "a login; the id is the SHA-256 of its cookie",
		Fields: []Field{
			{"token", "of the client, empty for root"}, {"client", "its public name"}, {"person", "as typed"},
			{"from", "where it came from"}, {"look_only", "whether it may change nothing"}, {"made_at", "when (ms)"},
			{"proof", "an HMAC-SHA256, with the root key, of the cookie and of all these fields"},
		},
	},
	{Name: "Sessions", Key: "console:sessions", Kind: rdb.SortedSet, Whose: First, Expires: "with the last", Words: "the ids of at most 1,000 logins, by when they end"},
	{Name: "LoginCode", Key: "console:code:{id}", Kind: rdb.String, Whose: First, Expires: "with the link", Words: "a link that logs in, as JSON; the id is the SHA-256 of its code"},
	{Name: "LoginCodes", Key: "console:codes:{id}", Kind: rdb.List, Whose: First, Expires: "with the last", Words: "a client's last 20 such ids; its id is its token's SHA-256"},
	{Name: "SentForm", Key: "console:form:{id}", Kind: rdb.String, Whose: First, Expires: "by itself", Words: "that a form was sent; the id is the SHA-256 of its nonce"},
	{Name: "Activity", Key: "activity", Kind: rdb.List, Whose: First, Words: "the last 500 changes by root or in the console, as JSON, latest first"},
	{Name: "Processes", Key: "processes", Kind: rdb.Hash, Whose: Never, Words: "the id of each process to what it reports of itself every few seconds"},
	{
		Name: "SeriesSlot", Key: "series:{ring}:{slot}", Kind: rdb.String, Each: map[string]Whose{"fast": First, "slow": First},
		Expires: "after twice the range of its ring", Words: "a slot of what the figures have been",
	},
	{Name: "SeriesDay", Key: "series:day", Kind: rdb.Hash, Whose: First, Expires: "by itself", Words: "slot to the figures of the bus alone, every 10 min, 24 h"},
	{Name: "SeriesTurn", Key: "series:turn", Kind: rdb.String, Whose: Never, Expires: "with the turn", Words: "there while a worker has taken its turn to write slots"},
}

var partitionRows = []Row{
	{Name: "Partitions", Key: "partitions", Kind: rdb.String, Whose: Never, Words: "of the bus, under its namespace alone: how many there are, after `creating ` until all are there"},
	{Name: "Partition", Key: rdb.PartitionKey, Kind: rdb.String, Whose: Never, Words: "its number and how many there are, `7/12`; without it no script runs"},
	{Name: "Outboxes", Key: "relays:{name}", Kind: rdb.Hash, Whose: Own, Words: "at the topic's home: number of a partition that gets its events to the generation of the last subscription there"},
	{Name: "RelayGeneration", Key: "relay:generation", Kind: rdb.String, Whose: Own, Words: "the last generation that was given"},
	{Name: "Deleting", Key: "deleting:{name}", Kind: rdb.String, Whose: Never, Expires: "after 10 s", Words: "who deletes the topic just now"},
	{Name: "Outbox", Key: "relay:{partition}", Kind: rdb.List, Whose: Own, Words: "packed events on their way to a partition, the oldest first"},
	{Name: "RelayTaken", Key: "relay:taken", Kind: rdb.Hash, Whose: Own, Words: "number of a partition to what is on its way: UID, events, since when (ms)"},
	{Name: "RelayCarried", Key: "relay:carried", Kind: rdb.Hash, Whose: Own, Words: "number of a partition to how many events it has got, ever"},
	{
		Name: "RelayStarts", Key: "relay:starts", Kind: rdb.Hash, Whose: Own, Expires: "after 7 days",
		Words: "`topic token` of a subscription here to where it starts in the outbox of the topic's home: id and losses there, events before, ever",
	},
	{Name: "Relayed", Key: "relayed:{partition}", Kind: rdb.List, Whose: Own, Words: "UIDs of what came from a partition last, at most 100"},
}
