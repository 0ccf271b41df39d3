package bus

import "slices"

// DeathReason is why the bus has given up on events, which have become a dead letter.
type DeathReason string

// The reasons.
const (
	// DiedOfAttempts: the endpoint has refused them as often as [DeadLetters].Attempts says.
	DiedOfAttempts DeathReason = "attempts"
	// DiedOfAge: an attempt failed when they were older than [DeadLetters].Age.
	DiedOfAge DeathReason = "age"
	// DiedRefused: the endpoint has refused them for good.
	DiedRefused DeathReason = "refused"
	// DiedRejected: a receipt of the endpoint has rejected them.
	DiedRejected DeathReason = "rejected"
	// DiedRemoved: the client has removed them from its queue.
	DiedRemoved DeathReason = "removed"
)

// DeathReasons lists all reasons.
var DeathReasons = []DeathReason{DiedOfAttempts, DiedOfAge, DiedRefused, DiedRejected, DiedRemoved}

// ParseDeathReason reads a reason. It fails with an [Invalid].
func ParseDeathReason(text string) (DeathReason, error) {
	if reason := DeathReason(text); slices.Contains(DeathReasons, reason) {
		return reason, nil
	}
	return "", Invalidf("", "must be one of %s", Words(DeathReasons))
}
