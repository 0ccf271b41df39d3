package subscribers

import (
	"routemaster/internal/bus"
	"routemaster/internal/doctor/exam"
)

// retentionOptions are those whose subscribers are in [store.Keys].Retention.
var retentionOptions = [2]string{"keep_age", "keep_events"}

// findRetention compares the subscribers that the housekeeping looks at with those that have
// options for it.
func findRetention(e *exam.Examination) {
	all, retains := e.Keys.Retention(), func(token string) bool {
		options := keys.Options(bus.Token(token))
		return e.Has(options, retentionOptions[0]) || e.Has(options, retentionOptions[1])
	}
	for token := range e.Each(keys.Options("")) {
		if retains(token) && !e.Has(keys.Retention(), token) && e.IsSubscriber(token) {
			options := e.Keys.Options(bus.Token(token))
			e.Add(options, "is not in "+keys.Retention(), "added there", []exam.Check{
				exam.Is(1, "EXISTS", options), exam.Is(0, "SISMEMBER", all, token),
			}, exam.Command{"SADD", all, token})
		}
	}
	for token := range e.Elements[keys.Retention()] {
		if retains(token) {
			continue
		}
		checks := []exam.Check{exam.Is(1, "SISMEMBER", all, token)}
		for _, name := range retentionOptions {
			checks = append(checks, exam.Is("", "HGET", e.Keys.Options(bus.Token(token)), name))
		}
		e.Add(all, "has "+e.Name(token)+", who has no option for it", "removed", checks, exam.Command{"SREM", all, token})
	}
}

// findGaps looks for what gap notices tell of which there is no notice.
func findGaps(e *exam.Examination) {
	for token, told := range e.Each(keys.Gaps("")) {
		key, bid := e.Keys.Gaps(bus.Token(token)), told["batch"]
		switch {
		case !e.IsSubscriber(token):
			addOrphan(e, key, token)
		case !e.Batch(bid).There:
			e.Add(key, "is of a batch that is not there", "removed", []exam.Check{
				exam.Is(0, "EXISTS", e.Keys.Batch(bus.BatchID(bid))), exam.Is(1, "EXISTS", key), exam.Is(bid, "HGET", key, "batch"),
			}, exam.Command{"DEL", key})
		}
	}
}
