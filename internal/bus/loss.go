package bus

// LossReason is why events were lost: removed before their subscriber has acknowledged them, and no
// dead letter.
type LossReason string

// LossReasons lists all reasons.
var LossReasons = []LossReason{
	LostToAutodrop, LostToRetention, LostDeadLetters, LostHistory, LostRemoved, LostRejected,
}

// The reasons.
const (
	// LostToAutodrop: Redis was about to be full.
	LostToAutodrop LossReason = "autodrop"
	// LostToRetention: they were older, or more, than the subscriber keeps.
	LostToRetention LossReason = "retention"
	// LostDeadLetters: they were dead letters, and too many or too old, or Redis was about to be full.
	LostDeadLetters LossReason = "dead_letters"
	// LostHistory: the history of a topic had dropped them before a replay came to them.
	LostHistory LossReason = "history"
	// LostRemoved: the client has removed them from its queue.
	LostRemoved LossReason = "removed"
	// LostRejected: a receipt has rejected them, and the subscriber keeps no dead letters.
	LostRejected LossReason = "rejected"
)
