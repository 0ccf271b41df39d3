// Package pages has the pages of the console: for each its template, and what gets the data for it.
package pages

import (
	"embed"
	"slices"

	"routemaster/internal/console/page"
)

// Templates are the templates of all pages, with layout.html, which each of them fills in, and
// parts that pages share.
//
//go:embed *.html parts/*.html
var Templates embed.FS

// All are all pages, in the order of the navigation. They are made by functions: the linker keeps
// what a variable is made from in each program, and a worker serves no pages.
func All() []page.Page {
	return slices.Concat(busPages(), ownPages())
}

// ownPages are about the console itself.
func ownPages() []page.Page {
	return []page.Page{
		{Path: "help", Template: "help", For: page.Members, Load: help},
		{Path: "display", Template: "display", For: page.Members, Load: display, Submit: submitDisplay, Personal: true},
	}
}
