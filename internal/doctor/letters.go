package doctor

import (
	"time"

	"routemaster/internal/bus"
)

// findLetters looks for dead letters that their subscriber's index does not list, and for what
// points to dead letters that are not there.
func findLetters(e *Examination) {
	for token, letters := range e.Each(keys.DeadLetters("")) {
		for bid := range letters {
			if _, there := e.Letters[bid]; !there {
				index := e.Keys.DeadLetters(bus.Token(token))
				e.Add(index, "lists "+bid+", which is not there", "removed", []Check{
					Is(0, "EXISTS", e.Keys.DeadLetter(bus.BatchID(bid))), Not("", "ZSCORE", index, bid),
				}, Command{"ZREM", index, bid})
			}
		}
	}
	for bid, holder := range unlisted(e) {
		addUnlisted(e, bid, holder)
	}
	for bid := range e.Each(keys.DeadLetterCause("")) {
		if _, there := e.Letters[bid]; !there {
			cause := e.Keys.DeadLetterCause(bus.BatchID(bid))
			e.Add(cause, "is of a dead letter that is not there", "removed", []Check{
				Is(0, "EXISTS", e.Keys.DeadLetter(bus.BatchID(bid))), Is(1, "EXISTS", cause),
			}, Command{"DEL", cause})
		}
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
	index := e.Keys.DeadLetters(bus.Token(holder))
	heir := ""
	if holder != token {
		heir = holder
	}
	e.Add(letter, "is not in "+e.Show(keys.DeadLetters(bus.Token(holder))), "added there", []Check{
		Is(token, "LINDEX", letter, 0), Is(heir, "HGET", e.Keys.Rotations(), token),
		Is("", "ZSCORE", index, bid),
	}, Command{"ZADD", index, time.Now().UnixMilli(), bid})
}
