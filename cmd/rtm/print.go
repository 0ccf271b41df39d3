package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"routemaster/client/subscriber"
	"routemaster/internal/format"
	"routemaster/internal/terminal"
)

// list is the output of a command, in one of three formats.
type list struct {
	json bool
	// value is the list as JSON.
	value any
	// empty is printed on a terminal instead of a table without rows.
	empty  string
	header []string
	rows   [][]string
	// plain writes the output for scripts; if it is nil, that is the rows as lines with tabs.
	plain func(io.Writer) error
}

// cell is a value as a terminal shows it, and as a script reads it.
type cell struct{ shown, plain string }

// cellOf makes a cell of a text, a number, a bool or a time, or takes one as it is.
func cellOf(value any) cell {
	switch v := value.(type) {
	case cell:
		return v
	case time.Time:
		return cell{clock(v), milliseconds(v)}
	case subscriber.Time:
		return cellOf(v.Time)
	}
	text := fmt.Sprint(value)
	return cell{text, text}
}

// dashed is a text for which a terminal shows a dash if it is empty.
func dashed(text string) cell { return cell{cmp.Or(text, "-"), text} }

// clock writes a time in the local time zone, which it names.
func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05 -07:00")
}

// milliseconds is a time for scripts, in ms since the Unix epoch; empty if there is none.
func milliseconds(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return number(t.UnixMilli())
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func (l list) print(w io.Writer) error {
	switch {
	case l.json:
		return writeJSON(w, l.value)
	case !terminal.Is(w) && l.plain == nil:
		return lines(w, l.rows)
	case !terminal.Is(w):
		return l.plain(w)
	case len(l.rows) == 0:
		_, err := fmt.Fprintln(w, l.empty)
		return err
	}
	return l.table(w)
}

// writeJSON writes a value as indented JSON.
func writeJSON(w io.Writer, value any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, terminal.EscapeLines(string(format.JSON(text.Bytes(), math.MaxInt))))
	return err
}

// writeJSONLine writes a value as JSON on one line.
func writeJSONLine(w io.Writer, value any) { fmt.Fprintln(w, terminal.Escape(terminal.JSON(value))) }

// table writes aligned columns.
func (l list) table(w io.Writer) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{l.header}, l.rows...) {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(columns, "\t")
			}
			fmt.Fprint(columns, printable(cell))
		}
		fmt.Fprintln(columns)
	}
	return columns.Flush()
}

// writeLines makes the plain form of a list from its rows.
func writeLines(rows [][]string) func(io.Writer) error {
	return func(w io.Writer) error { return lines(w, rows) }
}

// lines writes the rows with tabs between the cells.
func lines(w io.Writer, rows [][]string) error {
	for _, row := range rows {
		row = slices.Clone(row)
		for i, cell := range row {
			row[i] = terminal.Escape(cell) // names of a bus need no escaping, but another server may send anything
		}
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return nil
}
