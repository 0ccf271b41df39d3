package doctor

import (
	"slices"
	"strings"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/machines/engine"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// The other keys without a namespace.
var (
	work = jobs.Keys{}
	// labels are the keys of state machines.
	labels = engine.Keys{}
	relay  = store.Keys{}
)

// What an earlier version of the bus had under other names.
const (
	OldTraceparents = "batches:origins:"
	OldLane         = "batches:line:"
)

// ArchivePrefix is of the lists of archived jobs: their type and status follow.
const ArchivePrefix = "work:archive:"

// removedPrefix begins the keys that remember removed jobs: their type and id follow.
const removedPrefix = "work:removed:"

// What the keys of labels begin with: the machine, a slash and the name follow or, of the lists,
// the machine, a colon and the state.
const (
	labelPrefix    = "machines:label:"
	MetadataPrefix = "machines:metadata:"
	MovesPrefix    = "machines:history:"
	LabelsPrefix   = "machines:labels:"
)

// The fields of hashes. The old ones of subscribers are in their deliveries today, or gone.
var (
	topicFields      = []string{"publisher", "counter", "last_event"}
	historyFields    = []string{"events", "age", "bytes", "first", "size", "last"}
	subscriberFields = []string{"callback", "timeout", "max_events", "uuid", "health_points", "last_attempted_at"}
	deliveryFields   = []string{"name", "events_sent", "throttled_until", "refusals", "refused_since", "plan", "paused_until", "paced_until", "test", "overtaken", "retried_at", "notices", "ahead", "former"}
	publishedFields  = []string{"count", "last"}
	OldFields        = []string{"events_sent", "throttled_until", "abreast"}
)

// Singles are the keys of which there is one, with their types.
var Singles = func() map[string]rdb.Kind {
	singles := map[string]rdb.Kind{
		keys.Topics(): rdb.Set, keys.Subscribers(): rdb.Set, keys.BatchesIndex(): rdb.SortedSet,
		keys.Counters(): rdb.Hash, keys.Monitored(): rdb.Hash, keys.Owners(): rdb.Hash,
		keys.Owned(): rdb.Hash, keys.Unused(): rdb.Hash, keys.Tokens(): rdb.Hash,
		keys.Rotations(): rdb.Hash, keys.Identity(): rdb.Hash, keys.BatchGauge(): rdb.Hash, keys.EventGauge(): rdb.Hash, keys.BytesGauge(): rdb.Hash,
		keys.DeadLetterEvents(): rdb.Hash, keys.DeadLetterBytes(): rdb.Hash, keys.RunningReplays(): rdb.Set,
		// Of internal/overview/samples:
		"processes": rdb.Hash, "series:day": rdb.Hash, "series:turn": rdb.String,
		keys.Plans(): rdb.Hash, keys.Retention(): rdb.Set,
		account.Keys{}.Accounts(): rdb.Hash,
		work.Types():              rdb.Set, work.Schedules(): rdb.Hash, work.Pulls(): rdb.Stream,
		labels.Definitions(): rdb.Hash, labels.Walks(): rdb.Hash,
		"console:sessions": rdb.SortedSet, "activity": rdb.List, "api_tokens:used": rdb.Hash,
		keys.Migration(): rdb.String, queues.Workers(): rdb.Hash, queues.MaxInFlight(): rdb.Hash,
		relay.Partition(): rdb.String, relay.RelayTaken(): rdb.Hash, relay.RelayCarried(): rdb.Hash, relay.RelayGeneration(): rdb.String,
		relay.RelayStarts(): rdb.Hash,
	}
	for _, q := range allQueues {
		singles[queues.JobsIndex(q)], singles[queues.PendingIndex(q)] = rdb.Set, rdb.Set
		singles[queues.Scheduled(q)], singles[queues.Instant(q)] = rdb.SortedSet, rdb.List
	}
	return singles
}()

// allQueues are the queues of a bus with partitions.
var allQueues = append(bus.Queues[:], bus.QueueRelay)

// Family is what keys that begin alike have in common. A scan reads their elements, of lists a part
// and the length. Of those that are unread it looks only at the types, and of some of them notes
// that they are there.
type Family struct {
	Prefix string
	Kind   rdb.Kind
	has    func(rest string) bool // nil if anything may follow the prefix
	Token  bool                   // a token follows the prefix, and may be a lane behind a slash
	single bool                   // there is one key
	unread bool
	noted  bool     // unread, and among the elements without any
	sized  bool     // a string of which the size is read; among the elements without any
	fields []string // of a hash: those that the layout knows
	some   []string // of a hash: those that are read, and go to the function
	record func(s *Scan, rest string, values []any)

	from, to int64 // the part of a list, which goes to the function
	list     func(s *Scan, rest string, part []string, length int64)
}

var families = []Family{
	{Prefix: keys.Batch(""), Kind: rdb.List, has: bus.IsUID, list: (*Scan).takeBatch, to: store.BatchHeader - 1},
	// By that these differ from our other keys that begin with "batches:".
	{Prefix: keys.Original(""), Kind: rdb.List, has: bus.IsUID, list: (*Scan).takeOriginal},
	{Prefix: relay.Outboxes(""), Kind: rdb.Hash},
	{Prefix: relay.Deleting(""), Kind: rdb.String, unread: true},
	{Prefix: "relay:", Kind: rdb.List, has: isNumber, list: (*Scan).takeWaiting},
	{Prefix: "relayed:", Kind: rdb.List, has: isNumber, unread: true},
	{Prefix: "jobs:pending:", Kind: rdb.List, has: isWorker, list: (*Scan).takePending, from: -100, to: -1},
	{Prefix: keys.Topic(""), Kind: rdb.Hash, fields: topicFields},
	{Prefix: keys.Subscriber(""), Kind: rdb.Hash, Token: true, fields: slices.Concat(subscriberFields, OldFields)},
	{Prefix: keys.Delivery(""), Kind: rdb.Hash, Token: true, fields: deliveryFields},
	{Prefix: keys.HistoryLimits(""), Kind: rdb.Hash, fields: historyFields},
	{Prefix: keys.History(""), Kind: rdb.List, unread: true, noted: true},
	{Prefix: keys.TopicSubscribers(""), Kind: rdb.Set},
	{Prefix: keys.SubscriberTopics(""), Kind: rdb.Set, Token: true},
	{Prefix: keys.Current(""), Kind: rdb.Set, Token: true},
	{Prefix: queues.Lane(bus.JobBatch, ""), Kind: rdb.SortedSet, Token: true},
	{Prefix: keys.Failed(""), Kind: rdb.SortedSet, Token: true, unread: true},
	{Prefix: keys.Traceparents(""), Kind: rdb.List, unread: true},
	{Prefix: keys.BatchState(""), Kind: rdb.Hash, unread: true, noted: true},
	{Prefix: keys.Options(""), Kind: rdb.Hash, Token: true},
	{Prefix: keys.Gaps(""), Kind: rdb.Hash, Token: true},
	{Prefix: keys.Attempts(""), Kind: rdb.List, Token: true, unread: true, noted: true},
	{Prefix: keys.DeadLetters(""), Kind: rdb.SortedSet, Token: true},
	{Prefix: keys.DeadLetter(""), Kind: rdb.List, has: bus.IsUID, list: (*Scan).takeLetter},
	{Prefix: keys.DeadLetterCause(""), Kind: rdb.Hash, unread: true, noted: true},
	{Prefix: keys.Replay(""), Kind: rdb.Hash, has: bus.IsUID},
	{Prefix: keys.ReplayBatches(""), Kind: rdb.Set, has: bus.IsUID, unread: true, noted: true},
	{Prefix: keys.Replays(""), Kind: rdb.Set, Token: true},
	{Prefix: queues.Lane(bus.JobJob, ""), Kind: rdb.SortedSet},
	{Prefix: work.TypesOf(""), Kind: rdb.Set},
	{Prefix: work.Type(""), Kind: rdb.Hash},
	{Prefix: work.Job(""), Kind: rdb.Hash, some: recordFields, record: (*Scan).takeRecord},
	{Prefix: work.Copies(""), Kind: rdb.Set},
	{Prefix: work.Data(""), Kind: rdb.String, sized: true},
	{Prefix: work.Open(""), Kind: rdb.SortedSet},
	{Prefix: ArchivePrefix, Kind: rdb.SortedSet},
	{Prefix: removedPrefix, Kind: rdb.String, unread: true},
	{Prefix: labelPrefix, Kind: rdb.Hash, has: isLabel, some: labelFields, record: (*Scan).takeLabel},
	{Prefix: MetadataPrefix, Kind: rdb.String, has: isLabel, sized: true},
	{Prefix: MovesPrefix, Kind: rdb.List, has: isLabel, unread: true, noted: true},
	{Prefix: LabelsPrefix, Kind: rdb.SortedSet, has: isState},
	{Prefix: labels.Names(""), Kind: rdb.SortedSet},
	{Prefix: labels.Errored(""), Kind: rdb.SortedSet},
	{Prefix: labels.Outbox(""), Kind: rdb.List, list: (*Scan).takeOutbox, to: NextMoves - 1},
	{Prefix: labels.Published(""), Kind: rdb.Hash, fields: publishedFields},
	{Prefix: labels.Standings(""), Kind: rdb.Hash, unread: true},
	{Prefix: "series:fast:", Kind: rdb.String, unread: true},
	{Prefix: "series:slow:", Kind: rdb.String, unread: true},
	{Prefix: "idempotency:", Kind: rdb.Hash, unread: true},
	{Prefix: "console:session:", Kind: rdb.Hash, unread: true},
	{Prefix: "console:code:", Kind: rdb.String, unread: true},
	{Prefix: "console:codes:", Kind: rdb.List, unread: true},
	{Prefix: "console:form:", Kind: rdb.String, unread: true},
	{Prefix: OldTraceparents, Kind: rdb.List, list: (*Scan).takeOldTraceparents},
	{Prefix: OldLane, Kind: rdb.SortedSet, Token: true},
}

// isWorker reports whether what follows "jobs:pending:" is a queue and a worker.
func isWorker(text string) bool {
	queue, worker, _ := strings.Cut(text, ":")
	return slices.Contains(allQueues, bus.Queue(queue)) && worker != "" && bus.IsURLSafe(worker)
}

func isLabel(text string) bool { return strings.Contains(text, "/") }
func isState(text string) bool { return strings.Contains(text, ":") }

// TokenOf is the token in what follows the prefix of a [Family] with tokens.
func TokenOf(rest string) string {
	token, _, _ := strings.Cut(rest, "/")
	return token
}

// FamilyOf returns the family of a key without its namespace, and what follows the prefix of that.
// The type is empty if the layout does not know the key.
func FamilyOf(key string) (f Family, rest string) {
	if kind := Singles[key]; kind != "" {
		return Family{Kind: kind, single: true}, ""
	}
	for _, f := range families {
		if rest, ok := strings.CutPrefix(key, f.Prefix); ok && (f.has == nil || f.has(rest)) {
			return f, rest
		}
	}
	return Family{}, ""
}
