package samples

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
)

// draft is a sample that is being taken. It has what its subscribers are made from.
type draft struct {
	overview.Sample
	// held is whether the partition is held, or on its way to another node.
	held bool
	// node is the Redis server whose memory it has.
	node     string
	backlogs []inspect.Backlog
	// details are what is known of subscribers besides. That of one partition is what it remembers.
	details map[bus.Token]*detail
	// accounts are what clients keep; queued are the bytes that wait for them. Both are nil in the
	// samples of the history, which has neither.
	accounts account.Nodes
	queued   map[bus.ClientName]int64
	// timed is whether it is to have times.
	timed bool
}

// hasDamage is whether a part could not be read because of what is not of the bus.
func (d *draft) hasDamage() bool {
	return slices.ContainsFunc(d.Unread, func(u overview.Unread) bool { return u.Why == notOfTheBus })
}

// merge makes one of the drafts of all partitions, by number. A partition of which a part could not
// be read is unread as such: what is known of the others is shown.
func merge(drafts []*draft) *draft {
	var held, away []int
	for i, d := range drafts {
		if d.held {
			held = append(held, i)
		} else if d.Redis != "" {
			away = append(away, i)
		}
	}
	if len(drafts) == 1 {
		drafts[0].Held = held
		return drafts[0]
	}
	var all *draft
	var unread []overview.Unread
	nodes := map[string]bool{}
	for i, d := range drafts {
		if d.Memory != nil {
			nodes[d.node] = true
		}
		why := d.Redis
		if why == "" && len(d.Unread) > 0 {
			why = d.Unread[0].Why
		}
		if why != "" {
			unread = append(unread, overview.Unread{Part: "partition " + rdb.Number(i).String(), Why: why})
		}
		switch {
		case d.Redis != "":
		case all == nil:
			all = d
			all.details = maps.Clone(d.details)
		default:
			all.add(d)
		}
	}
	if all == nil {
		return drafts[0]
	}
	all.Unread, all.Held, all.Away = unread, held, away
	if len(nodes) > 1 {
		all.Memory.Node, all.Memory.Nodes = all.node, len(nodes)
	}
	slices.SortFunc(all.Topics, func(a, b overview.TopicState) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// add adds the draft of another partition.
func (d *draft) add(more *draft) {
	if d.Refuses == "" {
		d.Refuses, d.RefusesScripts = more.Refuses, more.RefusesScripts
	}
	d.Lost = append(slices.Clip(d.Lost), more.Lost...)
	for _, risk := range more.Risks { // mostly they are all alike
		if !slices.Contains(d.Risks, risk) {
			d.Risks = append(slices.Clip(d.Risks), risk)
		}
	}
	d.Topics, d.backlogs = append(d.Topics, more.Topics...), append(d.backlogs, more.backlogs...)
	if d.details == nil {
		d.details = map[bus.Token]*detail{}
	}
	maps.Copy(d.details, more.details)
	d.addAccounts(more)
	d.Damaged = append(d.Damaged, more.Damaged...)
	d.Due += more.Due
	if len(d.Queues) == 0 {
		d.Queues = more.Queues
	} else {
		for i, q := range more.Queues { // all list the same
			d.Queues[i].Instant += q.Instant
			d.Queues[i].Scheduled += q.Scheduled
		}
	}
	if d.Memory == nil || more.Memory != nil && isFuller(*more.Memory, *d.Memory) {
		d.Memory, d.node = more.Memory, more.node // of several nodes, that of the fullest
	}
}

// addAccounts adds what clients have in another partition.
func (d *draft) addAccounts(more *draft) {
	if d.accounts == nil {
		d.accounts, d.queued = more.accounts, more.queued
		return
	}
	d.accounts.Join(more.accounts)
	for client, bytes := range more.queued {
		d.queued[client] += bytes
	}
}

// addClients makes the clients that have most. What each may keep is computed for these only.
func (d *draft) addClients() {
	kept := d.accounts.Kept()
	all := make([]overview.Client, 0, len(kept)+len(d.queued))
	for name, bytes := range d.queued {
		all = append(all, overview.Client{Name: string(name), Kept: kept[name], Queued: bytes})
		delete(kept, name)
	}
	for name, bytes := range kept {
		all = append(all, overview.Client{Name: string(name), Kept: bytes})
	}
	slices.SortFunc(all, func(a, b overview.Client) int {
		return cmp.Or(cmp.Compare(b.Kept+b.Queued, a.Kept+a.Queued), strings.Compare(a.Name, b.Name))
	})
	d.Clients = slices.Clone(all[:min(len(all), overview.MaxClients)])
	for i := range d.Clients {
		c := &d.Clients[i]
		c.Limit, c.Share = d.accounts.Limit(bus.ClientName(c.Name)), d.accounts.Share(bus.ClientName(c.Name))
	}
}

// isFuller is whether a node is nearer to its high mark than another one.
func isFuller(a, b overview.Memory) bool {
	return float64(a.Used)*float64(b.High) > float64(b.Used)*float64(a.High)
}

// addSubscribers makes the subscribers. A client may have several tokens, also in several
// partitions: it is one of them.
func (d *draft) addSubscribers() {
	d.Subscribers = make([]overview.SubscriberState, 0, len(d.backlogs))
	for b, parts := range inspect.ByClient(d.backlogs) {
		if !b.Subscribed {
			continue
		}
		sub := overview.SubscriberState{
			Name: string(b.Client), Timeout: b.Timeout, Sent: b.Sent, Queued: b.Events, Batches: b.Batches,
			Dead: b.DeadLetterEvents, Health: b.Health, OldestAt: b.OldestAt, AttemptedAt: b.AttemptedAt,
			Paused: b.Holds.Paused, Throttled: b.Holds.Throttled, Paced: b.Holds.Paced,
		}
		for _, part := range parts {
			if more := d.details[part.Token]; more != nil {
				more.addTo(&sub)
			}
		}
		d.Subscribers = append(d.Subscribers, sub)
	}
}

// addTo adds the details of one of the tokens of a subscriber.
func (d *detail) addTo(sub *overview.SubscriberState) {
	if sub.Topics == nil {
		sub.Topics = d.topics
	} else {
		sub.Topics = slices.Concat(sub.Topics, d.topics)
		slices.Sort(sub.Topics)
		sub.Topics = slices.Compact(sub.Topics)
	}
	sub.Failure = cmp.Or(d.failure, sub.Failure)
	sub.Blocked = sub.Blocked || d.blocked
}
