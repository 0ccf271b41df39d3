package doctor

import (
	"routemaster/internal/bus"
)

// retentionOptions are those whose subscribers are in [layout.Keys].Retention.
var retentionOptions = [2]string{"keep_age", "keep_events"}

// findRetention compares the subscribers that the housekeeping looks at with those that have
// options for it.
func findRetention(e *Examination) {
	all, retains := e.Keys.Retention(), func(token string) bool {
		options := keys.Options(bus.Token(token))
		return e.Has(options, retentionOptions[0]) || e.Has(options, retentionOptions[1])
	}
	for token := range e.Each(keys.Options("")) {
		if retains(token) && !e.Has(keys.Retention(), token) && e.IsSubscriber(token) {
			options := e.Keys.Options(bus.Token(token))
			e.Add(options, "is not in "+keys.Retention(), "added there", []Check{
				Is(1, "EXISTS", options), Is(0, "SISMEMBER", all, token),
			}, Command{"SADD", all, token})
		}
	}
	for token := range e.Elements[keys.Retention()] {
		if retains(token) {
			continue
		}
		checks := []Check{Is(1, "SISMEMBER", all, token)}
		for _, name := range retentionOptions {
			checks = append(checks, Is("", "HGET", e.Keys.Options(bus.Token(token)), name))
		}
		e.Add(all, "has "+e.Name(token)+", who has no option for it", "removed", checks, Command{"SREM", all, token})
	}
}

// findGaps looks for what gap notices tell of which there is no notice.
func findGaps(e *Examination) {
	for token, told := range e.Each(keys.Gaps("")) {
		key, bid := e.Keys.Gaps(bus.Token(token)), told["batch"]
		switch {
		case !e.IsSubscriber(token):
			addOrphan(e, key, token)
		case !e.Batch(bid).There:
			e.Add(key, "is of a batch that is not there", "removed", []Check{
				Is(0, "EXISTS", e.Keys.Batch(bus.BatchID(bid))), Is(1, "EXISTS", key), Is(bid, "HGET", key, "batch"),
			}, Command{"DEL", key})
		}
	}
}
