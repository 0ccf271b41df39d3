package markup

import (
	"fmt"
	"html/template"
	"slices"

	"routemaster/internal/overview"
)

// Definition is a button that shows the definition of a figure beside it, without a script. The id
// is that of the place on the page, which may have several of one figure. The error is that there
// is no such definition.
func Definition(id, figure string) (template.HTML, error) {
	at := slices.IndexFunc(overview.Definitions, func(d overview.Definition) bool { return d.Figure == figure })
	if at < 0 {
		return "", fmt.Errorf("overview has no definition of %q", figure)
	}
	id, figure = template.HTMLEscapeString("define-"+id), template.HTMLEscapeString(figure)
	return template.HTML(`<button type="button" class="define" popovertarget="` + id + `" aria-label="What is ` + figure + `?">` +
		string(Icon("circle-question-mark")) + `</button><span popover id="` + id + `"><b>` + figure + `</b> ` +
		template.HTMLEscapeString(overview.Definitions[at].Is) + `</span>`), nil
}

// arrow is the icon of a column that a list is sorted by, for a value of aria-sort.
func arrow(sorted string) string {
	if sorted == "descending" {
		return "arrow-down"
	}
	return "arrow-up"
}
