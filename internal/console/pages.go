package console

import (
	"embed"
	"slices"
)

// templates are those of all pages, with layout.html, which each of them fills in, and parts that
// pages share.
//
//go:embed templates
var templates embed.FS

// All are all pages, in the order of the navigation. They are made by functions: the linker keeps
// what a variable is made from in each program, and a worker serves no pages.
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
