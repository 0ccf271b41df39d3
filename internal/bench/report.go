package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Report is what a benchmark found.
type Report struct {
	Machine Machine
	Tables  []*Table
	// Figures are those that goals are set for, by name; see [Goals].
	Figures map[string]float64
	Summary []Verdict
}

// Machine is what it ran on.
type Machine struct {
	CPUs       int
	System, Go string
	// Load is the load average at first, empty where that is not known: others who are busy make figures worse.
	Load string
}

func thisMachine() Machine {
	load, _ := os.ReadFile("/proc/loadavg")
	averages := strings.Fields(string(load))
	return Machine{
		CPUs: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
		Load: strings.Join(averages[:min(3, len(averages))], " "), // of 1, 5 and 15 minutes
	}
}

func (m Machine) String() string {
	text := fmt.Sprintf("%d CPUs, %s, %s", m.CPUs, m.System, m.Go)
	if m.Load != "" {
		text += ", load average at first " + m.Load
	}
	return text
}

// Table is what one scenario found.
type Table struct {
	Scenario, About string
	Rows            []Row
	// Processes are what each process took, over the whole scenario.
	Processes []Row
	Notes     []string
}

// Row is one line of a table.
type Row []Cell

// Cell is a value under a name, which has the unit. A value is a string, an int, an int64 or a float64, or nil where it is not known.
type Cell struct {
	Name  string
	Value any
}

// MarshalJSON makes an object of a row.
func (r Row) MarshalJSON() ([]byte, error) {
	object := map[string]any{}
	for _, cell := range r {
		object[cell.Name] = cell.Value
	}
	return json.Marshal(object)
}

func (t *Table) add(cells ...Row) {
	var row Row
	for _, some := range cells {
		row = append(row, some...)
	}
	t.Rows = append(t.Rows, row)
}

// note adds a line below the rows.
func (t *Table) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// Write writes a table as text.
func (t *Table) Write(out io.Writer) error {
	fmt.Fprintf(out, "%s: %s\n\n", t.Scenario, t.About)
	for _, rows := range [][]Row{t.Rows, t.Processes} {
		if err := writeRows(out, rows); err != nil {
			return err
		}
	}
	for _, note := range t.Notes {
		fmt.Fprintf(out, "%s\n", note)
	}
	_, err := fmt.Fprintln(out)
	return err
}

// writeRows writes rows below their names. A row with other names than the one before begins a block of its own.
func writeRows(out io.Writer, rows []Row) error {
	var w *tabwriter.Writer
	header := ""
	for _, row := range rows {
		names, values := row.lines()
		if names != header {
			if err := endBlock(out, w); err != nil {
				return err
			}
			w, header = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight), names
			fmt.Fprintln(w, names)
		}
		fmt.Fprintln(w, values)
	}
	return endBlock(out, w)
}

func endBlock(out io.Writer, w *tabwriter.Writer) error {
	if w == nil {
		return nil
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

// lines are the names and the values of a row, to be aligned. A text at the end is not.
func (r Row) lines() (names, values string) {
	for i, cell := range r {
		end := "\t"
		if _, text := cell.Value.(string); text && i == len(r)-1 {
			names, values, end = names+"  ", values+"  ", ""
		}
		names += cell.Name + end
		values += format(cell.Value) + end
	}
	return names, values
}

// format shows a number with three digits at least.
func format(value any) string {
	v, isFloat := value.(float64)
	switch {
	case value == nil:
		return "-"
	case !isFloat:
		return fmt.Sprint(value)
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
