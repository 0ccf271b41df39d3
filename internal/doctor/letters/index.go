package letters

import (
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/doctor/exam"
	"routemaster/internal/store"
)

// keys are the keys without a namespace, as findings show them.
var keys = store.Keys{}

// Find looks for dead letters that their subscriber's index does not list, and for what points to
// dead letters that are not there.
func Find(e *exam.Examination) {
	for token, letters := range e.Each(keys.DeadLetters("")) {
		for bid := range letters {
			if _, there := e.Letters[bid]; !there {
				index := e.Keys.DeadLetters(bus.Token(token))
				e.Add(index, "lists "+bid+", which is not there", "removed", []exam.Check{
					exam.Is(0, "EXISTS", e.Keys.DeadLetter(bus.BatchID(bid))), exam.Not("", "ZSCORE", index, bid),
				}, exam.Command{"ZREM", index, bid})
			}
		}
	}
	for bid, holder := range unlisted(e) {
		addUnlisted(e, bid, holder)
	}
	for bid := range e.Each(keys.DeadLetterCause("")) {
		if _, there := e.Letters[bid]; !there {
			cause := e.Keys.DeadLetterCause(bus.BatchID(bid))
			e.Add(cause, "is of a dead letter that is not there", "removed", []exam.Check{
				exam.Is(0, "EXISTS", e.Keys.DeadLetter(bus.BatchID(bid))), exam.Is(1, "EXISTS", cause),
			}, exam.Command{"DEL", cause})
		}
	}
}

// unlisted are the dead letters that no index lists: the tokens of their holders, by UID, empty for
// those of nobody.
func unlisted(e *exam.Examination) map[string]string {
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
func addUnlisted(e *exam.Examination, bid, holder string) {
	letter, token := e.Keys.DeadLetter(bus.BatchID(bid)), e.Letters[bid]
	if token == "" {
		e.Add(letter, "has no subscriber", "removed",
			[]exam.Check{exam.Is("", "LINDEX", letter, 0), exam.Is(1, "EXISTS", letter)},
			exam.Command{"DEL", letter, e.Keys.DeadLetterCause(bus.BatchID(bid))})
		return
	}
	index := e.Keys.DeadLetters(bus.Token(holder))
	heir := ""
	if holder != token {
		heir = holder
	}
	e.Add(letter, "is not in "+e.Show(keys.DeadLetters(bus.Token(holder))), "added there", []exam.Check{
		exam.Is(token, "LINDEX", letter, 0), exam.Is(heir, "HGET", e.Keys.Rotations(), token),
		exam.Is("", "ZSCORE", index, bid),
	}, exam.Command{"ZADD", index, time.Now().UnixMilli(), bid})
}
