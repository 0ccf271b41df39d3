package top

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"routemaster/internal/overview"
	"routemaster/internal/terminal"
)

// Source reads how a bus is. A [Reader] is one.
type Source interface {
	// Read returns the figures of the bus within a bounded time.
	Read(ctx context.Context) (overview.Figures, error)
}

// Watch shows a bus on the terminal until the operator quits or the context is done, which is no
// error.
func Watch(ctx context.Context, source Source, o Options, program ...tea.ProgramOption) error {
	asking, stop := context.WithCancel(ctx)
	defer stop() // a question that is under way
	options := append([]tea.ProgramOption{tea.WithContext(ctx), tea.WithoutSignalHandler()}, program...)
	_, err := tea.NewProgram(newModel(asking, source, o), options...).Run()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// writeJSON prints the figures, with only the rows that pass the filter, in their order.
func writeJSON(out io.Writer, f overview.Figures, tables tables) error {
	f.Subscribers, f.Topics = inOrder(f.Subscribers, tables[0]), inOrder(f.Topics, tables[1])
	f.JobTypes, f.Machines = inOrder(f.JobTypes, tables[2]), inOrder(f.Machines, tables[3])
	f.Clients = inOrder(f.Clients, tables[4])
	return json.NewEncoder(out).Encode(f)
}

// inOrder returns the elements that a table shows, in its order.
func inOrder[T any](all []T, t *table) []T {
	shown := make([]T, len(t.rows))
	for i, r := range t.rows {
		shown[i] = all[r.of]
	}
	return shown
}

// wholeWidth is the width of a screen that leaves out nothing.
const wholeWidth = 200

// Once prints how a bus is: as text, or as the JSON of [overview.Figures].
func Once(ctx context.Context, source Source, o Options, out io.Writer, asJSON bool) error {
	figures, err := readRates(ctx, source, o.Interval)
	if err != nil {
		return err
	}
	tables := newTables(o)
	tables.fill(figures, compileFilter(o.Filter))
	if asJSON {
		return writeJSON(out, figures, tables)
	}
	lines := append([]string{fmt.Sprintf("%s   %s   over %.1fs", terminal.Escape(o.Bus), figures.At.Format(time.RFC3339), figures.Seconds)},
		problemLines(figures.Problems, len(figures.Problems), painter{})...)
	lines = append(lines, summary(figures, painter{})...)
	for _, t := range tables.shown() {
		lines = append(append(lines, ""), t.lines(wholeWidth, len(t.rows), painter{}, false)...)
	}
	_, err = fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// ratesTimeout is for how long a bus is asked again that has no rates. A large one takes its next
// sample after 3.5 s.
const ratesTimeout = 5 * time.Second

// readRates reads figures, and reads them again at an interval while the bus has no rates: then it
// was not watched lately, and has no history.
func readRates(ctx context.Context, source Source, interval time.Duration) (overview.Figures, error) {
	began := time.Now()
	figures, err := source.Read(ctx)
	for err == nil && figures.Seconds == 0 && time.Since(began) < ratesTimeout {
		select {
		case <-time.After(interval):
			figures, err = source.Read(ctx)
		case <-ctx.Done():
			return figures, ctx.Err()
		}
	}
	return figures, err
}
