package doctor

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// takeWaiting takes in how many events are on their way to a partition, given its number.
func (s *Scan) takeWaiting(number string, _ []string, length int64) { s.Waiting[number] = length }

// EntryOfRelay is the entry that carries events to the partition of a number.
func EntryOfRelay(number string) string {
	return wire.PackJob(bus.Job{Name: bus.JobRelay, Args: []string{number}})
}

// RelayIn is the number in an entry of [EntryOfRelay].
func RelayIn(packed string) (number string) {
	job, err := wire.UnpackJob(packed)
	if err != nil || job.Name != bus.JobRelay || len(job.Args) != 1 {
		return ""
	}
	return job.Args[0]
}

// IsOther reports whether a text is the number of another partition of the bus.
func (s *Scan) IsOther(text string) bool {
	_, count, _ := strings.Cut(s.Redis.Name(), "/")
	partitions, _ := strconv.Atoi(count) // of a bus without partitions 0
	number, _ := strconv.Atoi(text)
	return rdb.IsNumber(text) && number < partitions && rdb.Number(number) != s.Redis.Number()
}

// isOpenPartition reports whether a partition can be examined: it runs scripts, and is the expected
// one. Data missing from a held partition may be on its way.
func isOpenPartition(ctx context.Context, e *Examination) (bool, error) {
	if !e.Redis.IsOneOfSeveral() {
		return true, nil
	}
	is, err := e.Redis.Get(ctx, e.Full(keys.Partition())).Result()
	switch {
	case errors.Is(err, rdb.Nil):
		e.Report(keys.Partition(), "", "is missing: the partition is held, or came back without its keys, and was not examined; "+
			"unless its slot is moving, run `rtm cluster release %d`", e.Redis.Number())
		return false, nil
	case rdb.IsWrongType(err): // which is found with the other types
		return true, nil
	case err != nil:
		return false, err
	case is != e.Redis.Name():
		e.Report(keys.Partition(), "", "is %q, must be %q: the partition was not examined", is, e.Redis.Name())
		return false, nil
	}
	return true, nil
}

// findOutboxes looks for damage in the relays' outboxes and records.
func findOutboxes(e *Examination) {
	if !e.Redis.IsOneOfSeveral() {
		return
	}
	findTaken(e)
	findRelayed(e)
	for number := range e.Waiting {
		if !e.IsOther(number) {
			e.Report(outboxTo(number), "", "is for no other partition of the bus")
		}
	}
}

// outboxTo is the outbox to the partition of a number.
func outboxTo(number string) string {
	n, _ := strconv.Atoi(number) // the scan has read it
	return keys.Outbox(rdb.Number(n))
}

// taken matches the record of an outbox's head: its UID, its number of events, and the start of its
// relay. See lua/lib/relays.lua of package store.
var taken = regexp.MustCompile(`^\S+ ([1-9]\d{0,8}) \d+$`)

// findTaken checks the recorded heads of outboxes. A head that is gone cannot be relayed, and the
// relay would remove other events in its place: without the record it relays all that remain.
func findTaken(e *Examination) {
	key := e.Full(keys.RelayTaken())
	for number, note := range e.Elements[keys.RelayTaken()] {
		unchanged := Is(note, "HGET", key, number)
		match := taken.FindStringSubmatch(note)
		if match == nil || !e.IsOther(number) {
			e.mustNotList(keys.RelayTaken(), "has "+strconv.Quote(note)+" for "+strconv.Quote(number)+", which is no head of an outbox",
				number, unchanged)
			continue
		}
		outbox, events := outboxTo(number), rdb.Integer(match[1], 0)
		if e.Waiting[number] < events {
			e.Add(key, "has "+match[1]+" events for "+number+", and "+outbox+" has fewer",
				"removed, so that those that are left are relayed, perhaps again",
				[]Check{unchanged, Is("", "LINDEX", e.Full(outbox), events-1)}, Command{"HDEL", key, number})
		}
	}
}

// findRelayed looks at where topics are relayed to.
func findRelayed(e *Examination) {
	for topic, numbers := range e.Each(keys.Outboxes("")) {
		key := keys.Outboxes(bus.TopicName(topic))
		for number, generation := range numbers {
			if !e.IsOther(number) {
				e.mustNotList(key, "has "+strconv.Quote(number)+", which is no other partition of the bus", number,
					Is(generation, "HGET", e.Full(key), number))
			}
		}
	}
}

// maxGeneration is more than there will be, and less than Redis can count up from.
const maxGeneration = 1 << 53

// checkGeneration looks at the last generation that was given. If it were given again, the end of
// an earlier subscription could end the relay of a later one.
func checkGeneration(ctx context.Context, e *Examination) error {
	if !e.Redis.IsOneOfSeveral() {
		return nil
	}
	key := e.Full(keys.RelayGeneration())
	said, err := e.Redis.Get(ctx, key).Result() // after the generations in use
	if err != nil && !errors.Is(err, rdb.Nil) {
		return err
	}
	last, of, to := rdb.Integer(said, 0), "", ""
	for topic, numbers := range e.Each(keys.Outboxes("")) {
		for number, text := range numbers {
			fits := e.IsOther(number) && e.Redis.Owns(topic) // else it was reported
			if given := rdb.Integer(text, 0); fits && given > last && given < maxGeneration {
				last, of, to = given, e.Full(keys.Outboxes(bus.TopicName(topic))), number
			}
		}
	}
	if of == "" {
		return nil
	}
	e.Add(key, fmt.Sprintf("is %q, and %d was given to %s", said, last, e.Short(of)), "set right", []Check{
		Is(said, "GET", key), Is(last, "HGET", of, to),
	}, Command{"SET", key, last})
	_, err = e.Confirm(ctx)
	return err
}

// findRelays looks for outboxes with events and no queue entry to relay them. An entry with an
// empty outbox is valid: it ends when it comes up.
func findRelays(e *Examination) {
	if !e.Redis.IsOneOfSeveral() {
		return
	}
	required := func(yield func(string) bool) {
		for number := range e.Waiting {
			entry := EntryOfRelay(number)
			_, seen := e.Queues[bus.QueueRelay].Entries[entry] // findEntries looks at one that is only somewhere
			if e.IsOther(number) && !seen && !yield(entry) {
				return
			}
		}
	}
	e.findMissing(bus.QueueRelay, required, func(entry string) (string, []Check) {
		outbox := e.Full(outboxTo(RelayIn(entry)))
		return outbox, []Check{Not(0, "LLEN", outbox)}
	})
}
