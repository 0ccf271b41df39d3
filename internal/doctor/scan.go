package doctor

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// Scan is the data that one run has read. The bus may change it at any time.
type Scan struct {
	Redis *rdb.Partition
	Keys  layout.Keys // with the namespace, which other keys here do not have

	// Elements are the elements of sets, sorted sets and hashes, with scores and values, by key.
	// Queues and the index of batches are in Queues.
	Elements map[string]map[string]string
	Queues   map[bus.Queue]*Queue
	Newest   float64 // when the newest batch known was created (ms)
	// Letters are the dead letters: the token that each begins with, by UID.
	Letters map[string]string

	// Records are the records of services' jobs, by id.
	Records map[string]Record
	// Labels are the records of labels, by machine, a slash and name.
	Labels map[string]Label
	// Outboxes are the non-empty outboxes, by machine.
	Outboxes map[string]Outbox
	// Waiting is how many events are on their way to other partitions, by number of these.
	Waiting map[string]int64

	// Sizes are how many bytes the data of jobs and the metadata of labels have, by key.
	Sizes map[string]int64

	NotUIDs map[string]bool     // elements of the index of batches that are not UIDs
	Strange map[string]bool     // keys that are not of their type, or that the layout does not know
	Unknown map[string][]string // fields that the layout does not know, quoted, by key
	texts   map[string]string   // one copy of each token of a batch, and the like
}

// newScan makes the scan of a partition. [Scan.Read] fills it.
func newScan(partition *rdb.Partition) *Scan {
	namespace := partition.Namespace()
	s := &Scan{
		Redis: partition, Keys: layout.Keys{Namespace: namespace},
		Elements: map[string]map[string]string{}, Queues: map[bus.Queue]*Queue{}, Letters: map[string]string{},
		Records: map[string]Record{}, Labels: map[string]Label{}, Outboxes: map[string]Outbox{}, Waiting: map[string]int64{},
		Sizes: map[string]int64{}, NotUIDs: map[string]bool{}, Strange: map[string]bool{}, Unknown: map[string][]string{},
		texts: map[string]string{},
	}
	for _, q := range s.QueueNames() {
		s.Queues[q] = &Queue{map[string]Entry{}, map[string][]string{}}
	}
	return s
}

// Has reports whether a key was seen to have an element.
func (s *Scan) Has(key, element string) bool {
	_, ok := s.Elements[key][element]
	return ok
}

// Each iterates over the keys with a prefix: the rest of the key, and its elements.
func (s *Scan) Each(prefix string) iter.Seq2[string, map[string]string] {
	return func(yield func(string, map[string]string) bool) {
		for key, elements := range s.Elements {
			if of, ok := strings.CutPrefix(key, prefix); ok && !yield(of, elements) {
				return
			}
		}
	}
}

// Read reads everything once, indexes before the keys they list. A batch that is delivered during
// the scan then usually has no trace in it. Jobs go from scheduled to instant to pending, and are
// read in this order: the scan may see one twice, but does not miss one.
func (s *Scan) Read(ctx context.Context) error {
	first := []string{
		keys.Tokens(), keys.Rotations(), keys.Subscribers(), keys.Topics(), keys.Plans(), keys.BatchGauge(),
		keys.EventGauge(), keys.BytesGauge(), keys.DeadLetterEvents(), keys.DeadLetterBytes(), keys.RunningReplays(), keys.Retention(),
		keys.BatchesIndex(), keys.Schedules(), keys.JobTypes(), keys.Definitions(), keys.Accounts(),
	}
	if s.Redis.IsOneOfSeveral() {
		first = append(first, keys.RelayTaken())
	}
	for _, q := range s.QueueNames() {
		first = append(first, keys.PendingIndex(q), keys.JobsIndex(q), keys.Scheduled(q))
	}
	for _, key := range first {
		kind := layout.Singles[key].Kind
		if err := s.Redis.EachPage(ctx, s.Full(key), kind, 0, rdb.Elements(kind, s.taker(key))); err != nil {
			return err
		}
	}
	for q := range s.Queues {
		if err := s.readInstant(ctx, q); err != nil {
			return err
		}
	}
	return s.Redis.EachKey(ctx, s.Full("*"), func(page []string) error { return s.ReadKeys(ctx, page) })
}

// taker returns the function that stores the elements of a key.
func (s *Scan) taker(key string) func(element, value string) {
	if key == keys.BatchesIndex() {
		return s.TakeIndexed
	}
	for q, contents := range s.Queues {
		switch key {
		case keys.JobsIndex(q):
			return contents.takeListed
		case keys.Scheduled(q):
			return contents.takeScheduled
		}
	}
	f, _ := FamilyOf(key)
	return func(element, value string) {
		if f.Fields != nil && !slices.Contains(f.Fields, element) && !(f.Row == "Subscriber" && slices.Contains(OldFields, element)) {
			s.Unknown[key] = append(s.Unknown[key], strconv.Quote(element))
			return
		}
		if s.Elements[key] == nil {
			s.Elements[key] = map[string]string{}
		}
		switch element { // which may be large, or secret
		case "last_event", "secrets", "schedule_open":
			value = ""
		case "schedule_data":
			value = strconv.Itoa(len(value))
		}
		s.Elements[key][element] = value
	}
}

// ReadKeys reads keys in one round trip, and more for the large ones among them.
func (s *Scan) ReadKeys(ctx context.Context, names []string) error {
	takes := make([]func() error, len(names))
	err := s.Redis.Reads(ctx, "scan", func(pipe rdb.Commands) {
		for i, key := range names {
			takes[i] = s.ask(ctx, pipe, key)
		}
	})
	if err != nil {
		return err
	}
	for i, take := range takes {
		if err := take(); rdb.IsWrongType(err) {
			s.Strange[s.Short(names[i])] = true
		} else if err != nil {
			return err
		}
	}
	return nil
}

// ask queues the reads of a key. It returns a function that stores the reply.
func (s *Scan) ask(ctx context.Context, pipe rdb.Commands, key string) (take func() error) {
	short := s.Short(key)
	f, of := FamilyOf(short)
	switch r := readings[f.Row]; {
	case f.Single:
		return func() error { return nil } // it was read, or does not matter
	case f.Kind == "":
		return func() error { s.Strange[short] = true; return nil }
	case r.list != nil:
		values, length := pipe.LRange(ctx, key, r.from, r.to), pipe.LLen(ctx, key)
		return func() error {
			if len(values.Val()) > 0 && length.Val() > 0 { // else it is gone since the scan
				r.list(s, of, values.Val(), length.Val())
			}
			return length.Err()
		}
	case r.record != nil:
		values := pipe.HMGet(ctx, key, r.some...)
		return func() error { r.record(s, of, values.Val()); return values.Err() }
	case r.sized:
		size := pipe.StrLen(ctx, key)
		return func() error {
			if size.Val() > 0 { // else it is gone since the scan
				s.Elements[short], s.Sizes[short] = nil, size.Val()
			}
			return size.Err()
		}
	case r.unread:
		kind := pipe.Type(ctx, key)
		return func() error {
			switch is := kind.Val(); {
			case is == "none":
			case is != string(f.Kind):
				s.Strange[short] = true
			case r.noted:
				s.Elements[short] = nil
			}
			return kind.Err()
		}
	default:
		first, each := rdb.Page(ctx, pipe, key, f.Kind, 0), rdb.Elements(f.Kind, s.taker(short))
		return func() error {
			page, cursor, err := first.Result()
			if err == nil {
				err = each(page)
			}
			if err != nil || cursor == 0 {
				return err
			}
			return s.Redis.EachPage(ctx, key, f.Kind, cursor, each)
		}
	}
}

// TakeIndexed takes in an entry of the batches' index. A time of creation that is said to be of the
// future does not count.
func (s *Scan) TakeIndexed(bid, score string) {
	if !bus.IsUID(bid) {
		s.NotUIDs[bid] = true
		return
	}
	s.Queues[bus.QueueMain].note(JobOf(bid), func(e *Entry) { e.Indexed = true })
	if created, err := strconv.ParseFloat(score, 64); err == nil {
		s.Newest = max(s.Newest, min(created, float64(time.Now().UnixMilli())))
	}
}

func (s *Scan) takeOldTraceparents(bid string, _ []string, _ int64) {
	s.Elements[OldTraceparents+bid] = nil
}

// takeLetter takes in whose a dead letter is, or was before the token was changed.
func (s *Scan) takeLetter(bid string, header []string, _ int64) { s.Letters[bid] = header[0] }

// Holder is the token that a batch's subscriber has now, one copy for all of its batches.
func (s *Scan) Holder(token string) string {
	return s.once(cmp.Or(s.Elements[keys.Rotations()][token], token))
}

// once is the one copy of a text that is there many times.
func (s *Scan) once(text string) string {
	if _, ok := s.texts[text]; !ok {
		s.texts[text] = text
	}
	return s.texts[text]
}

// HasCallback reports whether publish finds a subscriber.
func (s *Scan) HasCallback(token string) bool {
	return s.Elements[keys.Subscriber(bus.Token(token))]["callback"] != ""
}

// IsSubscriber reports whether a subscriber exists, or a repair may create it.
func (s *Scan) IsSubscriber(token string) bool {
	return s.Has(keys.Subscribers(), token) || s.HasCallback(token)
}

// Full is a key with its namespace, short one without.
func (s *Scan) Full(key string) string  { return s.Redis.Namespace() + key }
func (s *Scan) Short(key string) string { return strings.TrimPrefix(key, s.Redis.Namespace()) }

func Sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
