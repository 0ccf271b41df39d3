package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// Table is the results of one scenario.
type Table struct {
	Scenario, About string
	Rows            []Row
	// Processes is the CPU time and memory that each process used in the whole scenario.
	Processes []Row
	Notes     []string
}

// Row is one line of a table.
type Row []Cell

// Cell is a value under a name, which has the unit. A value is a string, an int, an int64 or a
// float64, or nil where it is not known.
type Cell struct {
	Name  string
	Value any
}

// Cells makes a row of names, each followed by its value.
func Cells(namesAndValues ...any) (row Row) {
	for i := 0; i < len(namesAndValues); i += 2 {
		row = append(row, Cell{namesAndValues[i].(string), namesAndValues[i+1]})
	}
	return row
}

// MarshalJSON makes an object of a row.
func (r Row) MarshalJSON() ([]byte, error) {
	object := map[string]any{}
	for _, cell := range r {
		object[cell.Name] = cell.Value
	}
	return json.Marshal(object)
}

// Add adds a row of cells.
func (t *Table) Add(cells ...Row) {
	var row Row
	for _, some := range cells {
		row = append(row, some...)
	}
	t.Rows = append(t.Rows, row)
}

// Note adds a line below the rows.
func (t *Table) Note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// Write writes a table as text.
func (t *Table) Write(out io.Writer) error {
	fmt.Fprintf(out, "%s: %s\n\n", t.Scenario, t.About)
	writeRows(out, t.Rows)
	writeRows(out, t.Processes)
	for _, note := range t.Notes {
		fmt.Fprintf(out, "%s\n", note)
	}
	_, err := fmt.Fprintln(out)
	return err
}

// writeRows writes rows below their names. A row with other names than the one before begins a new
// block. An error of the writer is left to its next use.
func writeRows(out io.Writer, rows []Row) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	header := ""
	for i, row := range rows {
		names, values := row.lines()
		if names != header {
			if i > 0 {
				fmt.Fprintln(w)
				_ = w.Flush()
			}
			header = names
			fmt.Fprintln(w, names)
		}
		fmt.Fprintln(w, values)
	}
	if len(rows) > 0 {
		fmt.Fprintln(w)
	}
	_ = w.Flush()
}

// lines returns the names and the values of a row, for a tabwriter. A text at the end of the row is
// not aligned.
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

// format writes a number with at least three digits.
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
