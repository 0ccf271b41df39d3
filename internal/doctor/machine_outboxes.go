package doctor

import (
	"context"
	"strconv"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// findOutboxes looks at the moves that are to be published, and at their numbers.
func (x labelExam) findOutboxes() {
	published := keys.MachinePublished("")
	for machine, outbox := range x.Outboxes {
		for _, text := range outbox.Next {
			x.findMove(x.Keys.MachineOutbox(machines.Name(machine)), text)
		}
		if _, noted := x.Elements[published+machine]; !noted {
			x.findNumbers(machine, nil)
		}
	}
	for machine, noted := range x.Each(published) {
		x.findNumbers(machine, noted)
	}
}

// findMove checks an entry of an outbox. An invalid one would block the moves behind it for ever.
func (x labelExam) findMove(outbox, text string) {
	if _, err := engine.ReadOutboxMove(text); err != nil {
		x.Add(outbox, "has "+shorten(text)+", which is no move", "removed",
			[]Check{Not("", "LPOS", outbox, text, "MAXLEN", NextMoves)}, Command{"LREM", outbox, 1, text})
	}
}

// maxShown is how many bytes of a text are shown.
const maxShown = 60

func shorten(text string) string {
	if len(text) > maxShown {
		return strconv.Quote(text[:maxShown]) + "..."
	}
	return strconv.Quote(text)
}

// findNumbers looks at how many moves came into an outbox (count), and at the number of the last
// one that is being published (last). If count is no number, no label of the machine can move. If
// it is too small, or last too large, one step may read a whole outbox. Numbers may begin again.
func (x labelExam) findNumbers(machine string, noted map[string]string) {
	outbox, published := x.Keys.MachineOutbox(machines.Name(machine)), x.Keys.MachinePublished(machines.Name(machine))
	length, said, last := x.Outboxes[machine].Length, noted["count"], noted["last"]
	count, err := strconv.ParseInt(said, 10, 64)
	if err != nil || count < length {
		x.Add(published, "has count "+shorten(said)+", must be "+strconv.FormatInt(length, 10)+" or more", "begun anew",
			[]Check{Is(said, "HGET", published, "count"), Is(length, "LLEN", outbox)},
			Command{"HSET", published, "count", length}, Command{"HDEL", published, "last"})
		return
	}
	if n, err := strconv.ParseInt(last, 10, 64); last != "" && (err != nil || n > count) {
		x.Add(published, "has last "+shorten(last)+", must be a number up to count", "removed",
			[]Check{Is(last, "HGET", published, "last"), Is(said, "HGET", published, "count")},
			Command{"HDEL", published, "last"})
	}
}

// checkMoves looks again at moves without a queue entry. Only a push into an empty outbox creates
// an entry, whose name cannot be derived from the remaining moves, so all entries are read again:
// if the oldest move is unchanged afterwards, it had no entry.
func checkMoves(ctx context.Context, e *Examination) error {
	x := labelExam{e}
	stuck := map[string]rdb.Reply[string]{} // the oldest moves, by machine
	for machine := range x.Outboxes {
		stuck[machine] = nil
	}
	for packed, entry := range x.Queues[bus.QueueMachines].Entries {
		if entry.Listed || entry.States() > 0 {
			delete(stuck, OutboxIn(packed))
		}
	}
	if len(stuck) == 0 {
		return nil
	}
	if err := x.Settle(ctx); err != nil {
		return err
	}
	err := x.Redis.Reads(ctx, "read outboxes", func(pipe rdb.Commands) {
		for machine := range stuck {
			stuck[machine] = pipe.LIndex(ctx, x.Keys.MachineOutbox(machines.Name(machine)), 0)
		}
	})
	if err != nil {
		return err
	}
	index := x.Keys.JobsIndex(bus.QueueMachines)
	if err := x.Redis.EachPage(ctx, index, rdb.Set, 0, func(page []string) error {
		for _, packed := range page {
			delete(stuck, OutboxIn(packed))
		}
		return nil
	}); err != nil {
		return err
	}
	for machine, oldest := range stuck {
		x.addStuck(machine, oldest.Val(), index)
	}
	_, err = x.Confirm(ctx)
	return err
}

// addStuck adds an outbox without an entry. The newest move names the entry it gets.
func (x labelExam) addStuck(machine, oldest, index string) {
	if oldest == "" {
		return // it was emptied
	}
	outbox := x.Keys.MachineOutbox(machines.Name(machine))
	count := rdb.Integer(x.Elements[keys.MachinePublished(machines.Name(machine))]["count"], 0)
	entry := wire.PackJob(bus.Job{Name: bus.JobMoves, Args: []string{machine, strconv.FormatInt(count, 10)}})
	x.Add(outbox, "has no entry in its queue", "given one, to be taken now",
		[]Check{Is(oldest, "LINDEX", outbox, 0), Is(0, "SISMEMBER", index, entry)},
		Command{"SADD", index, entry}, Command{"LPUSH", x.Keys.Instant(bus.QueueMachines), entry})
}
