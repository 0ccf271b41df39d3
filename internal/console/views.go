package console

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"routemaster/client"
	"routemaster/internal/console/view"
)

// views are the parsed templates of pages. Links are relative, so each depth of a path has its own.
// All of them would take megabytes, so each is parsed when it is first shown.
type views map[viewOf]func() *template.Template

// viewOf names a template, and how many slashes are in the path that it is for.
type viewOf struct {
	name  string
	depth int
}

func depthOf(path string) int { return strings.Count(path, "/") }

// Templates that any page may be answered with.
const (
	loginView   = "login"
	problemView = "problem"
)

func parseViews(all []Page, files *assets) views {
	shared := template.Must(template.New("layout.html").Funcs(view.Functions()).Funcs(functions("", all, files)).
		ParseFS(templates, "templates/layout.html", "templates/parts/*.html"))
	parsed := views{}
	parse := func(name, path string) {
		if v := (viewOf{name, depthOf(path)}); parsed[v] == nil {
			parsed[v] = sync.OnceValue(func() *template.Template {
				own := template.Must(shared.Clone()).Funcs(functions(path, all, files))
				return template.Must(own.ParseFS(templates, "templates/"+name+".html"))
			})
		}
	}
	for _, p := range all {
		parse(p.Template, p.Path)
		parse(loginView, p.Path)
	}
	for depth := range maxDepth + 1 {
		parse(problemView, strings.Repeat("/", depth))
	}
	return parsed
}

// functions returns the template functions for pages at the depth of a path. Link leads to a page
// by its path, with names filled in, asset to a file; both are checked when the page is made.
func functions(path string, all []Page, files *assets) template.FuncMap {
	known := map[string]bool{"login": true, "logout": true}
	for _, p := range all {
		known[p.Path] = true
	}
	return template.FuncMap{
		"link": func(to string, names ...string) (string, error) {
			if !known[to] {
				return "", fmt.Errorf("there is no page %q", to)
			}
			return Link(path, to, names...)
		},
		"asset": func(name string) (string, error) {
			if files.path(name) == "" {
				return "", fmt.Errorf("there is no file static/%s", name)
			}
			return AtRoot(path) + files.path(name), nil
		},
		"isHTTPS": func(address string) bool { return strings.HasPrefix(strings.ToLower(address), "https://") },
	}
}

// shownPage is the data of a template.
type shownPage struct {
	*Visit
	// Name and Environment tell buses apart.
	Name, Environment, Version string
	// Page is the page, nav are the pages of the navigation.
	Page Page
	nav  []Page
	// Data is the result of the page's Load, common the part that is the same for every visitor.
	Data   any
	common []byte
	// Message is the message of the form before this page.
	Message string
	// Problem is why the page's form did nothing, or why the page cannot be shown.
	Problem *client.Error
	// RequestID is the request id of the page.
	RequestID string
	// MayChange is whether the visitor may change anything in the console.
	MayChange bool
	// Next is where to go after a login, from the console on.
	Next string
}

// At is the problem if it is with a field, which is named by its JSON pointer; else it is empty.
func (v shownPage) At(pointer string) string {
	if v.Problem == nil || v.Problem.Pointer != pointer {
		return ""
	}
	return v.Problem.Detail
}

// frame returns the data that all pages show.
func (s *server) frame(w http.ResponseWriter, v *Visit, p Page) shownPage {
	return shownPage{
		Visit: v, Name: s.Name, Environment: s.Environment, Version: s.Version, Page: p, nav: s.nav,
		RequestID: w.Header().Get(requestID), MayChange: !s.ReadOnly && !v.LookOnly,
	}
}

// Navigation links to the pages that the visitor may see, as a list for each group. A template
// would take its time for each of so many links.
func (v shownPage) Navigation() template.HTML {
	var text strings.Builder
	escape := template.HTMLEscapeString
	group, end := "", ""
	for _, p := range v.nav {
		if !v.May(p.For) {
			continue
		}
		if end == "" || p.Group != group {
			text.WriteString(end + "<ul")
			if p.Group != "" {
				text.WriteString(` aria-label="` + escape(p.Group) + `"`)
			}
			text.WriteString(">\n")
			group, end = p.Group, "</ul>\n"
		}
		text.WriteString(`<li><a href="` + escape(AtRoot(v.Page.Path)+p.Path) + `"`)
		switch {
		case p.Path == v.Page.Path:
			text.WriteString(` aria-current="page"`)
		case v.Page.Within(p):
			text.WriteString(` aria-current="true"`)
		}
		text.WriteString(">" + escape(p.Nav) + "</a></li>\n")
	}
	return template.HTML(text.String() + end)
}

// templateOf is a template for a page's depth.
func (s *server) templateOf(name string, p Page) *template.Template {
	return s.views[viewOf{name, depthOf(p.Path)}]()
}

// buffers are for the texts of pages.
var buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

const (
	// maxPage is how many bytes a page may have.
	maxPage = 8 << 20
	// maxPooled is how many bytes a buffer may have that is kept for other pages.
	maxPooled = 1 << 20
)

// bounded refuses to write more than maxPage bytes to a buffer.
type bounded struct{ *bytes.Buffer }

func (b bounded) Write(text []byte) (int, error) {
	if b.Len()+len(text) > maxPage {
		return 0, fmt.Errorf("the page has more than %d bytes", maxPage)
	}
	return b.Buffer.Write(text)
}

// show answers with a template.
func (s *server) show(w http.ResponseWriter, status int, name string, f shownPage) {
	if depthOf(f.Page.Path) > maxDepth { // there is no page
		http.Error(w, f.Problem.Detail, status)
		return
	}
	text := buffers.Get().(*bytes.Buffer)
	defer func() {
		if text.Cap() <= maxPooled {
			text.Reset()
			buffers.Put(text)
		}
	}()
	if err := s.templateOf(name, f.Page).Execute(bounded{text}, f); err != nil {
		s.Log.Error("page failed", "page", f.Page.Path, "request_id", f.RequestID, "error", err)
		http.Error(w, "the page could not be made; the log of web says why, at "+f.RequestID, http.StatusInternalServerError)
		return
	}
	body := f.withCommon(text.Bytes())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if !f.Figures.At.IsZero() {
		w.Header().Set("X-Sampled-At", strconv.FormatInt(f.Figures.At.UnixMilli(), 10))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the browser may have gone
}
