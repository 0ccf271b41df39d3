package store

import (
	"context"
	"math"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// maxCandidates is about how many letters one call of [Letters.DropOldest] looks at.
const maxCandidates = 1000

// DropOldest drops some of the oldest dead letters of all subscribers, and returns them, also with
// an error. It allocates no memory. It returns none when no other letter is left.
func (l *Letters) DropOldest(ctx context.Context, now time.Time) (dropped DroppedLetters, err error) {
	tokens, err := l.redis.HKeys(ctx, l.keys.DeadLetterEvents()).Result()
	if err != nil || len(tokens) == 0 {
		return dropped, rdb.Wrap("drop dead letters", err)
	}
	oldest, err := l.oldest(ctx, tokens)
	if err != nil {
		return dropped, err
	}
	var calls []rdb.Call
	var owners []string
	for token, ids := range oldest {
		args := []any{token, droppedEventsPerStep, now.UnixMilli(), bus.NewBatchSeed()}
		for _, id := range ids {
			args = append(args, id)
		}
		calls, owners = append(calls, scriptLetterDrop.Call(args...)), append(owners, token)
	}
	for i, result := range l.redis.RunAll(ctx, calls...) {
		reply, err := result.List()
		if err != nil {
			return dropped, rdb.Wrap("drop dead letters", err)
		}
		dropped.add(owners[i], reply[1:])
	}
	return dropped, nil
}

// candidate is a letter, with the token of its subscriber.
type candidate struct {
	rdb.Scored
	token string
}

// oldest returns the oldest dead letters of some subscribers, by token and oldest first. It reads a
// part of each index. If a part ends before its index does, older letters may follow, so oldest
// leaves out letters newer than the end of that part.
func (l *Letters) oldest(ctx context.Context, tokens []string) (map[string][]string, error) {
	var candidates []candidate
	end, depth := math.Inf(1), int64(max(1, maxCandidates/len(tokens)))
	for _, token := range tokens {
		some, err := l.redis.MembersIn(ctx, l.keys.DeadLetters(bus.Token(token)), rdb.ScoreRange{
			Min: math.Inf(-1), Max: math.Inf(1), Limit: depth,
		})
		if !rdb.Answered(err) {
			return nil, rdb.Wrap("drop dead letters", err)
		}
		for _, m := range some {
			candidates = append(candidates, candidate{m, token})
		}
		if int64(len(some)) == depth {
			end = min(end, some[depth-1].Score)
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int { return a.Compare(b.Scored) })
	oldest := map[string][]string{}
	for _, c := range candidates[:min(len(candidates), droppedPerStep)] {
		if c.Score <= end {
			oldest[c.token] = append(oldest[c.token], c.Member)
		}
	}
	return oldest, nil
}
