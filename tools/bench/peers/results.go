package main

import (
	"fmt"
	"io"
	"slices"

	"routemaster/tools/bench/report"
)

// busy is the part of the CPU, in %, from which on others make a turn noisy.
const busy = 10

// results are the figures of every turn, by measure and system.
type results map[string]map[string][]figures

func (r results) add(measure, system string, f figures) {
	if r[measure] == nil {
		r[measure] = map[string][]figures{}
	}
	r[measure][system] = append(r[measure][system], f)
}

// median is the median of one figure over all turns.
func median(turns []figures, of func(figures) float64) float64 {
	all := values(turns, of)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// values are the values of one figure, in ascending order.
func values(turns []figures, of func(figures) float64) (all []float64) {
	for _, f := range turns {
		all = append(all, of(f))
	}
	slices.Sort(all)
	return all
}

func rate(f figures) float64   { return f.rate }
func cpu(f figures) float64    { return f.cpu }
func others(f figures) float64 { return f.others }

// table has a row for each system.
func (r results) table(of measure) *report.Table {
	t := &report.Table{Scenario: of.name, About: of.about}
	for _, s := range systems {
		turns := r[of.name][s.name]
		rates, foreign := values(turns, rate), values(turns, others)
		row := report.Cells("system", s.name, "per s", median(turns, rate), "least", rates[0], "most", rates[len(rates)-1],
			"CPU µs", median(turns, cpu), "others %", median(turns, others), "at most", foreign[len(foreign)-1])
		if of.name != publishing {
			row = append(row, report.Cells("lost", total(turns, func(f figures) int64 { return f.lost }),
				"disord.", total(turns, func(f figures) int64 { return f.disordered }))...)
		}
		t.Add(row, report.Cells("kept", s.settings))
	}
	return t
}

func total(turns []figures, of func(figures) int64) (sum int64) {
	for _, f := range turns {
		sum += of(f)
	}
	return sum
}

// lost counts ours.
func (r results) lost() (events int64) {
	for _, bySystem := range r {
		events += total(bySystem[routemaster], func(f figures) int64 { return f.lost })
	}
	return events
}

// goals are the ratios that are to be reached at least: ours ÷ a peer's.
var goals = []struct {
	measure, peer string
	want          float64
}{
	{drainMany, jetStream, 1}, {drainMany, jetStreamOn, 1},
	{drainOne, jetStream, 1}, {drainOne, jetStreamOn, 1},
	{endToEnd, jetStream, 1}, {endToEnd, jetStreamOn, 1},
	{endToEnd, asynqProgram, 1.5},
	{publishing, asynqProgram, 1.4},
	{publishing, nsqDisk, 0.8},
}

// write writes a table of each measure, and the ratios beside their goals.
func (r results) write(out io.Writer) error {
	for _, m := range measures {
		if err := r.table(m).Write(out); err != nil {
			return err
		}
	}
	t := &report.Table{Scenario: "ratios", About: "ours ÷ the peer's, of medians"}
	for _, g := range goals {
		ours, peers := r[g.measure][routemaster], r[g.measure][g.peer]
		t.Add(report.Cells("ratio", median(ours, rate)/median(peers, rate), "goal", g.want,
			"CPU ratio", median(ours, cpu)/median(peers, cpu), "figure", g.measure+" ÷ "+g.peer))
	}
	noisy, turns := 0, 0
	for _, bySystem := range r {
		for _, all := range bySystem {
			for _, f := range all {
				if turns++; f.others > busy {
					noisy++
				}
			}
		}
	}
	t.Note("Others used more than %d %% of this host in %d of %d turns; their column says in which rows.", busy, noisy, turns)
	if err := t.Write(out); err != nil {
		return err
	}
	if lost := r.lost(); lost > 0 {
		return fmt.Errorf("the bus lost %d events", lost)
	}
	return nil
}
