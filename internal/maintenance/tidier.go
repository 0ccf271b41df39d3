package maintenance

import (
	"context"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// maxRemoved is the maximum number of counters that one command removes.
const maxRemoved = 200

// Tidier removes unused topics, and the counters of topics and clients that are gone. It goes over
// them in small steps, again and again.
type Tidier struct {
	all   *store.Bus
	store *store.Store
	redis *rdb.Partition
	keys  layout.Keys
	// place says which key the next step reads, from cursor on.
	place  int
	cursor uint64
	// clients are all names that the counters of registered clients may have.
	clients map[string]bool
	// named are counters of others, and the names of these that are there.
	named []named
}

// Named describes counters of other packages, which are labelled by a tag whose values may go.
// Names returns the existing values; it is not called while there is no such counter.
type Named struct {
	Tag   string
	Names func(context.Context) (map[string]bool, error)
}

// named is a [Named], with the names it has read.
type named struct {
	Named
	there map[string]bool
}

// Tidied is how much was removed.
type Tidied struct{ Topics, Counters int }

// NewTidier makes a tidier of one of the stores of a bus, which starts at the beginning.
func NewTidier(all *store.Bus, st *store.Store) *Tidier {
	p := st.Partition()
	return &Tidier{all: all, store: st, redis: p, keys: layout.Keys{Namespace: p.Namespace()}}
}

// Add has it remove the counters of others, too.
func (t *Tidier) Add(counters Named) { t.named = append(t.named, named{Named: counters}) }

// Step takes one step. Done reports whether it was the last one; the next step starts again.
func (t *Tidier) Step(ctx context.Context, now time.Time) (tidied Tidied, done bool, err error) {
	k := t.keys
	places := []struct {
		key  string
		kind rdb.Kind
	}{
		{k.Topics(), rdb.Set}, {k.Owners(), rdb.Hash}, {k.Unused(), rdb.Hash},
		{k.Counters(), rdb.Hash}, {k.Monitored(), rdb.Hash},
	}
	at := places[t.place]
	page, next, err := rdb.Page(ctx, t.redis.Commands, at.key, at.kind, t.cursor).Result()
	if err == nil {
		if at.kind == rdb.Hash {
			page = fieldsOf(page)
		}
		if at.key == k.Counters() || at.key == k.Monitored() {
			tidied.Counters, err = t.removeCounters(ctx, at.key, page)
		} else {
			tidied.Topics, err = t.sweep(ctx, page, now)
		}
	}
	if !rdb.Answered(err) {
		return tidied, false, rdb.Wrap("tidy", err)
	}
	if t.cursor = next; next == 0 || err != nil { // a key of another type is skipped
		t.place, t.cursor = (t.place+1)%len(places), 0
	}
	if done = t.place == 0 && t.cursor == 0; done {
		t.clients = nil // some may be gone by the next time
		for i := range t.named {
			t.named[i].there = nil
		}
	}
	return tidied, done, rdb.Wrap("tidy", err)
}

// sweep removes the unused ones of some topics. First it ends relays of their events that no
// subscriber needs, because a relay counts as use.
func (t *Tidier) sweep(ctx context.Context, topics []string, now time.Time) (removed int, err error) {
	if t.redis.IsOneOfSeveral() {
		names := make([]bus.TopicName, len(topics))
		for i, topic := range topics {
			names[i] = bus.TopicName(topic)
		}
		if err := t.all.EndUnwantedRelays(ctx, t.store, names); err != nil {
			return 0, err
		}
	}
	return t.store.SweepTopics(ctx, topics, now)
}

// fieldsOf returns the fields of a page of a hash.
func fieldsOf(page []string) (fields []string) {
	_ = rdb.Pairs(func(field, _ string) { fields = append(fields, field) })(page)
	return fields
}

// removeCounters removes the counters whose topic or client is gone. A process may still hold
// counts of these and add them later: then a later step removes them.
func (t *Tidier) removeCounters(ctx context.Context, key string, fields []string) (removed int, err error) {
	topics, err := t.existing(ctx, fields)
	if err != nil {
		return 0, err
	}
	gone := t.gone(fields, topics)
	if len(gone) == 0 {
		return 0, nil
	}
	// Clients may have been added since their names were read, but not those of counters read
	// before.
	if t.clients, err = t.counterNames(ctx); err != nil {
		return 0, err
	}
	if err = t.readNamed(ctx, gone); err != nil {
		return 0, err
	}
	gone = t.gone(gone, topics)
	for some := range slices.Chunk(gone, maxRemoved) {
		n, err := t.redis.HDel(ctx, key, some...).Result()
		removed += int(n)
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// gone returns the counters whose topic or client is gone, without the unreadable ones.
func (t *Tidier) gone(fields []string, topics map[string]bool) (gone []string) {
	for _, field := range fields {
		c, err := wire.UnpackCounter(field)
		if err != nil {
			continue
		}
		for _, tag := range c.All() {
			isTopic, isClient := tag.Name == "topic", tag.Name == "queue" || tag.Name == "publisher" || tag.Name == "subscriber"
			if isTopic && !topics[tag.Value] || isClient && !t.clients[tag.Value] || t.isUnnamed(tag) {
				gone = append(gone, field)
				break
			}
		}
	}
	return gone
}

// isUnnamed reports whether a tag is a name of others that is not there, as far as was read.
func (t *Tidier) isUnnamed(tag bus.Tag) bool {
	i := slices.IndexFunc(t.named, func(n named) bool { return n.Tag == tag.Name })
	return i >= 0 && !t.named[i].there[tag.Value]
}

// readNamed reads the names of others that some counters have.
func (t *Tidier) readNamed(ctx context.Context, fields []string) (err error) {
	for i := range t.named {
		n := &t.named[i]
		has := func(field string) bool {
			c, err := wire.UnpackCounter(field)
			return err == nil && slices.ContainsFunc(c.All(), func(tag bus.Tag) bool { return tag.Name == n.Tag })
		}
		if !slices.ContainsFunc(fields, has) {
			continue
		}
		if n.there, err = n.Names(ctx); err != nil {
			return err
		}
	}
	return nil
}

// existing returns which of the topics of some counters exist.
func (t *Tidier) existing(ctx context.Context, fields []string) (map[string]bool, error) {
	named := map[*rdb.Partition]map[string]bool{} // by home
	for _, field := range fields {
		c, err := wire.UnpackCounter(field)
		if err != nil {
			continue
		}
		for _, tag := range c.All() {
			if tag.Name != "topic" {
				continue
			}
			home := t.all.Home(bus.TopicName(tag.Value)).Partition()
			if named[home] == nil {
				named[home] = map[string]bool{}
			}
			named[home][tag.Value] = true
		}
	}
	topics := map[string]bool{}
	for home, names := range named {
		found, key := map[string]rdb.Reply[bool]{}, layout.Keys{Namespace: home.Namespace()}.Topics()
		err := home.Pipelined(ctx, "tidy", func(pipe rdb.Commands) {
			for name := range names {
				found[name] = pipe.SIsMember(ctx, key, name)
			}
		})
		if err != nil {
			return nil, err
		}
		for name, is := range found {
			topics[name] = is.Val()
		}
	}
	return topics, nil
}

// counterNames returns the names that the counters of registered clients may have. The Ruby
// original uses tokens there, and names that it cuts out of tokens.
func (t *Tidier) counterNames(ctx context.Context) (map[string]bool, error) {
	names := map[string]bool{"": true, "null": true, "malformed": true}
	add := func(token, name string) {
		cut, _, _ := strings.Cut(token, "--")
		legacy := string(bus.LegacyClientName(bus.Token(token)))
		for _, n := range []string{token, name, legacy, cut} {
			names[n] = true
		}
	}
	err := t.redis.EachPage(ctx, t.keys.Tokens(), rdb.Hash, 0, rdb.Pairs(add))
	if err != nil {
		return nil, err
	}
	return names, t.redis.EachPage(ctx, t.keys.Subscribers(), rdb.Set, 0, func(page []string) error {
		for _, token := range page {
			add(token, "")
		}
		return nil
	})
}
