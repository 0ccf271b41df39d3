package machines

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"routemaster/internal/bus"
)

// LabelName names a label in its machine: 1 to 512 bytes of UTF-8 but / and control characters.
type LabelName string

// Bounds of names and of metadata.
const (
	MaxNameLen      = 128 // characters
	MaxLabelNameLen = 512 // bytes
	MaxMetadata     = 64 << 10
)

// Validate returns a [bus.Invalid] unless n can name a machine.
func (n Name) Validate() error {
	if n == "" || utf8.RuneCountInString(string(n)) > MaxNameLen || !isPlain(string(n)) {
		return bus.Invalidf("", "a machine's name is 1 to %d characters of UTF-8, without / and control characters", MaxNameLen)
	}
	return nil
}

// IsReachable reports whether a URL can have the name as a part of its path: "." and ".." lead to
// other paths of the service.
func (n Name) IsReachable() bool { return n != "." && n != ".." }

// Validate returns a [bus.Invalid] unless n can name a label.
func (n LabelName) Validate() error {
	if n == "" || len(n) > MaxLabelNameLen || !isPlain(string(n)) {
		return bus.Invalidf("", "a label's name is 1 to %d bytes of UTF-8, without / and control characters", MaxLabelNameLen)
	}
	if n == "." || n == ".." { // in a URL they are other paths of the service
		return bus.Invalidf("", "a label's name cannot be %s", n)
	}
	return nil
}

func isPlain(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r == '/' || r < ' ' || r >= 0x7f && r < 0xa0
	})
}

// Label is a label and its visit to the state in which it is.
type Label struct {
	Machine  Name
	Name     LabelName
	State    StateName
	Metadata json.RawMessage
	// CreatedAt is when the label was made, EnteredAt when the visit began.
	CreatedAt, EnteredAt time.Time
	// DeletedAt is when it was deleted; zero if it was not.
	DeletedAt time.Time
	// Moves is how many moves the label has made since it was created, Version how often its metadata
	// was changed.
	Moves, Version int64
	// Previous is the state before this one; empty in the first.
	Previous StateName
	// Trigger is the trigger of the evaluation that is to be made, or to be repeated. Pending says
	// that it is repeated each minute, until it opens the gate.
	Trigger string
	Pending bool
	// Failures is how many evaluations have failed in a row, Error why the last one has.
	Failures int
	Error    string
	// Attempts is how often the action was tried in vain, LastStatus and LastError the result of the
	// last attempt; 0 and empty if that does not apply.
	Attempts   int
	LastStatus int
	LastError  string
	// ErroredAt is since when the label is errored, and ErroredReason why; zero if it is not.
	ErroredAt     time.Time
	ErroredReason string
	// Hops is how many moves have set off one another, through topics, up to the request for the
	// evaluation: 0 for a client and the clock.
	Hops int
	// Steps is how many moves the run has made that is not over.
	Steps int
	// Standing is the standing of the state's webhook or feeds. It is set when a worker takes the
	// label.
	Standing bus.Standing
	// NextAt is when a worker looks at the label by itself; zero if none does.
	NextAt time.Time
	// Resting is whether no worker has work to do for the label now.
	Resting bool
}

// IdempotencyToken is the same for all attempts of one visit, and another for each other visit.
func (l *Label) IdempotencyToken() string {
	visit := fmt.Sprintf("%s/%s/%d/%d", l.Machine, l.Name, l.CreatedAt.UnixMilli(), l.Moves)
	sum := sha256.Sum256([]byte(visit))
	return hex.EncodeToString(sum[:])
}

// Move is a move of a label in its history, its creation and deletion included.
type Move struct {
	At time.Time
	// From is empty for the creation, To for the deletion.
	From, To StateName
	Why      Why
}

// Why says why a label has moved. Hops comes first: label_hops of package engine reads it there.
type Why struct {
	// How many moves have set off one another through topics, up to this one: left out for moves that
	// a client or the clock has set off.
	Hops int `json:"hops,omitempty"`
	// The trigger of the evaluation.
	Trigger string `json:"trigger,omitempty"`
	// The values of the parts of the condition.
	Values map[string]any `json:"values,omitempty"`
	// The status of the answer to the webhook.
	Status int `json:"status,omitempty"`
}

// Kept is how many moves of a label its history has at most.
const Kept = 100

// TombstoneTTL is how long the name of a deleted label cannot be used.
const TombstoneTTL = 24 * time.Hour

// Errors that callers branch on.
var (
	ErrUnknownMachine = errors.New("there is no such state machine")
	ErrUnknownLabel   = errors.New("there is no such label")
	ErrLabelExists    = errors.New("there is a label of that name")
	ErrLabelDeleted   = errors.New("the label was deleted; its name can be used again 24 hours after that")
	ErrNotClient      = errors.New("the machine is for other clients")
	ErrNotErrored     = errors.New("the label is not errored")
	ErrNotInGate      = errors.New("the label is not in a gate")
	// ErrChanged means that the data changed since they were read. Read them again.
	ErrChanged = errors.New("changed meanwhile")
	// ErrContended means that so many changes of one label are under way that this one was not made.
	ErrContended = fmt.Errorf("%w: many changes of the label are under way", bus.ErrUnavailable)
	// ErrReplacing means that definitions are being replaced, so that a change was not made.
	ErrReplacing = fmt.Errorf("%w: the state machines are being replaced", bus.ErrUnavailable)
)

// LabelsRestError means that definitions would leave labels without a state.
type LabelsRestError struct {
	// States are the states that would vanish, with how many labels are in each.
	States []StateCount
}

// Count is how many labels of a machine there are in each state, in the order of its definition,
// how many of them are errored, and how many moves are still to be published.
type Count struct {
	Machine     Name
	States      []StateCount
	Errored     int64
	Unpublished int64
}

// StateCount is a state, and how many labels are in it.
type StateCount struct {
	Machine Name
	State   StateName
	Labels  int64
}

func (e *LabelsRestError) Error() string {
	var b strings.Builder
	b.WriteString("labels rest in states that would vanish: ")
	for i, s := range e.States {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s.%s (%d)", s.Machine, s.State, s.Labels)
	}
	b.WriteString("; name the states that they are to move to, by move=machine.old:new")
	return b.String()
}
