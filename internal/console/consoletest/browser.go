package consoletest

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
)

// Browser keeps cookies, as browsers do, and has no scripts. Whatever fails fails the test.
type Browser struct {
	*Desk
	Cookies map[string]*http.Cookie
}

// Browser opens a browser without a login.
func (d *Desk) Browser() *Browser { return &Browser{d, map[string]*http.Cookie{}} }

// As opens a browser, and logs in there with a token or the root key. Fields are further ones of
// the form, by name and value.
func (d *Desk) As(secret string, fields ...string) *Browser {
	d.T.Helper()
	b := d.Browser()
	form := url.Values{"secret": {secret}}
	set(form, fields)
	w := b.Send("login", form)
	require.Equal(d.T, http.StatusSeeOther, w.Code, w.Body)
	return b
}

func set(form url.Values, fields []string) {
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
}

// Send sends a request for a path of the console. A form is posted, unless it is nil. Headers are
// names and values. Published events are carried to other partitions, as by [webtest.API.Do].
func (b *Browser) Send(path string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	b.T.Helper()
	r := httptest.NewRequestWithContext(b.T.Context(), http.MethodGet, "/console/"+path, nil)
	if form != nil {
		r = httptest.NewRequestWithContext(b.T.Context(), http.MethodPost, "/console/"+path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, cookie := range b.Cookies {
		r.AddCookie(cookie)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.Handler.ServeHTTP(w, r)
	for _, cookie := range w.Result().Cookies() {
		b.Cookies[cookie.Name] = cookie
		if cookie.MaxAge < 0 {
			delete(b.Cookies, cookie.Name)
		}
	}
	if path == "publish" && w.Code == http.StatusSeeOther {
		require.NoError(b.T, b.Relay(b.T.Context()))
	}
	return w
}

// Submit opens a page, types names and values into its form, and sends that. It returns the status
// and the page that follows.
func (b *Browser) Submit(path string, typed ...string) (status int, body string) {
	b.T.Helper()
	opened := b.Send(path, nil)
	require.Equal(b.T, http.StatusOK, opened.Code, "%s: %s", path, opened.Body)
	form := Fields(opened.Body.String())
	set(form, typed)
	w := b.Send(path, form)
	if w.Code != http.StatusSeeOther {
		return w.Code, w.Body.String()
	}
	base, err := url.Parse("http://x/console/" + path)
	require.NoError(b.T, err)
	to, err := base.Parse(w.Header().Get("Location"))
	require.NoError(b.T, err)
	return w.Code, b.Send(strings.TrimPrefix(to.RequestURI(), "/console/"), nil).Body.String()
}

var (
	inputs    = regexp.MustCompile(`<input [^>]*>`)
	areas     = regexp.MustCompile(`(?s)<textarea [^>]*name="([^"]*)"[^>]*>\n(.*?)</textarea>`)
	selects   = regexp.MustCompile(`(?s)<select [^>]*name="([^"]*)".*?</select>`)
	selection = regexp.MustCompile(`<option selected>([^<]*)<`)
)

// Fields returns the initial fields of a page's forms.
func Fields(body string) url.Values {
	form := url.Values{}
	for _, input := range inputs.FindAllString(body, -1) {
		name, value := attribute(input, "name"), attribute(input, "value")
		if strings.Contains(input, `type="checkbox"`) && !strings.Contains(input, " checked") || name == "" {
			continue
		}
		form.Set(name, value)
	}
	for _, area := range areas.FindAllStringSubmatch(body, -1) {
		form.Set(area[1], html.UnescapeString(area[2]))
	}
	for _, choice := range selects.FindAllStringSubmatch(body, -1) {
		if chosen := selection.FindStringSubmatch(choice[0]); chosen != nil {
			form.Set(choice[1], chosen[1])
		}
	}
	return form
}

func attribute(tag, name string) string {
	_, after, _ := strings.Cut(tag, " "+name+`="`)
	value, _, _ := strings.Cut(after, `"`)
	return html.UnescapeString(value)
}
