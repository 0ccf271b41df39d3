// Package static has the files that the console serves: its style sheet, its scripts, and those of
// others, in lib.
package static

import "embed"

// Files are the files, by their paths in this folder. A browser gets them as they are.
//
//go:embed *.css *.js *.svg lib/*/*.css lib/*/*.js
var Files embed.FS

// Icons are the icons of lucide-static, by their paths below this folder.
//
//go:embed lib/lucide-static/*.svg
var Icons embed.FS
