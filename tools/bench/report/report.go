// Package report holds the results of a benchmark: tables of rows, and figures beside their goals.
package report

import (
	"fmt"
	"io"
)

// The figures, by their names.
const (
	Publish     = "publish ÷ no-op"
	Bulk        = "bulk ÷ RPUSH pipelined"
	PublishCPU  = "CPU per publish, µs"
	KeepingUp   = "delivered ÷ due"
	Deliver     = "deliveries ÷ POSTs, 1 at a time"
	Deliver16   = "deliveries ÷ POSTs, 16 at a time"
	P50         = "latency p50, ms"
	P99         = "latency p99, ms"
	Refusals    = "latency p99 beside refused batches ÷ without"
	FanOut      = "insertions ÷ RPUSH"
	Fill        = "backlog filled, last tenth ÷ first"
	Drain       = "backlog drained, last tenth ÷ first"
	Memory      = "memory ÷ packed size"
	WebPeak     = "web peak, MB"
	WorkerPeak  = "worker peak, MB"
	Lost        = "events lost"
	LeftOver    = "keys left over"
	Unreadable  = "deliveries unreadable"
	OutOfOrder  = "events out of order"
	Duplicates  = "events duplicated"
	JobsDone    = "jobs done/s, 300 in flight"
	ToWebhook   = "patch to webhook p50, ms"
	LabelBytes  = "bytes per label"
	WalkScript  = "walk: longest script, ms"
	WalkPeak    = "walk: worker peak, MB"
	BacklogSize = "backlog, events"

	ConsolePageP50      = "console: page p50, ms"
	ConsolePageP99      = "console: page p99, ms"
	ConsoleSampleWeb    = "console: CPU of web per sample, ms"
	ConsoleSampleRedis  = "console: CPU of Redis per sample, ms"
	ConsoleCommand      = "console: longest command, ms"
	ConsoleViewersWeb   = "console: CPU of web with viewers, % of a core"
	ConsoleViewersRedis = "console: CPU of Redis with viewers, % of a core"
	ConsolePublishes    = "console: publishes with viewers ÷ without"
	ConsoleUnusedHeap   = "console: heap of web unused, MB"
	ConsoleViewedHeap   = "console: heap of web with viewers, MB"
)

// The figures of a bus on a cluster.
const (
	ClusterPublish = "cluster: publish p50 ÷ one Redis"
	ClusterIdleP50 = "cluster: latency p50 to another partition, idle, ms"
	ClusterBusyP99 = "cluster: latency p99 to another partition, 3,000/s, ms"
)

// Report is the results of a benchmark.
type Report struct {
	Host   Host
	Tables []*Table
	// Figures are the figures that have goals, by name; see [Goals].
	Figures map[string]float64
	Summary []Verdict
}

// New makes a report without tables, in which nothing is lost.
func New() *Report {
	return &Report{Host: thisHost(), Figures: map[string]float64{Lost: 0, Duplicates: 0, OutOfOrder: 0, Unreadable: 0}}
}

// IsComplete reports whether no event was lost, unreadable or left over.
func (r *Report) IsComplete() bool {
	return r.Figures[Lost] == 0 && r.Figures[Unreadable] == 0 && r.Figures[LeftOver] == 0
}

// Goal is the wanted value of a figure.
type Goal struct {
	Figure, About string
	Want          float64
	// Min says that Want is a minimum, else it is a maximum.
	Min bool
}

// Goals are the goals of the summary. They are set for two CPUs, shared by the bus, Redis and the
// load.
var Goals = []Goal{
	{Publish, "single-event publishes/s ÷ no-op handler, 16 publishers, 1 subscriber", 0.5, true},
	{Bulk, "events/s in arrays of 100 ÷ RPUSH pipelined by 100", 0.3, true},
	{PublishCPU, "CPU of web + Redis per single-event publish, µs", 25, false},
	{KeepingUp, "end to end, max 100, worst timeout: delivered/s ÷ published/s that are due, " +
		"0.7 of the publishes/s above", 0.98, true},
	{Deliver, "end to end, max 1, one at a time: deliveries/s ÷ straight POSTs on 1 connection", 0.4, true},
	{Deliver16, "the same, 16 at a time and on 16 connections", 0.4, true},
	{P50, "latency at 1,000 events/s, timeout 0: p50, ms", 2, false},
	{P99, "latency at 1,000 events/s, timeout 0: p99, ms", 10, false},
	{Refusals, "latency at 1,000 events/s, max 1: p99 beside 50 batches that the subscriber refuses ÷ without, medians of 5", 1.2, false},
	{FanOut, "fan-out to 100 subscribers: queue insertions/s ÷ RPUSH unpipelined", 0.7, true},
	{Fill, "backlog: rate of filling, last tenth ÷ first tenth", 0.95, true},
	{Drain, "backlog: rate of draining, last tenth ÷ first tenth", 0.95, true},
	{Memory, "backlog: memory in Redis per queued event ÷ its packed size", 1.15, false},
	{WebPeak, "peak memory of web under full load, MB", 40, false},
	{WorkerPeak, "peak memory of a worker with 300 threads, MB", 40, false},
	{JobsDone, "jobs done/s by a service that answers at once, 300 in flight", 4270, true},
	{ToWebhook, "labels: from a patch that opens a gate to the webhook of its action, p50, ms", 3, false},
	{LabelBytes, "labels: Redis bytes per label with 100 bytes of metadata", 700, false},
	{WalkScript, "labels: longest script of a walk over many of one state, ms", 5, false},
	{WalkPeak, "labels: peak memory of a worker meanwhile, MB", 60, false},
	{ConsolePageP50, "console, 1,000 subscribers and 500 topics: slowest page, p50, ms", 2, false},
	{ConsolePageP99, "the same, p99, ms", 15, false},
	{ConsoleSampleWeb, "console: CPU of web for a sample, ms", 15, false},
	{ConsoleSampleRedis, "console: CPU of Redis for a sample, ms", 8, false},
	{ConsoleCommand, "console: longest command of a sample, ms (0 if below 1)", 2, false},
	{ConsoleViewersWeb, "console, 50 viewers, a page every 5 s: CPU of web, % of a core", 3, false},
	{ConsoleViewersRedis, "the same, CPU of Redis, %", 0.5, false},
	{ConsolePublishes, "publishes/s with 50 viewers ÷ without, median of 5", 0.98, true},
	{ConsoleUnusedHeap, "console: heap of web more, unused, MB", 1, false},
	{ConsoleViewedHeap, "console: heap of web more, with 50 viewers, MB", 12, false},
	{ClusterPublish, "cluster: p50 of a publish ÷ that on one Redis, subscriber on another node, the worst of the loads, " +
		"medians of 5", 1.15, false},
	{ClusterIdleP50, "cluster: latency at 10 events/s to a subscriber on another node, p50, ms", 8, false},
	{ClusterBusyP99, "the same at 3,000 events/s, p99, ms", 50, false},
	{Lost, "events lost, over all", 0, false},
	{LeftOver, "keys left over after draining, over all", 0, false},
}

// Verdict is a goal beside the measured figure.
type Verdict struct {
	Goal
	// Measured is nil if the figure was not measured.
	Measured *float64
	Met      bool
}

// Summarize compares the figures with the goals.
func (r *Report) Summarize() {
	r.Summary = nil
	for _, goal := range Goals {
		verdict := Verdict{Goal: goal}
		if measured, ok := r.Figures[goal.Figure]; ok {
			verdict.Measured = &measured
			verdict.Met = measured >= goal.Want && goal.Min || measured <= goal.Want && !goal.Min
		}
		r.Summary = append(r.Summary, verdict)
	}
}

// Set sets a figure. Of several values it keeps the last.
func (r *Report) Set(figure string, value float64) { r.Figures[figure] = value }

// Add adds to a figure.
func (r *Report) Add(figure string, value int64) { r.Figures[figure] += float64(value) }

// SetMax raises a figure to a value.
func (r *Report) SetMax(figure string, value float64) { r.Set(figure, max(r.Figures[figure], value)) }

// SetMin lowers a figure to a value, or sets it.
func (r *Report) SetMin(figure string, value float64) {
	if before, known := r.Figures[figure]; known {
		value = min(value, before)
	}
	r.Set(figure, value)
}

// WriteSummary writes the figures beside their goals.
func (r *Report) WriteSummary(out io.Writer) error {
	fmt.Fprint(out, "summary\n\n")
	var rows []Row
	for _, v := range r.Summary {
		sign, measured, met := "≤", any(nil), "not measured"
		if v.Min {
			sign = "≥"
		}
		if v.Measured != nil {
			measured, met = *v.Measured, map[bool]string{true: "met", false: "NOT MET"}[v.Met]
		}
		rows = append(rows, Cells("goal", sign+" "+format(v.Want), "measured", measured, "", met, "figure", v.About))
	}
	writeRows(out, rows)
	if size, ok := r.Figures[BacklogSize]; ok {
		fmt.Fprintf(out, "The backlog was of %.0f events; its goals are for 5000000 (--full).\n", size)
	}
	_, err := fmt.Fprintf(out, "Over all: %.0f events duplicated, %.0f out of order, %.0f deliveries unreadable.\n",
		r.Figures[Duplicates], r.Figures[OutOfOrder], r.Figures[Unreadable])
	return err
}
