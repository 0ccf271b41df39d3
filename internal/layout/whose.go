package layout

import "strings"

// Whose says which name decides the partition of a key, or of each of its elements: the partition
// that owns the name. On one Redis all are in the same.
type Whose int

// Whose keys are.
const (
	_ Whose = iota
	// OfToken and OfTopic are decided by the rest after the prefix; a lane may follow the token.
	OfToken
	OfTopic
	// OfType is of the job type that follows, OfTypeBefore if a colon and more come after that.
	OfType
	OfTypeBefore
	// OfLabel is of the machine, the slash and the label that follow.
	OfLabel
	// OfBatch, OfLetter, OfReplay, OfJob and OfData are named by an id. Its record says whose it is.
	OfBatch
	OfLetter
	OfReplay
	OfJob
	OfData
	// EachToken, EachTopic, EachType, EachBatch and EachReplay are of as many as there are elements.
	EachToken
	EachTopic
	EachType
	EachBatch
	EachReplay
	// EachEntry is of queues, EachPlan of tokens and topics. EachLabel is of labels of the machine
	// that follows the prefix; a colon and a state may follow that.
	EachEntry
	EachPlan
	EachLabel
	// Everywhere is for keys of all partitions, First for keys of the first one only.
	Everywhere
	First
	// Counted is counted from other keys of the partition.
	Counted
	// Own is about a partition itself: it has no meaning in another one.
	Own
	// Never is of one Redis, or of processes while they run.
	Never
)

// Name returns the name that decides a key's partition, given the rest after its prefix; empty if
// its id must be looked up, or each element has one.
func (w Whose) Name(rest string) string {
	switch w {
	case OfToken:
		return TokenOf(rest)
	case OfTypeBefore:
		return rest[:max(0, strings.LastIndexByte(rest, ':'))]
	case OfTopic, OfType, OfLabel:
		return rest
	default:
		return ""
	}
}

// TokenOf returns the token in the rest after the prefix of a key of [OfToken].
func TokenOf(rest string) string {
	token, _, _ := strings.Cut(rest, "/")
	return token
}
