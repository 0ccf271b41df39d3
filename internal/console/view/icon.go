package view

import (
	"html/template"
	"io/fs"
	"path"
	"strings"
	"sync"

	"routemaster/internal/console/static"
	"routemaster/internal/overview"
)

// Icon draws an icon of lucide beside a word that says the same. [Icons] must be on the page.
func Icon(name string) template.HTML {
	name = template.HTMLEscapeString(name)
	return template.HTML(`<svg class="icon ` + name + `" width="16" height="16" aria-hidden="true"><use href="#icon-` + name + `"/></svg>`)
}

// Icons are the icons' drawings, as symbols that are not shown by themselves.
var Icons = sync.OnceValue(func() template.HTML {
	var all strings.Builder
	all.WriteString(`<svg class="icons" width="0" height="0" aria-hidden="true">`)
	files, err := fs.Glob(static.Icons, "lib/lucide-static/*.svg")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		text, err := static.Icons.ReadFile(file)
		if err != nil {
			panic(err)
		}
		name := strings.TrimSuffix(path.Base(file), ".svg")
		all.WriteString(`<symbol id="icon-` + name + `" viewBox="0 0 24 24">` + drawing(string(text)) + `</symbol>`)
	}
	all.WriteString(`</svg>`)
	return template.HTML(all.String())
})

// drawing returns the content of a file's svg element.
func drawing(file string) string {
	_, inner, _ := strings.Cut(file, "<svg")
	_, inner, _ = strings.Cut(inner, ">")
	inner, _, _ = strings.Cut(inner, "</svg>")
	return strings.Join(strings.Fields(inner), " ")
}

// stateIcons are the icons of the states of subscribers and topics.
var stateIcons = map[overview.State]string{
	overview.Gone: "octagon-x", overview.PausedState: "circle-pause", overview.Stalled: "octagon-x",
	overview.Failing: "triangle-alert", overview.Behind: "clock-alert", overview.Flaky: "activity",
	overview.Idle: "circle-dashed", overview.OK: "circle-check",
	overview.Unclaimed: "circle-dashed", overview.Unheard: "info", overview.Quiet: "clock-alert",
}

// stateIcon draws the icon of a state.
func stateIcon(s overview.State) template.HTML {
	if name, known := stateIcons[s]; known {
		return Icon(name)
	}
	return Icon("circle-question-mark")
}

// SeverityIcon draws the icon of a severity.
func SeverityIcon(s overview.Severity) template.HTML {
	switch s {
	case overview.Critical:
		return Icon("octagon-x")
	case overview.Warning:
		return Icon("triangle-alert")
	}
	return Icon("info")
}
