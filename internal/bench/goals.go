package bench

import (
	"fmt"
	"io"
)

// The figures that goals are set for.
const (
	figurePublish     = "publish ÷ no-op"
	figureBulk        = "bulk ÷ RPUSH pipelined"
	figurePublishCPU  = "CPU per publish, µs"
	figureKeepingUp   = "delivered ÷ due"
	figureDeliver     = "deliveries ÷ POSTs, 1 at a time"
	figureDeliver16   = "deliveries ÷ POSTs, 16 at a time"
	figureP50         = "latency p50, ms"
	figureP99         = "latency p99, ms"
	figureFanOut      = "insertions ÷ RPUSH"
	figureFill        = "backlog filled, last tenth ÷ first"
	figureDrain       = "backlog drained, last tenth ÷ first"
	figureMemory      = "memory ÷ packed size"
	figureWebPeak     = "web peak, MB"
	figureWorkerPeak  = "worker peak, MB"
	figureLost        = "events lost"
	figureLeftOver    = "keys left over"
	figureUnreadable  = "deliveries unreadable"
	figureOutOfOrder  = "events out of order"
	figureDuplicates  = "events duplicated"
	figureBacklogSize = "backlog, events"
)

// Goal is what a figure should be.
type Goal struct {
	Figure, About string
	Want          float64
	// Min says that Want is a minimum, else it is a maximum.
	Min bool
}

// Goals are those of the summary. They are set for two CPUs, shared by the bus, Redis and the load.
var Goals = []Goal{
	{figurePublish, "single-event publishes/s ÷ no-op handler, 16 publishers, 1 subscriber", 0.5, true},
	{figureBulk, "events/s in arrays of 100 ÷ RPUSH pipelined by 100", 0.3, true},
	{figurePublishCPU, "CPU of web + Redis per single-event publish, µs", 25, false},
	{figureKeepingUp, "end to end, max 100, worst timeout: delivered/s ÷ published/s that are due, " +
		"0.7 of the publishes/s above", 0.98, true},
	{figureDeliver, "end to end, max 1, one at a time: deliveries/s ÷ straight POSTs on 1 connection", 0.4, true},
	{figureDeliver16, "the same, 16 at a time and on 16 connections", 0.4, true},
	{figureP50, "latency at 1,000 events/s, timeout 0: p50, ms", 2, false},
	{figureP99, "latency at 1,000 events/s, timeout 0: p99, ms", 10, false},
	{figureFanOut, "fan-out to 100 subscribers: queue insertions/s ÷ RPUSH unpipelined", 0.7, true},
	{figureFill, "backlog: rate of filling, last tenth ÷ first tenth", 0.95, true},
	{figureDrain, "backlog: rate of draining, last tenth ÷ first tenth", 0.95, true},
	{figureMemory, "backlog: memory in Redis per queued event ÷ its packed size", 1.15, false},
	{figureWebPeak, "peak memory of web under full load, MB", 40, false},
	{figureWorkerPeak, "peak memory of a worker with 300 threads, MB", 40, false},
	{figureLost, "events lost, over all", 0, false},
	{figureLeftOver, "keys left over after draining, over all", 0, false},
}

// Verdict is a goal beside what was measured.
type Verdict struct {
	Goal
	// Measured is nil if the figure was not measured.
	Measured *float64
	Met      bool
}

// summarize compares the figures with the goals.
func (r *Report) summarize() {
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

// set sets a figure. Of several values it keeps the last.
func (r *Report) set(figure string, value float64) { r.Figures[figure] = value }

// add adds to a figure.
func (r *Report) add(figure string, value int64) { r.Figures[figure] += float64(value) }

// keepMax keeps the largest value of a figure.
func (r *Report) keepMax(figure string, value float64) { r.set(figure, max(r.Figures[figure], value)) }

// keepMin keeps the smallest value of a figure.
func (r *Report) keepMin(figure string, value float64) {
	if before, known := r.Figures[figure]; known {
		value = min(value, before)
	}
	r.set(figure, value)
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
		rows = append(rows, Row{{"goal", sign + " " + format(v.Want)}, {"measured", measured}, {"", met}, {"figure", v.About}})
	}
	writeRows(out, rows)
	if size, ok := r.Figures[figureBacklogSize]; ok {
		fmt.Fprintf(out, "The backlog was of %.0f events; its goals are for 5000000 (--full).\n", size)
	}
	_, err := fmt.Fprintf(out, "Over all: %.0f events duplicated, %.0f out of order, %.0f deliveries unreadable.\n",
		r.Figures[figureDuplicates], r.Figures[figureOutOfOrder], r.Figures[figureUnreadable])
	return err
}
