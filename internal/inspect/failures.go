package inspect

import (
	"context"
	"slices"
	"strconv"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// failuresPerTrip bounds what one round trip reads.
const failuresPerTrip = 500

// Failures returns what came of the last attempts of subscribers, in a word such as "503" or
// "timeout", for those whose last one failed and is still on record. Anybody may see the words:
// they say no more than [ForClient] does. It fails with [bus.ErrUnavailable].
func (i *Inspector) Failures(ctx context.Context, tokens []bus.Token) (map[bus.Token]string, error) {
	words := map[bus.Token]string{}
	for some := range slices.Chunk(tokens, failuresPerTrip) {
		last := make([]rdb.Reply[string], len(some))
		err := i.redis.Reads(ctx, "read last attempts", func(pipe rdb.Commands) {
			for at, token := range some {
				last[at] = pipe.LIndex(ctx, i.keys.Attempts(token), 0)
			}
		})
		if err != nil {
			return nil, err
		}
		for at, token := range some {
			if word := failureOf(last[at].Val()); word != "" {
				words[token] = word
			}
		}
	}
	return words, nil
}

// failureOf is what came of an attempt, empty unless it failed and can be read.
func failureOf(packed string) string {
	record, err := wire.UnpackAttempt(packed)
	if err != nil || record.Outcome != bus.OutcomeFailed && record.Outcome != bus.OutcomeDead {
		return ""
	}
	switch shown := ForClient(record); {
	case shown.Error != "":
		return shown.Error
	case shown.Status != 0:
		return strconv.Itoa(shown.Status)
	}
	return ""
}
