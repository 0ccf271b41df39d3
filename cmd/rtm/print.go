package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"routemaster/internal/format"
	"routemaster/internal/terminal"
)

// list is what a command prints, in one of three formats.
type list struct {
	json bool
	// value is the list as JSON.
	value any
	// empty is printed on a terminal instead of a table without rows.
	empty  string
	header []string
	rows   [][]string
	// plain writes what a script reads.
	plain func(io.Writer) error
}

func addJSONFlag(command *cobra.Command, asJSON *bool) {
	command.Flags().BoolVar(asJSON, "json", false, "print a JSON array")
}

func (l list) print(w io.Writer) error {
	switch {
	case l.json:
		return writeJSON(w, l.value)
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
