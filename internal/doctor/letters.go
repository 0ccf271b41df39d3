package doctor

import (
	"time"

	"routemaster/internal/bus"
)

// findLetters looks for dead letters that their subscriber's index does not list, and for
// entries of indexes without a dead letter.
func findLetters(e *Examination) {
	for token, letters := range e.Each(keys.DeadLetters("")) {
		for bid := range letters {
			if _, there := e.Letters[bid]; !there {
				e.mustNotList(keys.DeadLetters(bus.Token(token)), "lists "+bid+", which is not there", bid,
					Is(0, "EXISTS", e.Keys.DeadLetter(bus.BatchID(bid))))
			}
		}
	}
	for bid, holder := range unlisted(e) {
		addUnlisted(e, bid, holder)
	}
}

// unlisted are the dead letters that no index lists: the tokens of their holders, by UID, empty for
// those of nobody.
func unlisted(e *Examination) map[string]string {
	holders := map[string]string{}
	for bid, token := range e.Letters {
		holders[bid] = e.Holder(token)
	}
	for _, letters := range e.Each(keys.DeadLetters("")) {
		for bid := range letters {
			delete(holders, bid)
		}
	}
	return holders
}

// addUnlisted adds a dead letter that no index lists, given the token of its holder. It is listed
// as if it had died now, so that it is not too old at once.
func addUnlisted(e *Examination, bid, holder string) {
	letter, token := e.Keys.DeadLetter(bus.BatchID(bid)), e.Letters[bid]
	if token == "" {
		e.Add(letter, "has no subscriber", "removed",
			[]Check{Is("", "LINDEX", letter, 0), Is(1, "EXISTS", letter)},
			Command{"DEL", letter, e.Keys.DeadLetterCause(bus.BatchID(bid))})
		return
	}
	heir := ""
	if holder != token {
		heir = holder
	}
	e.mustList(keys.DeadLetter(bus.BatchID(bid)), keys.DeadLetters(bus.Token(holder)), bid, time.Now().UnixMilli(),
		Is(token, "LINDEX", letter, 0), Is(heir, "HGET", e.Keys.Rotations(), token))
}
