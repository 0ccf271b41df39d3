package web

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/web/rest"
)

// operation is a row of the table of the API, see [API.operations]. Its route, the query that it
// allows and its part of openapi.json come from here.
type operation struct {
	method, path string
	handle       http.HandlerFunc
	who          access
	// query is the rule for names in the query that params does not have. A public operation ignores
	// its query.
	query queryRule
	// params are all parameters: of the path, of the query in the order in which an error lists them,
	// and headers.
	params []parameter

	// id names it in clients that are generated.
	id  string
	tag string
	// summary is a title without a full stop, about is more on it, and may be empty.
	summary, about string
	body           *body
	returns        []response
	// fails are the errors that do not follow from the rest, see [operation.problems].
	fails []problem
}

// access selects the callers of an operation.
type access int

const (
	clientsAndRoot access = iota
	clientsOnly
	rootOnly
	public // without credentials
)

// queryRule is how an operation treats unknown names in a query.
type queryRule int

const (
	refuseOthers queryRule = iota
	ignoreOthers           // for requests of the services that the bus takes the place of
	unchecked              // likewise, also if one comes twice
	repeated               // refuses others; its one parameter may come several times
)

// parameter is a value in the query of a request unless in says otherwise.
type parameter struct {
	name, words string
	in          string // path or header
	// kind is the type in JSON Schema, by default string.
	kind string
	// min and max bound an integer; max 0 is no bound.
	min, max int64
	// fallback holds if the parameter is left out; nil is none.
	fallback any
	// enum are all values that a string may have.
	enum []string
	// component is its name in openapi.json if several operations share it.
	component string
	// key is whether it is an idempotency key.
	key bool
	// schema is the name of a schema in openapi.json in place of kind.
	schema string
}

// integer reads the parameter from a query. An invalid value becomes the query's error.
func (p parameter) integer(q *rest.Query) int64 {
	fallback, _ := p.fallback.(int)
	return p.integerOr(q, int64(fallback))
}

// integerOr is [parameter.integer] for one whose fallback openapi.json does not show.
func (p parameter) integerOr(q *rest.Query, fallback int64) int64 {
	return q.Integer(p.name, p.min, p.max, fallback)
}

// texts are some words of a type of their own.
func texts[T ~string](words []T) (all []string) {
	for _, word := range words {
		all = append(all, string(word))
	}
	return all
}

// body describes the body of a request.
type body struct {
	// of is a value of the type that is read: see [response.of].
	of any
	// example is JSON.
	example  string
	optional bool
	// yaml is whether it is YAML, which JSON is too.
	yaml bool
	// tooLarge and tooMany are the errors of a body, by default [tooLarge] and [tooManyBodies].
	tooLarge, tooMany *problem
}

// response is a response that is no error.
type response struct {
	status int
	words  string
	// of is a value of the type that is sent as JSON, or a [schemaRef], or [oneOf]; nil sends nothing.
	of any
	// types are media types that it may have beside JSON, or in its place if there is no of.
	types []string
	// paged is whether it may have a link to a next page.
	paged bool
}

// returns is a list of one response.
func returns(status int, words string, of any) []response {
	return []response{{status: status, words: words, of: of}}
}

// pages are the response that is a page of a list.
func pages(words string, of any) []response {
	return []response{{status: http.StatusOK, words: words, of: of, paged: true}}
}

// schemaRef is the name of a schema in openapi.json that no Go type stands for.
type schemaRef string

// listOf is an array, of at least min elements and at most max unless that is 0.
type listOf struct {
	of       any
	min, max int
}

// oneOf is a value that may be of several types.
type oneOf []any

// problem is an error that an operation may return, as openapi.json has it.
type problem struct {
	status int
	words  string
	// component is its name there if several operations share it.
	component string
}

// The errors that most operations may return, depending on their input: see [operation.problems].
var (
	badRequest     = problem{http.StatusBadRequest, "Something in the request is wrong; nothing was changed.", "BadRequest"}
	unauthorized   = problem{status: http.StatusUnauthorized, component: "Unauthorized"}
	forbidden      = problem{http.StatusForbidden, "Not for this client.", "Forbidden"}
	notFound       = problem{http.StatusNotFound, "There is no such thing.", "NotFound"}
	failed         = problem{http.StatusInternalServerError, "An error in the bus.", "Failed"}
	unavailable    = problem{status: http.StatusServiceUnavailable, component: "Unavailable"}
	headerTooLarge = problem{status: http.StatusRequestHeaderFieldsTooLarge, component: "HeaderTooLarge"}
	tooManyBodies  = problem{
		http.StatusTooManyRequests, "The bodies of other requests of the client take the share of memory of one client.", "TooManyBodies",
	}
	tooLarge = problem{
		http.StatusRequestEntityTooLarge, "The body is too large: 64 KiB and six times the data that an event may have, " +
			"or 4 MiB for an array of events and for a subscription.", "TooLarge",
	}
	tooManyTopics = problem{http.StatusConflict, "There would be too many topics: of this client, or of the bus.", "TooManyTopics"}
)

// problems are all errors that the operation may return, by status.
func (o operation) problems() []problem {
	all := append([]problem{failed}, o.fails...)
	if o.who == public {
		all = append(all, headerTooLarge)
	} else {
		all = append(all, unauthorized, unavailable)
	}
	if o.who == clientsOnly || o.who == rootOnly {
		all = append(all, forbidden)
	}
	if o.body != nil {
		all = append(all, *cmp.Or(o.body.tooLarge, &tooLarge), *cmp.Or(o.body.tooMany, &tooManyBodies))
	}
	if o.who != public && (o.body != nil || o.query != unchecked || len(o.queryNames()) > 0) {
		all = append(all, badRequest)
	}
	slices.SortStableFunc(all, func(a, b problem) int { return cmp.Compare(a.status, b.status) })
	return slices.CompactFunc(all, func(a, b problem) bool { return a.status == b.status })
}

// at is the operation at another path, with another id.
func (o operation) at(path, id string) operation {
	o.path, o.id = path, id
	return o
}

// queryNames are the names that its query may have.
func (o operation) queryNames() (names []string) {
	for _, p := range o.params {
		if p.in == "" {
			names = append(names, p.name)
		}
	}
	return names
}

// addRoutes adds the routes of some operations. The checks before a handler are in this order:
// authentication, the caller's permission, the query.
func (a *API) addRoutes(r chi.Router, operations []operation) {
	for _, o := range operations {
		to := r
		if o.who != public {
			to = to.With(a.Authenticate)
		}
		switch o.who {
		case clientsOnly:
			to = to.With(rest.AllowClients)
		case rootOnly:
			to = to.With(rest.AllowRoot)
		}
		switch names := o.queryNames(); {
		case o.who == public, o.query == unchecked:
		case o.query == repeated:
			to = to.With(rest.AllowRepeated(names[0]))
		case o.query == ignoreOthers:
			to = to.With(rest.IgnoreQuery(names...))
		default:
			to = to.With(rest.AllowQuery(names...))
		}
		to.Method(o.method, o.path, o.handle)
	}
}

// The parameters of lists.
var (
	listLimit = parameter{
		name: "limit", kind: "integer", min: 1, max: rest.MaxPage, component: "Limit",
		words: "How many are listed; all without it.",
	}
	listAfter = parameter{
		name: "after", component: "After",
		words: "The name behind which the list begins: the last one of the page before.",
	}
	pageLimit = parameter{
		name: "limit", kind: "integer", min: 1, max: rest.MaxLimit, fallback: rest.DefaultLimit, component: "PageLimit",
		words: "The maximum number of elements of a page.",
	}
	pageAfter = parameter{
		name: "after", component: "PageAfter",
		words: "Where the page begins: as the `Link` of the page before has it.",
	}
	pageLimitOrAll = parameter{
		name: "limit", kind: "integer", min: 1, max: rest.MaxLimit, component: "PageLimitOrAll",
		words: "The maximum number of elements of a page; all are listed without it.",
	}
)
