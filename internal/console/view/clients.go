package view

import (
	"html/template"

	"routemaster/internal/format"
	"routemaster/internal/overview"
)

var clients = Kind[overview.Client]{
	id: "clients", name: func(c *overview.Client) string { return c.Name },
	columns: []Column[overview.Client]{
		{Name: "name", Title: "Name", Rank: 1},
		{Name: "kept", Title: "Kept", Figure: "kept", Number: true, Rank: 1},
		{Name: "limit", Title: "May keep", Number: true, Rank: 1},
		{Name: "queued", Title: "Queued", Number: true, Rank: 1},
	},
}

// ClientRow is a client in a list.
type ClientRow struct{ overview.Client }

// Cells are the cells of the row, but for the first, which has the name.
func (r ClientRow) Cells() template.HTML {
	limit := "any"
	if r.Limit != nil {
		limit = format.Megabytes(*r.Limit)
	}
	return Cells(
		ChangingCell(1, format.Megabytes(r.Kept)), NumberCell(1, limit), ChangingCell(1, format.Megabytes(r.Queued)),
	)
}

// ClientTable makes a table of clients.
func ClientTable(some []overview.Client) Table[ClientRow] {
	rows := make([]ClientRow, len(some))
	for i, c := range some {
		rows[i] = ClientRow{c}
	}
	return Table[ClientRow]{clients.Heads(), rows}
}
