package view

import (
	"cmp"
	"slices"
	"strings"
)

// PageSize is how many rows a page of a list has at most.
const PageSize = 50

// Column is a column of a list.
type Column[T any] struct {
	// Name stands in the URL, Title in the head.
	Name, Title string
	// Number is whether it holds numbers, which are aligned to the right.
	Number bool
	// Rank is on how narrow a screen it is shown: 1 on each, 2 from 640 px, 3 from 900 px.
	Rank int
	// Figure is the name of the column's definition, if it has one.
	Figure string
	// compare orders elements; nil if the list cannot be sorted by it. If descending, a first click
	// on the head puts the largest first.
	compare    func(a, b *T) int
	descending bool
}

// Kind is a kind of list: how its elements are shown, found and ordered.
type Kind[T any] struct {
	// id begins the ids of its heads, so that a page may have lists of several kinds.
	id      string
	columns []Column[T]
	name    func(*T) string
	// keys are the conditions of a filter.
	keys map[string]func(*T, string) bool
	// usual is the order of the list unless the URL has one, as [Query.Sort].
	usual string
}

// Head is the head of a column, which may sort the list.
type Head struct {
	// ID identifies the column's definition on the page.
	ID, Title, Figure string
	Number            bool
	Rank              int
	// Sorted is the value of aria-sort: "ascending", "descending", or empty.
	Sorted string
	// To is the query that sorts by the column, or the other way round; empty if none does.
	To string
}

// List is a page of a list.
type List[T any] struct {
	Query
	Heads []Head
	Rows  []T
	// All is how many elements there are, Matching how many the filter lets through.
	All, Matching int
	// From and To are the positions of the rows in the list, from 1 on; 0 if there are none.
	From, To int
	// Pages is the number of pages. Previous and Next are the queries of the pages beside this one,
	// empty where there is none.
	Pages          int
	Previous, Next string
}

// Page makes the page of a list that a query asks for. A page behind the last is the last. It does
// not change the elements.
func (k Kind[T]) Page(all []T, q Query) List[T] {
	filter := strings.Fields(strings.ToLower(q.Filter))
	matching := slices.DeleteFunc(pointers(all), func(e *T) bool { return !matches(filter, e, k.name, k.keys) })
	column, descending := k.order(&q)
	slices.SortStableFunc(matching, func(a, b *T) int {
		order := column.compare(a, b)
		if descending {
			order = -order
		}
		return cmp.Or(order, cmp.Compare(k.name(a), k.name(b)))
	})
	l := List[T]{All: len(all), Matching: len(matching), Pages: max((len(matching)+PageSize-1)/PageSize, 1)}
	q.Page = max(1, min(q.Page, l.Pages))
	l.Query = q
	before := (q.Page - 1) * PageSize
	l.Rows = values(matching[before:min(before+PageSize, len(matching))])
	if len(l.Rows) > 0 {
		l.From, l.To = before+1, before+len(l.Rows)
	}
	if q.Page > 1 {
		l.Previous = q.onPage(q.Page - 1).String()
	}
	if q.Page < l.Pages {
		l.Next = q.onPage(q.Page + 1).String()
	}
	l.Heads = k.sortable(q, column.Name, descending)
	return l
}

// order returns the order of a query. It removes an unknown column from the query.
func (k Kind[T]) order(q *Query) (by Column[T], descending bool) {
	for _, order := range []string{q.Sort, k.usual} {
		name, minus := strings.CutPrefix(order, "-")
		at := slices.IndexFunc(k.columns, func(c Column[T]) bool { return c.Name == name && c.compare != nil })
		if at >= 0 {
			return k.columns[at], minus
		}
		q.Sort = ""
	}
	panic("the usual order of a list is by one of its columns")
}

// Heads returns the heads of a list that cannot be sorted.
func (k Kind[T]) Heads() []Head {
	heads := make([]Head, len(k.columns))
	for i, c := range k.columns {
		heads[i] = Head{ID: k.id + "-" + c.Name, Title: c.Title, Figure: c.Figure, Number: c.Number, Rank: c.Rank}
	}
	return heads
}

// sortable are the heads of a list that is sorted by a column.
func (k Kind[T]) sortable(q Query, sorted string, descending bool) []Head {
	heads := k.Heads()
	for i, c := range k.columns {
		h, down := &heads[i], c.descending
		if c.Name == sorted {
			h.Sorted, down = "ascending", !descending
			if descending {
				h.Sorted = "descending"
			}
		}
		if c.compare != nil {
			order := c.Name
			if down {
				order = "-" + order
			}
			if order == k.usual {
				order = ""
			}
			h.To = q.sortBy(order).String()
		}
	}
	return heads
}

// optional orders numbers that may be unknown: unknown is less than all others.
func optional[N cmp.Ordered](a, b *N) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Compare(*a, *b)
}

// pointers returns pointers to the elements of a list. They are sorted in place of the elements,
// which are large and may be thousands.
func pointers[T any](all []T) []*T {
	some := make([]*T, len(all))
	for i := range all {
		some[i] = &all[i]
	}
	return some
}

func values[T any](some []*T) []T {
	all := make([]T, len(some))
	for i, element := range some {
		all[i] = *element
	}
	return all
}

// first returns the first n elements in an order.
func first[T any](n int, all []T, compare func(a, b *T) int) []T {
	sorted := pointers(all)
	slices.SortStableFunc(sorted, compare)
	return values(sorted[:min(n, len(sorted))])
}

// by orders elements by a value of theirs.
func by[T any, N cmp.Ordered](of func(*T) N) func(a, b *T) int {
	return func(a, b *T) int { return cmp.Compare(of(a), of(b)) }
}

// byOptional orders elements by a value of theirs that may be unknown.
func byOptional[T any, N cmp.Ordered](of func(*T) *N) func(a, b *T) int {
	return func(a, b *T) int { return optional(of(a), of(b)) }
}

// oneOf reports whether a word is in the list of a condition, as in state:gone,stalled. Spaces are
// written as hyphens.
func oneOf[S ~string](condition string, word S) bool {
	return slices.Contains(strings.Split(condition, ","), strings.ReplaceAll(strings.ToLower(string(word)), " ", "-"))
}
