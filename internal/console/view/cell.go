package view

import (
	"html/template"
	"strconv"
	"strings"

	"routemaster/internal/overview"
)

// Cell is a cell of a row.
type Cell struct {
	// Rank is on how narrow a screen it is shown, as of its column.
	Rank int
	// Number is whether it holds a number, Mark whether a change of it is marked for a moment.
	Number, Mark bool
	Content      template.HTML
}

// NumberCell is a cell with a number, which is text.
func NumberCell(rank int, text string) Cell {
	return Cell{Rank: rank, Number: true, Content: template.HTML(template.HTMLEscapeString(text))}
}

// ChangingCell is a [NumberCell] whose changes are marked.
func ChangingCell(rank int, text string) Cell {
	c := NumberCell(rank, text)
	c.Mark = true
	return c
}

// Cells are the cells of a row. A template would take its time for each of so many.
func Cells(all ...Cell) template.HTML {
	var text strings.Builder
	for _, c := range all {
		text.WriteString(`<td class="rank` + strconv.Itoa(c.Rank))
		if c.Number {
			text.WriteString(" number")
		}
		text.WriteString(`"`)
		if c.Mark {
			text.WriteString(" data-mark")
		}
		text.WriteString(">" + string(c.Content) + "</td>\n")
	}
	return template.HTML(text.String())
}

// State shows the state of a subscriber, of a topic or of a job type: an icon and its word.
func State(s overview.State) template.HTML {
	return template.HTML(`<span class="state ` + template.HTMLEscapeString(slug(s)) + `">` +
		string(stateIcon(s)) + " " + template.HTMLEscapeString(string(s)) + `</span>`)
}
