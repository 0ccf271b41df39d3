package doctor

import (
	"routemaster/internal/bus"
)

// retentionOptions are those whose subscribers are in [layout.Keys].Retention.
var retentionOptions = [2]string{"keep_age", "keep_events"}

// findRetention compares the subscribers that the housekeeping looks at with those that have
// options for it.
func findRetention(e *Examination) {
	retains := func(token string) bool {
		options := keys.Options(bus.Token(token))
		return e.Has(options, retentionOptions[0]) || e.Has(options, retentionOptions[1])
	}
	for token := range e.Each(keys.Options("")) {
		if retains(token) && e.IsSubscriber(token) {
			e.mustList(keys.Options(bus.Token(token)), keys.Retention(), token, nil)
		}
	}
	for token := range e.Elements[keys.Retention()] {
		if retains(token) {
			continue
		}
		var checks []Check
		for _, name := range retentionOptions {
			checks = append(checks, Is("", "HGET", e.Keys.Options(bus.Token(token)), name))
		}
		e.mustNotList(keys.Retention(), "has "+e.Name(token)+", who has no option for it", token, checks...)
	}
}

// findGaps looks for what gap notices tell of which there is no notice.
func findGaps(e *Examination) {
	for token, told := range e.Each(keys.Gaps("")) {
		key, bid := keys.Gaps(bus.Token(token)), told["batch"]
		if e.IsSubscriber(token) && !e.Batch(bid).There {
			e.mustGo(key, "is of a batch that is not there",
				Is(0, "EXISTS", e.Keys.Batch(bus.BatchID(bid))), Is(bid, "HGET", e.Full(key), "batch"))
		}
	}
}
