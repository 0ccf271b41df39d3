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

// Single is a key of which there is one.
type Single struct {
	Kind  rdb.Kind
	Whose Whose
}

// Singles are the keys of which there is one.
var Singles = func() map[string]Single {
	singles := map[string]Single{
		keys.Topics(): {rdb.Set, EachTopic}, keys.Owners(): {rdb.Hash, EachTopic}, keys.Unused(): {rdb.Hash, EachTopic},
		keys.Owned(): {rdb.Hash, Counted}, keys.Plans(): {rdb.Hash, EachPlan},
		keys.Subscribers(): {rdb.Set, EachToken}, keys.Retention(): {rdb.Set, EachToken},
		keys.BatchGauge(): {rdb.Hash, EachToken}, keys.EventGauge(): {rdb.Hash, EachToken}, keys.BytesGauge(): {rdb.Hash, EachToken},
		keys.DeadLetterEvents(): {rdb.Hash, EachToken}, keys.DeadLetterBytes(): {rdb.Hash, EachToken},
		keys.BatchesIndex(): {rdb.SortedSet, EachBatch}, keys.RunningReplays(): {rdb.Set, EachReplay},
		keys.Tokens(): {rdb.Hash, Everywhere}, keys.Rotations(): {rdb.Hash, Everywhere},
		keys.Counters(): {rdb.Hash, First}, keys.Monitored(): {rdb.Hash, First},
		keys.Identity(): {rdb.Hash, Never}, keys.Copying(): {rdb.String, Never}, keys.Migration(): {rdb.String, Own},
		// Of internal/overview/samples:
		"processes": {rdb.Hash, Never}, "series:day": {rdb.Hash, First}, "series:turn": {rdb.String, Never},
		account.Keys{}.Accounts(): {rdb.Hash, Counted},
		work.Types():              {rdb.Set, EachType}, work.Schedules(): {rdb.Hash, EachType}, work.Pulls(): {rdb.Stream, Never},
		labels.Definitions(): {rdb.Hash, Everywhere}, labels.Walks(): {rdb.Hash, Everywhere},
		"console:sessions": {rdb.SortedSet, First}, "activity": {rdb.List, First}, "api_tokens:used": {rdb.Hash, First},
		queues.Workers(): {rdb.Hash, Everywhere}, queues.MaxInFlight(): {rdb.Hash, Everywhere},
		relay.Partition(): {rdb.String, Never}, relay.RelayTaken(): {rdb.Hash, Own}, relay.RelayCarried(): {rdb.Hash, Own},
		relay.RelayGeneration(): {rdb.String, Own}, relay.RelayStarts(): {rdb.Hash, Own},
	}
	for _, q := range allQueues {
		entries, workers := EachEntry, Everywhere
		if q == bus.QueueAux || q == bus.QueueRelay {
			entries, workers = Own, Own
		}
		singles[queues.JobsIndex(q)], singles[queues.PendingIndex(q)] = Single{rdb.Set, entries}, Single{rdb.Set, workers}
		singles[queues.Scheduled(q)], singles[queues.Instant(q)] = Single{rdb.SortedSet, entries}, Single{rdb.List, entries}
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
	Whose  Whose
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

// Families are the other keys.
var Families = []Family{
	{Prefix: keys.Batch(""), Kind: rdb.List, Whose: OfBatch, has: bus.IsUID, list: (*Scan).takeBatch, to: store.BatchHeader - 1},
	// By that these differ from our other keys that begin with "batches:".
	{Prefix: keys.Original(""), Kind: rdb.List, Whose: OfBatch, has: bus.IsUID, list: (*Scan).takeOriginal},
	{Prefix: relay.Outboxes(""), Kind: rdb.Hash, Whose: Own},
	{Prefix: relay.Deleting(""), Kind: rdb.String, Whose: Never, unread: true},
	{Prefix: "relay:", Kind: rdb.List, Whose: Own, has: isNumber, list: (*Scan).takeWaiting},
	{Prefix: "relayed:", Kind: rdb.List, Whose: Own, has: isNumber, unread: true},
	{Prefix: "jobs:pending:", Kind: rdb.List, Whose: EachEntry, has: isWorker, list: (*Scan).takePending, from: -100, to: -1},
	{Prefix: keys.Topic(""), Kind: rdb.Hash, Whose: OfTopic, fields: topicFields},
	{Prefix: keys.Subscriber(""), Kind: rdb.Hash, Whose: OfToken, Token: true, fields: slices.Concat(subscriberFields, OldFields)},
	{Prefix: keys.Delivery(""), Kind: rdb.Hash, Whose: OfToken, Token: true, fields: deliveryFields},
	{Prefix: keys.HistoryLimits(""), Kind: rdb.Hash, Whose: OfTopic, fields: historyFields},
	{Prefix: keys.History(""), Kind: rdb.List, Whose: OfTopic, unread: true, noted: true},
	{Prefix: keys.TopicSubscribers(""), Kind: rdb.Set, Whose: EachToken},
	{Prefix: keys.SubscriberTopics(""), Kind: rdb.Set, Whose: OfToken, Token: true},
	{Prefix: keys.Current(""), Kind: rdb.Set, Whose: OfToken, Token: true},
	{Prefix: queues.Lane(bus.JobBatch, ""), Kind: rdb.SortedSet, Whose: OfToken, Token: true},
	{Prefix: keys.Failed(""), Kind: rdb.SortedSet, Whose: OfToken, Token: true, unread: true},
	{Prefix: keys.Traceparents(""), Kind: rdb.List, Whose: OfBatch, unread: true},
	{Prefix: keys.BatchState(""), Kind: rdb.Hash, Whose: OfBatch, unread: true, noted: true},
	{Prefix: keys.Options(""), Kind: rdb.Hash, Whose: OfToken, Token: true},
	{Prefix: keys.Gaps(""), Kind: rdb.Hash, Whose: OfToken, Token: true},
	{Prefix: keys.Attempts(""), Kind: rdb.List, Whose: OfToken, Token: true, unread: true, noted: true},
	{Prefix: keys.DeadLetters(""), Kind: rdb.SortedSet, Whose: OfToken, Token: true},
	{Prefix: keys.DeadLetter(""), Kind: rdb.List, Whose: OfLetter, has: bus.IsUID, list: (*Scan).takeLetter},
	{Prefix: keys.DeadLetterCause(""), Kind: rdb.Hash, Whose: OfLetter, unread: true, noted: true},
	{Prefix: keys.Replay(""), Kind: rdb.Hash, Whose: OfReplay, has: bus.IsUID},
	{Prefix: keys.ReplayBatches(""), Kind: rdb.Set, Whose: OfReplay, has: bus.IsUID, unread: true, noted: true},
	{Prefix: keys.Replays(""), Kind: rdb.Set, Whose: OfToken, Token: true},
	{Prefix: queues.Lane(bus.JobJob, ""), Kind: rdb.SortedSet, Whose: OfType},
	{Prefix: work.TypesOf(""), Kind: rdb.Set, Whose: EachType},
	{Prefix: work.Type(""), Kind: rdb.Hash, Whose: OfType},
	{Prefix: work.Job(""), Kind: rdb.Hash, Whose: OfJob, some: recordFields, record: (*Scan).takeRecord},
	{Prefix: work.Copies(""), Kind: rdb.Set, Whose: OfData},
	{Prefix: work.Data(""), Kind: rdb.String, Whose: OfData, sized: true},
	{Prefix: work.Open(""), Kind: rdb.SortedSet, Whose: OfType},
	{Prefix: ArchivePrefix, Kind: rdb.SortedSet, Whose: OfTypeBefore},
	{Prefix: removedPrefix, Kind: rdb.String, Whose: OfTypeBefore, unread: true},
	{Prefix: labelPrefix, Kind: rdb.Hash, Whose: OfLabel, has: isLabel, some: labelFields, record: (*Scan).takeLabel},
	{Prefix: MetadataPrefix, Kind: rdb.String, Whose: OfLabel, has: isLabel, sized: true},
	{Prefix: MovesPrefix, Kind: rdb.List, Whose: OfLabel, has: isLabel, unread: true, noted: true},
	{Prefix: LabelsPrefix, Kind: rdb.SortedSet, Whose: EachLabel, has: isState},
	{Prefix: labels.Names(""), Kind: rdb.SortedSet, Whose: EachLabel},
	{Prefix: labels.Errored(""), Kind: rdb.SortedSet, Whose: EachLabel},
	{Prefix: labels.Outbox(""), Kind: rdb.List, Whose: Own, list: (*Scan).takeOutbox, to: NextMoves - 1},
	{Prefix: labels.Published(""), Kind: rdb.Hash, Whose: Own, fields: publishedFields},
	{Prefix: labels.Standings(""), Kind: rdb.Hash, Whose: Everywhere, unread: true},
	{Prefix: "series:fast:", Kind: rdb.String, Whose: First, unread: true},
	{Prefix: "series:slow:", Kind: rdb.String, Whose: First, unread: true},
	{Prefix: "idempotency:", Kind: rdb.Hash, Whose: Everywhere, unread: true},
	{Prefix: "console:session:", Kind: rdb.Hash, Whose: First, unread: true},
	{Prefix: "console:code:", Kind: rdb.String, Whose: First, unread: true},
	{Prefix: "console:codes:", Kind: rdb.List, Whose: First, unread: true},
	{Prefix: "console:form:", Kind: rdb.String, Whose: First, unread: true},
	{Prefix: OldTraceparents, Kind: rdb.List, Whose: OfBatch, list: (*Scan).takeOldTraceparents},
	{Prefix: OldLane, Kind: rdb.SortedSet, Whose: OfToken, Token: true},
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
	if one, ok := Singles[key]; ok {
		return Family{Kind: one.Kind, Whose: one.Whose, single: true}, ""
	}
	for _, f := range Families {
		if rest, ok := strings.CutPrefix(key, f.Prefix); ok && (f.has == nil || f.has(rest)) {
			return f, rest
		}
	}
	return Family{}, ""
}
