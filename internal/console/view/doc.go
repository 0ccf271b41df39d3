// Package view makes the content of the console's pages, without I/O: lists that are sorted,
// filtered and cut into pages, the settings of a subscriber as a form, and requests as commands.
package view
