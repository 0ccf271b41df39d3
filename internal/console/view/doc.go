// Package view makes what the pages of the console show, without I/O: lists that are sorted,
// filtered and cut into pages, the settings of a subscriber as a form, and requests as commands.
package view
