package samples

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// draft is an unfinished sample, with the data its subscribers are made from.
type draft struct {
	overview.Sample
	reader Reader
	// held is whether the partition is held, or on its way to another node.
	held bool
	// node is the Redis server that has the partition, or whose memory it has.
	node     string
	backlogs []inspect.Backlog
	// details are further data of subscribers. In the draft of one partition they are its cache.
	details map[bus.Token]*detail
	// accounts are the clients' accounts; queued are the bytes queued for them. Both are nil in
	// samples of the history, which has neither.
	accounts account.Nodes
	queued   map[bus.ClientName]int64
	// outboxes are the events to be relayed to each of several partitions.
	outboxes []store.Outbox
}

// away is the draft of a partition that could not be read.
func (d *draft) away(at time.Time, why string) *draft {
	return &draft{
		reader: d.reader, held: d.held, node: d.node,
		Sample: overview.Sample{At: at, Redis: why},
	}
}

// goesOn reports whether reading goes on although a part is unreadable for the given reason. A
// scrape shows memory, accounts, job types and machines also if a key is of another type.
func (d *draft) goesOn(why string) bool { return d.reader == Scrape && why == notOfTheBus }

// hasDamage reports whether foreign data made a part unreadable.
func (d *draft) hasDamage() bool {
	return slices.ContainsFunc(d.Unread, func(u overview.Unread) bool { return u.Why == notOfTheBus })
}

// merge makes one draft from the drafts of all partitions, by number. A part that one partition
// could not read is listed as unread, with the data of the others.
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
	partitions, nodes := places(drafts)
	for i, d := range drafts {
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
		drafts[0].Partitions, drafts[0].Nodes = partitions, nodes
		return drafts[0]
	}
	all.Unread, all.Held, all.Away = unread, held, away
	all.Partitions, all.Nodes = partitions, nodes
	known := 0
	for _, node := range nodes {
		if node.Memory != nil {
			known++
		}
	}
	if known > 1 {
		all.Memory.Node, all.Memory.Nodes = all.node, known
	}
	slices.SortFunc(all.Topics, func(a, b overview.TopicState) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(all.Histories, func(a, b overview.HistoryState) int { return strings.Compare(a.Topic, b.Topic) })
	return all
}

// places are the partitions of several drafts, by number, and the nodes that have them.
func places(drafts []*draft) (partitions []overview.Partition, nodes []overview.Node) {
	partitions = make([]overview.Partition, len(drafts))
	for i, d := range drafts {
		isRead := d.Redis == ""
		partitions[i].IsUp = isRead && !d.held
		for to, outbox := range d.outboxes {
			sum := &partitions[to]
			sum.Relayed += outbox.Events
			if since := outbox.Since; sum.RelayedSince.IsZero() || !since.IsZero() && since.Before(sum.RelayedSince) {
				sum.RelayedSince = since
			}
		}
		at := slices.IndexFunc(nodes, func(n overview.Node) bool { return n.Address == d.node })
		if at < 0 {
			at = len(nodes)
			nodes = append(nodes, overview.Node{Address: d.node, IsUp: true, First: i})
		}
		node := &nodes[at]
		node.IsUp = node.IsUp && isRead
		if node.Memory == nil {
			node.Memory = d.Memory
		}
	}
	return partitions, nodes
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
	d.DueJobs += more.DueJobs
	d.RunningReplays += more.RunningReplays
	d.Histories = append(d.Histories, more.Histories...)
	if len(d.Queues) == 0 {
		d.Queues = more.Queues
	} else {
		for i, q := range more.Queues { // all list the same
			d.Queues[i].Instant += q.Instant
			d.Queues[i].Scheduled += q.Scheduled
		}
	}
	if d.Memory == nil || more.Memory != nil && isFuller(*more.Memory, *d.Memory) {
		d.Memory, d.node = more.Memory, more.node // of several nodes, the fullest one's
	}
}

// addAccounts adds the clients' accounts in another partition.
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

// addClients adds the clients that use most memory, and computes limits for these only. For
// Prometheus it adds the accounts of all clients.
func (d *draft) addClients() {
	if d.reader == Scrape {
		for node, all := range d.accounts {
			for client, kept := range all.Kept {
				a := overview.Account{Client: string(client), Node: node, Kept: kept}
				if limit, ok := all.Limit(client); ok {
					a.Limit = &limit
				}
				d.Accounts = append(d.Accounts, a)
			}
		}
		return
	}
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

// addSubscribers makes the subscribers and the others. A client may have several tokens, also in
// several partitions: it is one of them.
func (d *draft) addSubscribers() {
	d.Subscribers = make([]overview.SubscriberState, 0, len(d.backlogs))
	for b, parts := range inspect.ByClient(d.backlogs) {
		if !b.Subscribed && d.reader&watches != 0 {
			continue
		}
		sub := overview.SubscriberState{
			Name: string(b.Client), Timeout: b.Timeout, Sent: b.Sent, Queued: b.Events, Batches: b.Batches,
			Dead: b.DeadLetterEvents, Health: b.Health, OldestAt: b.OldestAt, AttemptedAt: b.AttemptedAt,
			Paused: b.Holds.Paused, Throttled: b.Holds.Throttled, Paced: b.Holds.Paced, Lanes: b.Lanes,
		}
		if !b.Subscribed {
			d.Others = append(d.Others, sub)
			continue
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
