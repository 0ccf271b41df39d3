package view

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"routemaster/internal/overview"
)

// Definition returns a button that shows the definition of the figure beside it, without a script.
// The id is unique on the page, which may have several buttons of one figure. It fails if there is
// no such definition.
func Definition(id, figure string) (template.HTML, error) { return definitions(id, []string{figure}) }

// definitions is a [Definition] of several figures.
func definitions(id string, figures []string) (template.HTML, error) {
	texts := make([]string, len(figures))
	for i, figure := range figures {
		at := slices.IndexFunc(overview.Definitions, func(d overview.Definition) bool { return d.Figure == figure })
		if at < 0 {
			return "", fmt.Errorf("overview has no definition of %q", figure)
		}
		texts[i] = `<b>` + template.HTMLEscapeString(figure) + `</b> ` + template.HTMLEscapeString(overview.Definitions[at].Is)
	}
	id = template.HTMLEscapeString("define-" + id)
	return template.HTML(`<button type="button" class="define" popovertarget="` + id + `" aria-label="What is ` +
		template.HTMLEscapeString(strings.Join(figures, ", ")) + `?">` + string(Icon("circle-question-mark")) +
		`</button><span popover id="` + id + `">` + strings.Join(texts, "<br>") + `</span>`), nil
}

// ColumnHead is the head of a column of a table whose order is fixed: its title, beside the button
// that defines the figure. That is not a part of the column's name. Class has "number" for numbers.
func ColumnHead(id, title, class, figure string) (template.HTML, error) {
	button, err := Definition(id, figure)
	if err != nil {
		return "", err
	}
	title = template.HTMLEscapeString(title)
	content := title + string(button)
	if strings.Contains(class, "number") { // the numbers stand below the title
		content = string(button) + title
	}
	return template.HTML(`<th scope="col" class="` + template.HTMLEscapeString(class) + `" aria-label="` + title + `">` + content + `</th>`), nil
}

// arrow is the icon of a column that a list is sorted by, for a value of aria-sort.
func arrow(sorted string) string {
	if sorted == "descending" {
		return "arrow-down"
	}
	return "arrow-up"
}
