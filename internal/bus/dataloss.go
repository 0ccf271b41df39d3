package bus

import "time"

// DataLoss says that Redis no longer has the data that it had of the bus. A process has noticed it,
// and no operator has acknowledged it.
type DataLoss struct {
	Kind DataLossKind
	// FoundAt is when a process noticed it.
	FoundAt time.Time
	// Partition is the number of the partition that has lost it, empty on a bus without partitions.
	Partition string
}

// DataLossKind describes the data that a process found in place of the data that it remembers.
type DataLossKind string

// The kinds of losses, as they are stored.
const (
	// DataEmpty: Redis was restarted or replaced, and has nothing of the bus.
	DataEmpty DataLossKind = "empty"
	// DataDeleted: the keys are gone, and the server is the same.
	DataDeleted DataLossKind = "deleted"
	// DataOther: the data is of another bus, or was begun anew.
	DataOther DataLossKind = "other"
	// DataOlder: the data is the bus's, and older than it was.
	DataOlder DataLossKind = "older"
)

// String says what happened, in a sentence.
func (k DataLossKind) String() string {
	switch k {
	case DataEmpty:
		return "Redis came back without the data of the bus."
	case DataDeleted:
		return "The keys of the bus were deleted from Redis."
	case DataOther:
		return "Redis came back with the data of another bus, or with one that was begun anew."
	case DataOlder:
		return "Redis came back with older data than it had."
	}
	return "Redis has lost data of the bus."
}
