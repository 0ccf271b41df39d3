package view

import (
	"net/url"
	"strconv"
	"strings"
)

// Query is the state of a list as its URL has it: ?q=shop&sort=-queued&page=2.
type Query struct {
	// Filter is as it was typed: parts of names, and conditions such as "state:failing".
	Filter string
	// Sort is the name of a column, after a minus for descending order. Empty is the order of the
	// list.
	Sort string
	// Page counts from 1.
	Page int
}

// maxFilter is how many bytes of a filter are heeded.
const maxFilter = 200

// ParseQuery reads the state of a list from a URL. What cannot be read is as if left out.
func ParseQuery(values url.Values) Query {
	page, err := strconv.Atoi(values.Get("page"))
	if err != nil {
		page = 1
	}
	filter := strings.ToValidUTF8(values.Get("q"), "")
	if len(filter) > maxFilter {
		filter = strings.ToValidUTF8(filter[:maxFilter], "")
	}
	return Query{Filter: filter, Sort: values.Get("sort"), Page: max(page, 1)}
}

// String returns the query string, with its question mark. It leaves out defaults, so that the list
// itself is "?".
func (q Query) String() string {
	values := url.Values{}
	if q.Filter != "" {
		values.Set("q", q.Filter)
	}
	if q.Sort != "" {
		values.Set("sort", q.Sort)
	}
	if q.Page > 1 {
		values.Set("page", strconv.Itoa(q.Page))
	}
	return "?" + values.Encode()
}

// sortBy is the query of the first page in another order.
func (q Query) sortBy(order string) Query { return Query{Filter: q.Filter, Sort: order, Page: 1} }

// onPage is the query of another page.
func (q Query) onPage(page int) Query { return Query{Filter: q.Filter, Sort: q.Sort, Page: page} }

// matches reports whether an element matches a filter: each word of it must hold. A word is a part
// of the name, whatever the case, or key:value, where the list has such a key.
func matches[T any](filter []string, element *T, name func(*T) string, keys map[string]func(*T, string) bool) bool {
	for _, word := range filter {
		key, value, _ := strings.Cut(word, ":")
		if holds := keys[key]; holds != nil {
			if !holds(element, value) {
				return false
			}
		} else if !strings.Contains(strings.ToLower(name(element)), word) {
			return false
		}
	}
	return true
}
