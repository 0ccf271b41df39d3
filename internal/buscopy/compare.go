package buscopy

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/doctor"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Row is how many items of a kind are in the source and in the target.
type Row struct {
	What   string `json:"what"`
	Source int64  `json:"source"`
	Target int64  `json:"target"`
	// IsMain is whether the row is shown even if both sides are equal.
	IsMain bool `json:"-"`
}

// counts are the numbers of items by kind.
type counts map[string]int64

// words are the names of families of keys in a report: for a key, and for its elements.
var words = map[string]struct{ keys, elements string }{
	keys.Batch(""):            {"batches", "events queued"},
	keys.DeadLetter(""):       {"dead letters", "events in dead letters"},
	keys.History(""):          {"histories", "events in histories"},
	keys.Subscriber(""):       {"subscribers", ""},
	keys.SubscriberTopics(""): {"", "subscriptions"},
	keys.Replay(""):           {"replays", ""},
	keys.JobType(""):          {"job types", ""},
	keys.Job(""):              {"jobs", ""},
	"machines:label:":         {"labels, also deleted ones", ""},
	keys.Topic(""):            {"topics with events", ""},
	keys.Tokens():             {"", "tokens"},
	keys.Owners():             {"", "topics owned"},
	keys.Counters():           {"", "counters"},
	keys.RunningReplays():     {"", "replays running"},
	keys.Schedules():          {"", "schedules"},
}

// compare counts the data on both sides, and lets doctor examine both.
func (c *copying) compare(ctx context.Context) (Report, error) {
	var sides [2]counts
	var found [2]map[string]int
	for i, side := range c.sides() {
		c.Progress("counting the "+side.name, 0, -1)
		var err error
		if sides[i], err = c.count(ctx, side.all); err != nil {
			return Report{}, err
		}
		c.Progress("examining the "+side.name, 0, -1)
		if found[i], err = c.examine(ctx, side.all); err != nil {
			return Report{}, err
		}
	}
	report := Report{Rows: rows(sides[0], sides[1])}
	for finding, times := range found[1] {
		if was := found[0][finding]; times > was && (c.isSame || was == 0) {
			report.Findings = append(report.Findings, finding)
		}
	}
	slices.Sort(report.Findings)
	return report, nil
}

// number matches a number in the text of a finding. For data that is divided among partitions, each
// partition has a finding about its part.
var number = regexp.MustCompile(`[0-9]+`)

// examine lets doctor examine a bus, and returns the number of each finding, except the mark.
func (c *copying) examine(ctx context.Context, all rdb.Partitions) (map[string]int, error) {
	var stores []*store.Store
	for _, p := range all {
		stores = append(stores, store.New(p, store.Options{}))
	}
	found := map[string]int{}
	_, err := doctor.Of(store.NewBus(stores...), 0).Examine(ctx, false, func(f doctor.Finding) {
		problem := f.Problem
		if !c.isSame {
			problem = number.ReplaceAllString(problem, "…")
		}
		if f.Key != keys.Copying() {
			found[f.Key+": "+problem]++
		}
	})
	return found, err
}

// rows returns the rows of two sides.
func rows(source, target counts) (all []Row) {
	main := map[string]bool{"topics": true}
	for _, w := range words {
		main[w.keys], main[w.elements] = true, true
	}
	both := maps.Clone(source)
	maps.Copy(both, target)
	for what := range both {
		isMain := main[what] || strings.HasPrefix(what, labelsIn) || strings.HasPrefix(what, jobsIn)
		all = append(all, Row{what, source[what], target[what], isMain})
	}
	slices.SortFunc(all, func(a, b Row) int { return cmp.Compare(a.What, b.What) })
	return all
}

// The prefixes of rows about jobs and labels: their status or state follows.
const (
	jobsIn   = "jobs that are "
	labelsIn = "labels in "
)

// count counts the data of a bus.
func (c *copying) count(ctx context.Context, all rdb.Partitions) (counts, error) {
	n := counts{}
	for _, p := range all {
		if err := eachKey(ctx, p, func(names []string) error { return c.countKeys(ctx, p, names, n) }); err != nil {
			return nil, err
		}
		if err := c.countElements(ctx, p, n); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// countElements counts topics at their homes, which are listed elsewhere too, and events of each
// subscriber.
func (c *copying) countElements(ctx context.Context, p *rdb.Partition, n counts) error {
	err := p.EachPage(ctx, p.Namespace()+keys.Topics(), rdb.Set, 0, rdb.Elements(rdb.Set, func(topic, _ string) {
		if p.Owns(topic) {
			n["topics"]++
		}
	}))
	for gauge, what := range map[string]string{keys.EventGauge(): "events queued for ", keys.DeadLetterEvents(): "events in dead letters of "} {
		if err == nil {
			err = p.EachPage(ctx, p.Namespace()+gauge, rdb.Hash, 0, rdb.Pairs(func(token, value string) {
				n[what+c.nameOf(token)] += rdb.Integer(value, 0)
			}))
		}
	}
	return err
}

// countKeys counts keys and their elements, except keys that expire: they may be gone meanwhile.
func (c *copying) countKeys(ctx context.Context, p *rdb.Partition, names []string, n counts) error {
	sizes, ttls := make([]rdb.Reply[int64], len(names)), make([]rdb.Reply[int64], len(names))
	err := p.Reads(ctx, "count", func(pipe rdb.Commands) {
		for i, key := range names {
			f, _ := doctor.FamilyOf(key)
			sizes[i], ttls[i] = rdb.Size(ctx, pipe, p.Namespace()+key, f.Kind), rdb.Expiry(ctx, pipe, p.Namespace()+key)
		}
	})
	if err != nil {
		return err
	}
	for i, key := range names {
		f, rest := doctor.FamilyOf(key)
		size, err := sizes[i].Result()
		if err != nil && !rdb.Answered(err) {
			return rdb.Wrap("count", err)
		}
		if ttls[i].Val() > 0 || size == 0 || !c.isCounted(p, key, f, rest) {
			continue
		}
		what, each := n.of(key, f, rest)
		if f.Prefix == keys.Batch("") || f.Prefix == keys.DeadLetter("") {
			size -= store.BatchHeader
		}
		if f.Kind != rdb.String {
			n[each] += size
		}
		if what != "" && !isEach(f) {
			n[what]++
		}
	}
	return nil
}

// isCounted reports whether a copied key has the same count on both sides. Walks, and keys about
// workers and webhooks, exist once for each partition.
func (c *copying) isCounted(p *rdb.Partition, key string, f layout.Family, rest string) bool {
	switch {
	case key == keys.Topics() || key == keys.Plans():
		return false
	case !c.isSame && f.Whose == layout.Everywhere:
		return key == keys.Tokens() && p.Number() == 0
	case !c.isSame && f.Whose == layout.EachEntry && strings.Contains(key, string(bus.QueueMachines)):
		return false
	}
	return c.isCopied(p, f, rest)
}

// of returns the kind that a key counts as, and the kind of its elements.
func (n counts) of(key string, f layout.Family, rest string) (what, each string) {
	family := cmp.Or(f.Prefix, key)
	w, is := words[family]
	switch {
	case f.Prefix == keys.OpenJobs(""):
		return "", jobsIn + "not ended"
	case f.Prefix == doctor.ArchivePrefix:
		return "", jobsIn + rest[strings.LastIndexByte(rest, ':')+1:]
	case f.Prefix == doctor.LabelsPrefix:
		colon := strings.LastIndexByte(rest, ':') // a machine's name may have one, a state's has none
		return "", labelsIn + rest[:colon] + "/" + rest[colon+1:]
	case is:
		return w.keys, cmp.Or(w.elements, "elements of "+family)
	}
	return "keys " + family, "elements of " + family
}
