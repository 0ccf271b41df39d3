package doctor

import (
	"iter"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Most damage is repaired by one plain command: an element is added to a list that must have it, or
// removed from one that must not, or a key is removed. A list is a set, a sorted set or a hash, as
// the layout says. The check that the command would change something comes with it; rules add only
// the checks of why. Keys are without the namespace here.

// edits are the commands that add an element to a list, remove it, and read it, and the reply of
// the read without the element.
var edits = map[rdb.Kind]struct {
	put, remove, read string
	without           any
}{
	rdb.Set:       {"SADD", "SREM", "SISMEMBER", 0},
	rdb.SortedSet: {"ZADD", "ZREM", "ZSCORE", ""},
	rdb.Hash:      {"HSET", "HDEL", "HEXISTS", 0},
}

// mustList adds, unless it was seen there, that a list lacks the name of a key, which is there. The
// value is its score or, of a hash, the field's; a set has none.
func (e *Examination) mustList(key, list, name string, value any, checks ...Check) {
	if !e.Has(list, name) {
		e.mustListAs(key, "is not in "+e.Show(list), "added there", list, name, value, checks...)
	}
}

// mustListAs is mustList in other words, whether or not it was seen there.
func (e *Examination) mustListAs(key, problem, remedy, list, name string, value any, checks ...Check) {
	f, _ := FamilyOf(list)
	edit, full := edits[f.Kind], e.Full(list)
	put := Command{edit.put, full, name}
	switch f.Kind {
	case rdb.SortedSet:
		put = Command{edit.put, full, value, name}
	case rdb.Hash:
		put = append(put, value)
	}
	e.Add(e.Full(key), problem, remedy, append(slices.Clip(checks), e.isThere(key), Is(edit.without, edit.read, full, name)), put)
}

// mustNotList adds a finding for an element that a list must not have.
func (e *Examination) mustNotList(list, problem, name string, checks ...Check) {
	f, _ := FamilyOf(list)
	edit, full := edits[f.Kind], e.Full(list)
	e.Add(full, problem, "removed", append(slices.Clip(checks), Not(edit.without, edit.read, full, name)), Command{edit.remove, full, name})
}

// mustGo adds that a key must not be there.
func (e *Examination) mustGo(key, problem string, checks ...Check) {
	e.Add(e.Full(key), problem, "removed", append(slices.Clip(checks), e.isThere(key)), Command{"UNLINK", e.Full(key)})
}

// isThere checks that a key is there.
func (e *Examination) isThere(key string) Check { return Is(1, "EXISTS", e.Full(key)) }

// leftovers are the keys that must go with their owner.
var leftovers = []struct {
	prefix, problem string
	// lost returns checks that the owner named after the prefix is missing; nil if it is there.
	lost func(e *Examination, of string) []Check
}{
	{keys.Attempts(""), "is of no subscriber", isLostSubscriber},
	{keys.Options(""), "is of no subscriber", isLostSubscriber},
	{keys.Gaps(""), "is of no subscriber", isLostSubscriber},
	{keys.Replays(""), "is of no subscriber", isLostSubscriber},
	{keys.BatchState(""), "is of a batch that is not there", isLostBatch},
	{keys.DeadLetterCause(""), "is of a dead letter that is not there", isLostLetter},
	{keys.ReplayBatches(""), "is of a replay that is over", isOver},
	{keys.HistoryLimits(""), "is of a topic that keeps no history", isUnkept},
	{keys.History(""), "is of a topic that keeps no history", isUnkept},
	{MovesPrefix, "is of a label that is not there", isLostLabel},
}

func findLeftovers(e *Examination) {
	for _, l := range leftovers {
		for of := range e.eachOf(l.prefix) {
			if checks := l.lost(e, of); checks != nil {
				e.mustGo(l.prefix+of, l.problem, checks...)
			}
		}
	}
}

// eachOf iterates over the rest of the keys behind a prefix of the layout. It leaves out keys with
// a longer prefix.
func (e *Examination) eachOf(prefix string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for of := range e.Each(prefix) {
			if f, _ := FamilyOf(prefix + of); f.Prefix == prefix && !yield(of) {
				return
			}
		}
	}
}

func isLostSubscriber(e *Examination, token string) []Check {
	if e.IsSubscriber(token) {
		return nil
	}
	return isNoSubscriber(e, token)
}

func isLostBatch(e *Examination, bid string) []Check {
	if j := e.Batch(bid); j.There || j.Original {
		return nil
	}
	return isGone(e, bid)
}

func isLostLetter(e *Examination, bid string) []Check {
	if _, there := e.Letters[bid]; there {
		return nil
	}
	return []Check{Is(0, "EXISTS", e.Keys.DeadLetter(bus.BatchID(bid)))}
}

// isLostLabel also covers a label with nothing left but its metadata: its history must not become
// part of a new label's history.
func isLostLabel(e *Examination, id string) []Check {
	if e.Labels[id].There {
		return nil
	}
	return labelExam{e}.unchanged(id)
}

func isUnkept(e *Examination, topic string) []Check {
	field := store.HistoryField(bus.TopicName(topic))
	if e.Has(keys.Plans(), field) {
		return nil
	}
	return []Check{Is(0, "HEXISTS", e.Keys.Plans(), field)}
}

func isOver(e *Examination, replay string) []Check {
	if e.Has(keys.RunningReplays(), replay) {
		return nil
	}
	return []Check{
		Is(0, "SISMEMBER", e.Keys.RunningReplays(), replay),
		Not("running", "HGET", e.Keys.Replay(bus.ReplayID(replay)), "state"),
	}
}

// homes are the keys that only the partition of the owner named after the prefix may have. The bus
// does not look for them elsewhere. Doctor still judges their contents there.
var homes = []struct{ prefix, problem string }{
	{keys.Topic(""), "is of a topic of another partition"},
	{keys.HistoryLimits(""), "is of a topic of another partition"},
	{keys.History(""), "is of a topic of another partition"},
	{keys.Outboxes(""), "is of a topic of another partition"},
	{keys.JobType(""), "belongs to another partition"},
}

// findForeign looks for keys that belong to another partition.
func findForeign(e *Examination) {
	if !e.Redis.IsOneOfSeveral() {
		return
	}
	for _, h := range homes {
		for of := range e.eachOf(h.prefix) {
			if !e.Redis.Owns(of) {
				e.Add(e.Full(h.prefix+of), h.problem, "", []Check{e.isThere(h.prefix + of)})
			}
		}
	}
	for id, label := range e.Labels {
		if label.There && !e.Redis.Owns(id) {
			e.Add(e.Full(keyOfLabel(id)), "belongs to another partition", "", []Check{e.isThere(keyOfLabel(id))})
		}
	}
	for token := range e.Elements[keys.Subscribers()] {
		if !e.Redis.Owns(token) {
			e.Add(e.Keys.Subscriber(bus.Token(token)), "belongs to another partition", "",
				[]Check{Is(1, "SISMEMBER", e.Keys.Subscribers(), token)})
		}
	}
}

// isNoSubscriber checks that a subscriber is not there.
func isNoSubscriber(e *Examination, token string) []Check {
	return []Check{
		Is(0, "SISMEMBER", e.Keys.Subscribers(), token),
		Is(0, "HSTRLEN", e.Keys.Subscriber(bus.Token(token)), "callback"),
	}
}

// isGone checks that a batch is not there, neither ours nor the Ruby original's.
func isGone(e *Examination, bid string) []Check {
	return []Check{Is(0, "EXISTS", e.Keys.Batch(bus.BatchID(bid))), Is(0, "EXISTS", e.Keys.Original(bus.BatchID(bid)))}
}
