package jobs

import (
	"context"
	"strconv"
	"strings"

	"routemaster/internal/rdb"
)

// The characters between the attempts that lua/lib/steps.lua keeps, and between their fields.
const (
	betweenTries  = "\x1d"
	betweenFields = "\x1e"
)

// Attempts returns the last attempts at a job of a type, the latest first: at most
// [MaxAttemptsKept], and the one that is in progress or has succeeded. It fails with
// [ErrUnknownJob] or [bus.ErrUnavailable].
func (s *Store) Attempts(ctx context.Context, name TypeName, id ID) (list []Attempt, err error) {
	var reply rdb.Reply[[]any]
	err = s.redis.Reads(ctx, "read attempts", func(pipe rdb.Commands) {
		reply = pipe.HMGet(ctx, s.keys.Job(string(id)), "type", "status", "attempts", "started", "archived_at", "tries")
	})
	if err != nil {
		return nil, err
	}
	fields := reply.Val()
	if len(fields) != 6 || rdb.Text(fields[0]) != string(name) {
		return nil, ErrUnknownJob
	}
	// Only failed attempts are noted, so a job that succeeds at once costs nothing more.
	last := Attempt{
		Attempt: int(rdb.Integer(rdb.Text(fields[2]), 0)), BeganAt: fromMicros(fields[3]), Outcome: rdb.Text(fields[1]), Public: true,
	}
	switch Status(last.Outcome) {
	case Succeeded:
		last.EndedAt = fromMicros(fields[4])
		list = append(list, last)
	case InProgress:
		list = append(list, last)
	}
	for text := range strings.SplitSeq(rdb.Text(fields[5]), betweenTries) {
		if attempt, ok := readAttempt(text); ok {
			list = append(list, attempt)
		}
	}
	return list[:min(len(list), MaxAttemptsKept)], nil
}

// readAttempt reads an attempt as tries_of of lua/lib/steps.lua writes it.
func readAttempt(text string) (a Attempt, ok bool) {
	fields := strings.Split(text, betweenFields)
	if len(fields) != 8 {
		return a, false
	}
	attempt, err := strconv.Atoi(fields[0])
	valid := func(i int) string { return strings.ToValidUTF8(fields[i], "…") }
	return Attempt{
		Attempt: attempt, BeganAt: fromMicros(fields[1]), EndedAt: fromMicros(fields[2]), Outcome: fields[3],
		Status: int(rdb.Integer(fields[4], 0)), Public: fields[5] == "1", Error: valid(6), Excerpt: valid(7),
	}, err == nil
}
