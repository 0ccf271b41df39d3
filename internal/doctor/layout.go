package doctor

import (
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Key prefixes of earlier versions of the bus.
const (
	OldTraceparents = "batches:origins:"
	OldLane         = "batches:line:"
)

// Prefixes of keys. The type, a colon and the status follow for archived jobs; the machine, a slash
// and the name for labels; the machine, a colon and the state for lists by state.
var (
	ArchivePrefix  = layout.Prefix("ArchivedJobs")
	MetadataPrefix = layout.Prefix("LabelMetadata")
	MovesPrefix    = layout.Prefix("LabelHistory")
	LabelsPrefix   = layout.Prefix("LabelsIn")
)

// OldFields are fields of subscribers that have moved to their deliveries, or are gone.
var OldFields = []string{"events_sent", "throttled_until", "abreast"}

// reading says which part of a key a scan reads, if not all elements.
type reading struct {
	unread bool     // only their types
	noted  bool     // unread, and among the elements without any
	sized  bool     // a string: only its size is read; among the elements without any
	some   []string // of a hash: the fields to read, passed to the function
	record func(s *Scan, rest string, values []any)

	from, to int64 // the part of a list, which goes to the function
	list     func(s *Scan, rest string, part []string, length int64)
}

// readings are the partial reads, by the names of rows.
var readings = map[string]reading{
	"Batch":            {list: (*Scan).takeBatch, to: store.BatchHeader - 1},
	"Original":         {list: (*Scan).takeOriginal},
	"Outbox":           {list: (*Scan).takeWaiting},
	"Pending":          {list: (*Scan).takePending, from: -100, to: -1},
	"DeadLetter":       {list: (*Scan).takeLetter},
	"MachineOutbox":    {list: (*Scan).takeOutbox, to: NextMoves - 1},
	"Job":              {some: recordFields, record: (*Scan).takeRecord},
	"Label":            {some: labelFields, record: (*Scan).takeLabel},
	"JobData":          {sized: true},
	"LabelMetadata":    {sized: true},
	"History":          {unread: true, noted: true},
	"BatchState":       {unread: true, noted: true},
	"Attempts":         {unread: true, noted: true},
	"DeadLetterCause":  {unread: true, noted: true},
	"ReplayBatches":    {unread: true, noted: true},
	"LabelHistory":     {unread: true, noted: true},
	"Deleting":         {unread: true},
	"Relayed":          {unread: true},
	"Failed":           {unread: true},
	"Traceparents":     {unread: true},
	"RemovedJob":       {unread: true},
	"MachineStandings": {unread: true},
	"SeriesSlot":       {unread: true},
	"Idempotency":      {unread: true},
	"Session":          {unread: true},
	"LoginCode":        {unread: true},
	"LoginCodes":       {unread: true},
	"SentForm":         {unread: true},
	"OldTraceparents":  {list: (*Scan).takeOldTraceparents},
}

// oldFamilies are the keys of an earlier version.
var oldFamilies = []layout.Family{
	{Prefix: OldTraceparents, Kind: rdb.List, Whose: layout.OfBatch, Row: "OldTraceparents"},
	{Prefix: OldLane, Kind: rdb.SortedSet, Whose: layout.OfToken},
}

// FamilyOf is [layout.FamilyOf], for keys of an earlier version too.
func FamilyOf(key string) (f layout.Family, rest string) {
	for _, f := range oldFamilies {
		if rest, ok := f.Cut(key); ok {
			return f, rest
		}
	}
	return layout.FamilyOf(key)
}
