// Package static has the files that the console serves: its style sheet, its scripts, and
// third-party libraries in lib.
package static

import "embed"

// Files are the files, by their paths in this folder. A browser gets them as they
// are, but for [Style].
//
//go:embed *.css *.js *.svg lib/*/*.css lib/*/*.js
var Files embed.FS

// Style are the parts of console.css, in their order: a browser gets them as that one file.
var Style = []string{"console.css", "screens.css"}

// Icons are the icons of lucide-static, by their paths below this folder.
//
//go:embed lib/lucide-static/*.svg
var Icons embed.FS
