package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store/storetest"
	"routemaster/internal/test/bustest"
)

// report counts, logs the results, and requires that they are right.
func (c *chaos) report(long bool) {
	c.faults = append(c.faults, c.lateResponses()...)
	var report strings.Builder
	table := tabwriter.NewWriter(&report, 0, 0, 2, ' ', tabwriter.AlignRight)
	c.requireDeliveries(table)
	_ = table.Flush()
	c.requireFaults(table, long)
	_ = table.Flush()
	times, lasted := c.faults.stalls()
	fmt.Fprintf(&report, "the host stalled %d times, for %v in all\n", times, lasted.Round(time.Millisecond))
	c.reportRecovery(&report)
	c.requireJobs(&report)
	c.requireLabels(&report)
	c.requireCleanLogs()
	assert.Empty(c.t, c.ledger.complaints)
	c.t.Logf("%d events acknowledged, %d tries to publish failed\n%s", len(c.ledger.publications), c.ledger.refusals, &report)
	c.requireEmptyRedis()
}

// requireDeliveries requires that nothing was lost, and that faults explain repetitions and wrong
// order. The column "near faults" shows how much that proves: the share of deliveries so close to a
// fault that a repetition would have been explained.
func (c *chaos) requireDeliveries(table *tabwriter.Writer) {
	fmt.Fprintln(table, "subscriber\tdue\tdelivered\tlost\tagain\tout of order\tunexplained\tnear faults\t")
	due, causes := 0, map[string]int{}
	must := c.replayed()
	for _, s := range subscribers {
		must = append(must, expected{s.name, s.name, c.ledger.acknowledgedIn(s.topics...), orderOf(s.options)})
	}
	for _, s := range must {
		n := c.ledger.count(s, c.faults)
		again := 0
		for cause, events := range n.again {
			again += events
			causes[cause] += events
		}
		due += n.due
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d%%\t\n",
			s.of, n.due, n.delivered, n.lost, again, n.outOfOrder, len(n.wrong)-n.lost, 100*n.nearFaults/max(n.deliveries, 1))
		assert.Empty(c.t, n.wrong, s.of)
	}
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		fmt.Fprintf(table, "after %s\t\t\t\t%.2f%%\t\t\t\t\n", cause, 100*float64(causes[cause])/float64(due))
	}
}

// requireFaults requires that a long run has seen every kind of fault everywhere.
func (c *chaos) requireFaults(table *tabwriter.Writer, long bool) {
	var kinds []faultKind
	for _, stream := range c.streams {
		for _, kind := range stream.kinds {
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	fmt.Fprint(table, "faults\t")
	for _, kind := range kinds {
		fmt.Fprintf(table, "%s\t", kind)
	}
	fmt.Fprintln(table)
	seen := map[string]map[faultKind]int{}
	for _, f := range c.faults {
		if seen[f.stream] == nil {
			seen[f.stream] = map[faultKind]int{}
		}
		seen[f.stream][f.kind]++
	}
	for _, stream := range c.streams {
		fmt.Fprintf(table, "%s\t", stream.name)
		for _, kind := range kinds {
			fmt.Fprintf(table, "%d\t", seen[stream.name][kind])
			if long && slices.Contains(stream.kinds, kind) {
				assert.Positive(c.t, seen[stream.name][kind], "%s: %s", stream.name, kind)
			}
		}
		fmt.Fprintln(table)
	}
}

// reportRecovery says how soon the bus was back after Redis. [chaos.recoverFromAnOutage] checks
// that.
func (c *chaos) reportRecovery(report *strings.Builder) {
	fmt.Fprintln(report, "first publish acknowledged, first delivery arrived, after Redis was back, or since a node had a fault")
	for _, o := range c.outages {
		publish, delivery, _ := c.ledger.recovery(o)
		fmt.Fprintf(report, "  %v, %v%s\n", publish.Round(time.Millisecond), delivery.Round(time.Millisecond), o.note)
	}
}

// requireCleanLogs requires that no daemon has logged an error, except about Redis, and that no
// living worker was taken for dead.
func (c *chaos) requireCleanLogs() {
	c.eachLogged(func(daemon, line string) {
		var entry logEntry
		if err := json.Unmarshal([]byte(line), &entry); err != nil || !entry.isExplained(c.faults) {
			c.ledger.complain("%s logged %s, the masters having changed at %v", daemon, line, c.faults.changes())
		}
	})
}

// eachLogged passes on the daemons' logs, a line at a time.
func (c *chaos) eachLogged(pass func(daemon, line string)) {
	for name, daemon := range c.daemons {
		for _, run := range daemon.runs {
			for _, line := range run.LogLines() {
				pass(name, line)
			}
		}
	}
}

type logEntry struct {
	Time              time.Time
	Level, Msg, Error string
	Subscriber        string
	Duration          float64 // in s
}

// isExplained reports whether faults explain an entry. One about a job that was completed too late
// is explained by a change of the master: the next may not know that a worker has it, and gives it
// to another.
func (e *logEntry) isExplained(why faults) bool {
	if strings.Contains(e.Msg, "too late") {
		return why.failedOver("", e.Time.Add(-chaosTimeout-callTimeout-completeMargin()), e.Time)
	}
	isAway := e.Msg == "partition held or moving, retrying" || strings.HasPrefix(e.Msg, "redis unavailable, retrying")
	return e.Level != "ERROR" || isAway || e.Error == rdb.ErrUnconfirmed.Error()
}

// requireEmptyRedis requires that every event was stored once, and that nothing is left.
func (c *chaos) requireEmptyRedis() {
	stored, ctx := map[string]int{}, c.t.Context()
	for _, p := range c.ledger.publications {
		stored[p.topic]++
	}
	for topic, events := range stored {
		home := c.stores.Home(bus.TopicName(topic)).Partition()
		counter, err := home.HGet(ctx, home.Namespace()+"topic:"+topic, "counter").Int()
		require.NoError(c.t, err)
		assert.Equal(c.t, events, counter, "events stored in %s", topic)
	}
	for _, st := range c.stores.All() {
		// The bus removes killed workers after an hour; this is the same step.
		jobs, _, err := storetest.NewQueue(st, 1).ForgetWorkers(ctx, time.Now())
		require.NoError(c.t, err)
		assert.Zero(c.t, jobs, "jobs that dead workers held")
	}
	c.requireSound()
	for _, st := range c.stores.All() {
		assert.Empty(c.t, bustest.LeftoverKeys(c.t, st.Partition()))
	}
}

// requireSound requires that the data layout's invariants hold.
func (c *chaos) requireSound() { storetest.RequireAllSound(c.t, c.stores) }
