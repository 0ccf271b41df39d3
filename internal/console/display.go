package console

import (
	"net/http"
	"net/url"
	"slices"
)

// Display holds a visitor's display preferences. Each field is one of [Choices].
type Display struct{ Theme, Refresh, Zone, Keys string }

// Choices are the allowed values of each field of [Display], by the field's name in forms. The
// first is the default. Refresh is in seconds, 0 for not at all.
var Choices = map[string][]string{
	"theme":   {"system", "light", "dark"},
	"refresh": {"5", "2", "10", "30", "0"},
	"zone":    {"local", "utc"},
	"keys":    {"on", "off"},
}

// displayCookie has a query string with the fields of [Display].
const displayCookie = "routemaster_display"

// DisplayOf reads preferences from a query string. Values that are not among the choices count as
// the default.
func DisplayOf(values url.Values) Display {
	choose := func(name string) string {
		if value := values.Get(name); slices.Contains(Choices[name], value) {
			return value
		}
		return Choices[name][0]
	}
	return Display{choose("theme"), choose("refresh"), choose("zone"), choose("keys")}
}

// ReadDisplay returns the preferences stored in the browser that sent a request.
func ReadDisplay(r *http.Request) Display {
	cookie, err := r.Cookie(displayCookie)
	if err != nil {
		return DisplayOf(nil)
	}
	values, _ := url.ParseQuery(cookie.Value)
	return DisplayOf(values)
}

// Cookie keeps the choice in the browser for a year.
func (d Display) Cookie() *http.Cookie {
	values := url.Values{"theme": {d.Theme}, "refresh": {d.Refresh}, "zone": {d.Zone}, "keys": {d.Keys}}
	return &http.Cookie{
		Name: displayCookie, Value: values.Encode(), Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	}
}
