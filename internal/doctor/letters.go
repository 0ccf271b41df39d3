package doctor

import (
	"context"
	"slices"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
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

// unlisted returns the dead letters that no index lists: their holders' tokens by UID, empty for
// letters without a holder.
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

// checkLetters compares the sums of dead letters with the dead letters. It runs after [findLetters]
// and its repairs.
func checkLetters(ctx context.Context, examination *Examination) error {
	e := counting{examination, unlisted(examination)}
	tokens := map[string]bool{}
	for token := range e.Each(keys.DeadLetters("")) {
		tokens[token] = true
	}
	for _, sums := range []string{keys.DeadLetterEvents(), keys.DeadLetterBytes()} {
		for token := range e.Elements[sums] {
			tokens[token] = true
		}
	}
	for _, holder := range e.unlisted {
		if holder != "" {
			tokens[holder] = true
		}
	}
	var doubtful []string
	for _, token := range Sorted(tokens) {
		read, err := e.readLetters(ctx, token)
		if err != nil {
			return err
		}
		if !read.fit() {
			doubtful = append(doubtful, token)
		}
	}
	show := func(token string) string { return "the dead letters of " + e.Name(token) }
	return e.UntilSteady(ctx, show, doubtful, func(token string) (bool, error) {
		read, err := e.readLetters(ctx, token)
		if err != nil {
			return false, err
		}
		checks := read.unchanged(e.Keys.DeadLetters(bus.Token(token)))
		e.AddGauge(e.Keys.DeadLetterEvents(), token, read.saidEvents, read.events, slices.Clone(checks)...)
		e.AddGauge(e.Keys.DeadLetterBytes(), token, read.saidBytes, read.bytes, checks...)
		return e.Confirm(ctx)
	})
}

// counting is an examination that counts events of dead letters, including unlisted ones.
type counting struct {
	*Examination
	unlisted map[string]string
}

// letters are a subscriber's dead letters, counted and according to the sums.
type letters struct {
	died                  map[string]float64 // when (ms), by UID
	events, bytes         int64
	saidEvents, saidBytes string
}

func (l letters) fit() bool {
	return l.saidEvents == Figure(l.events) && l.saidBytes == Figure(l.bytes)
}

// unchanged are checks that the index lists the same letters: as many, and none that died since. A
// letter never changes.
func (l letters) unchanged(index string) []Check {
	checks := []Check{Is(len(l.died), "ZCARD", index)}
	newest, ofNewest := 0.0, 0
	for _, died := range l.died {
		switch {
		case died > newest:
			newest, ofNewest = died, 1
		case died == newest:
			ofNewest++
		}
	}
	return append(checks, Is(ofNewest, "ZCOUNT", index, rdb.FormatScore(newest), "+inf"))
}

// readLetters reads a subscriber's dead letters and their sums.
func (e counting) readLetters(ctx context.Context, token string) (l letters, err error) {
	l.died = map[string]float64{}
	index := e.Keys.DeadLetters(bus.Token(token))
	err = e.Redis.EachPage(ctx, index, rdb.SortedSet, 0, rdb.Elements(rdb.SortedSet, func(bid, died string) {
		l.died[bid], _ = strconv.ParseFloat(died, 64) // Redis wrote it
	}))
	if err != nil {
		return l, err
	}
	var saidEvents, saidBytes rdb.Reply[string]
	err = e.Redis.Reads(ctx, "dead letters", func(pipe rdb.Commands) {
		saidEvents = pipe.HGet(ctx, e.Keys.DeadLetterEvents(), token)
		saidBytes = pipe.HGet(ctx, e.Keys.DeadLetterBytes(), token)
	})
	if err != nil {
		return l, err
	}
	l.saidEvents, l.saidBytes = saidEvents.Val(), saidBytes.Val()
	counted := Sorted(l.died)
	for bid, of := range e.unlisted {
		if _, listed := l.died[bid]; of == token && !listed { // the repair lists it
			counted = append(counted, bid)
		}
	}
	for some := range slices.Chunk(counted, rdb.KeysPerTrip) {
		if err := e.countLetters(ctx, some, &l); err != nil {
			return l, err
		}
	}
	return l, nil
}

// countLetters adds the events and bytes of some dead letters.
func (e counting) countLetters(ctx context.Context, some []string, l *letters) error {
	lengths, sizes := make([]rdb.Reply[int64], len(some)), make([]rdb.Reply[string], len(some))
	err := e.Redis.Reads(ctx, "dead letters", func(pipe rdb.Commands) {
		for i, bid := range some {
			lengths[i] = pipe.LLen(ctx, e.Keys.DeadLetter(bus.BatchID(bid)))
			sizes[i] = pipe.HGet(ctx, e.Keys.DeadLetterCause(bus.BatchID(bid)), "bytes")
		}
	})
	if err != nil {
		return err
	}
	for i := range some {
		l.events += max(0, lengths[i].Val()-store.BatchHeader)
		bytes, _ := strconv.ParseInt(sizes[i].Val(), 10, 64) // unreadable: counts 0
		l.bytes += bytes
	}
	return nil
}
