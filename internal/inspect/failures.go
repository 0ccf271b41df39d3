package inspect

import (
	"context"
	"slices"
	"strconv"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// failuresPerTrip bounds the subscribers read in one round trip.
const failuresPerTrip = 500

// Failures returns the results of the last recorded attempts of subscribers, in a word such as
// "503" or "timeout", for subscribers whose last one failed. Test events do not count. As most
// subscribers record failures only, the caller asks for subscribers that have failed since their
// last success. The words are public: they say no more than [ForClient] does. It fails with
// [bus.ErrUnavailable].
func (in *Inspector) Failures(ctx context.Context, tokens []bus.Token) (map[bus.Token]string, error) {
	words := map[bus.Token]string{}
	for some := range slices.Chunk(tokens, failuresPerTrip) {
		tested, err := in.readFailures(ctx, some, 1, words)
		if err == nil && len(tested) > 0 {
			_, err = in.readFailures(ctx, tested, 0, words)
		}
		if err != nil {
			return nil, err
		}
	}
	return words, nil
}

// readFailures adds the words of subscribers, given how many of the latest records to read, 0 for
// all. It returns the subscribers with only test events among these.
func (in *Inspector) readFailures(
	ctx context.Context, tokens []bus.Token, records int64, words map[bus.Token]string,
) (tested []bus.Token, err error) {
	latest := make([]rdb.Reply[[]string], len(tokens))
	err = in.redis.Reads(ctx, "read last attempts", func(pipe rdb.Commands) {
		for at, token := range tokens {
			latest[at] = pipe.LRange(ctx, in.keys.Attempts(token), 0, records-1)
		}
	})
	if err != nil {
		return nil, err
	}
	for at, token := range tokens {
		last, onlyTests := lastDelivery(latest[at].Val())
		if onlyTests {
			tested = append(tested, token)
		}
		if word := failureOf(last); word != "" {
			words[token] = word
		}
	}
	return tested, nil
}

// lastDelivery returns the first of some records, latest first, that is not a test event's; or
// whether there are such only. One that cannot be read says nothing.
func lastDelivery(packed []string) (last wire.AttemptRecord, onlyTests bool) {
	for _, text := range packed {
		record, err := wire.UnpackAttempt(text)
		if err != nil || !record.Test {
			return record, false
		}
	}
	return last, len(packed) > 0
}

// failureOf returns the result of an attempt in a word, empty unless it failed.
func failureOf(record wire.AttemptRecord) string {
	if record.Outcome != bus.OutcomeFailed && record.Outcome != bus.OutcomeDead {
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
