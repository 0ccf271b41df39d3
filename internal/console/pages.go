package console

import (
	"embed"
	"slices"
)

// templates are the templates of all pages, the layout.html that each of them fills in, and shared
// parts.
//
//go:embed templates
var templates embed.FS

// All returns all pages, in the order of the navigation. They are made by functions: the linker
// keeps the data of a package variable in every program, and a worker serves no pages.
func All() []Page {
	return slices.Concat(busPages(), ownPages())
}

// ownPages are about the console itself.
func ownPages() []Page {
	return []Page{
		{Path: "help", Template: "help", For: Members, Load: help},
		{Path: "display", Template: "display", For: Members, Load: display, Submit: submitDisplay, Personal: true},
	}
}
