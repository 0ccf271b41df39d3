package web_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web/webtest"
)

// TestLifeOfALabel creates a label, opens its gate, and deletes it.
func TestLifeOfALabel(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newMachinesAPI(t, redis)
		a.apply(a.journey())
		const one = labels + "one"
		assert.JSONEq(t, `{"metadata":{"bar":"baz"},"state":"start"}`, a.require(201, "POST", one+"?wait=0", `{"metadata":{"bar":"baz"}}`))
		a.refuse(409, "conflict", "POST", one, `{"metadata":{}}`)
		a.workers.Work()

		assert.JSONEq(t, `{"metadata":{"bar":"baz","go":false},"state":"start"}`, a.require(200, "PATCH", one+"?wait=0", `{"metadata":{"go":false}}`))
		a.workers.Work()
		assert.Empty(t, a.service.Calls())
		assert.JSONEq(t, `{"metadata":{"go":true},"state":"start"}`, a.require(200, "PATCH", one+"?wait=0", `{"metadata":{"bar":null,"go":true}}`))
		a.workers.Work()
		assert.Equal(t, "end", a.show(one).State)
		require.Len(t, a.service.Calls(), 1)

		a.require(204, "DELETE", one, "")
		a.require(204, "DELETE", one, "")
		a.require(204, "DELETE", labels+"never", "")
		for method, body := range map[string]string{"GET": "", "POST": `{"metadata":{}}`, "PATCH": `{"metadata":{}}`} {
			a.refuse(410, "gone", method, one, body)
		}
		moves := decode[history](a, a.require(200, "GET", one+"/history", "")).states()
		assert.Equal(t, []string{"end>-", "act>end", "start>act", "->start"}, moves)
		storetest.RequireAllSound(t, a.Bus)
	})
}

// TestQueriesOfTheOriginalsClients has names in queries that the bus does not know: they are
// ignored in requests that the original has, and refused in others.
func TestQueriesOfTheOriginalsClients(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	a.apply(a.journey())
	const one = labels + "one"
	a.require(200, "GET", "/state-machines?foo=1", "")
	a.require(201, "POST", one+"?foo=1&wait=0", `{"metadata":{}}`)
	a.require(200, "PATCH", one+"?wait=0&foo", `{"metadata":{"go":false}}`)
	a.require(200, "GET", one+"?foo=1&foo=2", "")
	list := strings.TrimSuffix(labels, "/")
	assert.Contains(t, a.require(200, "GET", list+"?foo=1&state=start", ""), `"one"`)
	a.refuse(400, "invalid_parameter", "GET", list+"?foo=1&limit=0", "")
	a.refuse(400, "invalid_request", "GET", list+"?limit=1&limit=2", "")
	for method, own := range map[string]string{"GET": one + "/history", "POST": one + "/evaluate"} {
		a.refuse(400, "invalid_request", method, own+"?foo=1", "")
	}
	a.refuse(400, "invalid_request", "POST", one+"/retry?foo=1", "")
	a.require(204, "DELETE", one+"?foo=1", "")
}

type history struct {
	History []struct {
		At       int64
		From, To *string
		Why      struct {
			Trigger string
			Values  map[string]any
			Status  int
		}
	}
	Count int64
}

func (h history) states() (moves []string) {
	name := func(state *string) string {
		if state == nil {
			return "-"
		}
		return *state
	}
	for _, m := range h.History {
		moves = append(moves, name(m.From)+">"+name(m.To))
	}
	return moves
}

func TestHistory(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	a.apply(a.journey())
	a.require(201, "POST", labels+"one?wait=0", `{"metadata":{"go":true}}`)
	a.workers.Pass(time.Second)
	all := decode[history](a, a.require(200, "GET", labels+"one/history", ""))
	assert.EqualValues(t, 3, all.Count)
	assert.Equal(t, []string{"act>end", "start>act", "->start"}, all.states())
	assert.Equal(t, 200, all.History[0].Why.Status)
	assert.Equal(t, "entry", all.History[1].Why.Trigger)
	assert.Equal(t, map[string]any{"metadata.go = true": true, "metadata.go": true}, all.History[1].Why.Values)
	assert.Equal(t, machinestest.Start.UnixMilli(), all.History[2].At)

	var pages []string
	for path := labels + "one/history?limit=1"; path != ""; {
		got := a.Do(alice, "GET", path, "")
		pages = append(pages, decode[history](a, got.Body).states()...)
		path = nextOf(got.Header.Get("Link"))
	}
	assert.Equal(t, all.states(), pages)
	a.refuse(404, "not_found", "GET", labels+"two/history", "")
}

// nextOf is the path of a Link header, empty if there is none.
func nextOf(link string) string {
	path, _, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
	return path
}

func TestListsOfLabels(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newMachinesAPI(t, redis)
		a.apply(a.journey())
		const list = "/state-machines/journey/labels"
		assert.JSONEq(t, `{"labels":[],"create":"/state-machines/journey/labels/:name"}`, a.require(200, "GET", list, ""))
		for _, name := range []string{"b", "é", "a%20b", "a", "gone"} {
			a.require(201, "POST", labels+name+"?wait=0", `{"metadata":{}}`)
		}
		a.require(201, "POST", labels+"B?wait=0", `{"metadata":{"go":true}}`)
		a.workers.Work()
		a.require(204, "DELETE", labels+"gone", "")
		for query, want := range map[string][]string{
			"": {"B", "a", "a b", "b", "é"}, "?state=end": {"B"}, "?state=start&limit=2": {"a", "a b", "b", "é"}, "?limit=1": {"B", "a", "a b", "b", "é"},
			"?errored=true": nil, "?errored=false": {"B", "a", "a b", "b", "é"}, "?cursor=a%20b": {"b", "é"}, "?state=nowhere": nil,
		} {
			var names []string
			for path := list + query; path != ""; {
				got := a.Do(alice, "GET", path, "")
				require.Equal(t, 200, got.Status, got.Body)
				for _, l := range decode[struct {
					Labels []struct{ Name, State string }
				}](a, got.Body).Labels {
					names = append(names, l.Name)
				}
				path = nextOf(got.Header.Get("Link"))
			}
			assert.Equal(t, want, names, query)
		}
	})
}

// TestAListWithoutALimitHasAllLabels, over more than one page that Redis is asked for.
func TestAListWithoutALimitHasAllLabels(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	a.apply(a.journey())
	var want []string
	for i := range 1001 {
		want = append(want, fmt.Sprintf("%04d", i))
		a.require(201, "POST", labels+want[i]+"?wait=0", `{"metadata":{}}`)
	}
	got := a.Do(alice, "GET", "/state-machines/journey/labels?state=start", "")
	require.Equal(t, 200, got.Status, got.Body)
	assert.Empty(t, got.Header.Get("Link"))
	list := decode[struct {
		Labels []struct{ Name, State string }
		Create string
	}](a, got.Body)
	var names []string
	for _, l := range list.Labels {
		names = append(names, l.Name)
	}
	assert.Equal(t, want, names)
	assert.Equal(t, "/state-machines/journey/labels/:name", list.Create)
	a.require(404, "GET", "/state-machines/none/labels", "")
	a.require(400, "GET", "/state-machines/journey/labels?limit=0", "")
}

// TestARequestWaitsForTheRun has workers work while a request waits.
func TestARequestWaitsForTheRun(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newMachinesAPI(t, redis)
		a.apply(a.journey())
		for _, c := range []struct {
			method, path, body string
			status             int
		}{
			{"POST", labels + "one?wait=10000", `{"metadata":{}}`, 201},
			{"PATCH", labels + "one?wait=10000", `{"metadata":{"go":true}}`, 200},
			{"POST", labels + "two?wait=10000", `{"metadata":{"go":true}}`, 201},
		} {
			answered := make(chan *httptest.ResponseRecorder)
			go func() {
				r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
				a.Authorize(r, alice)
				w := httptest.NewRecorder()
				a.Handler.ServeHTTP(w, r)
				answered <- w
			}()
			var got *httptest.ResponseRecorder
			for got == nil {
				a.workers.Work()
				select {
				case got = <-answered:
				case <-time.After(time.Millisecond):
				}
			}
			assert.Equal(t, c.status, got.Code, got.Body)
			state := "end"
			if c.body == `{"metadata":{}}` {
				state = "start"
			}
			assert.Contains(t, got.Body.String(), fmt.Sprintf(`"state":%q`, state), c.path)
		}
	})
}

func TestMetadataIsRefused(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	a.apply(a.journey())
	a.require(201, "POST", labels+"one?wait=0", `{"metadata":{}}`)
	long := strings.Repeat("x", machines.MaxMetadata)
	for _, c := range []struct {
		body    string
		status  int
		id      string
		pointer string
	}{
		{`{"metadata":`, 400, "invalid_request", ""},
		{``, 400, "invalid_request", ""},
		{`[]`, 400, "invalid_request", ""},
		{`null`, 400, "invalid_request", ""},
		{`{}`, 400, "missing_parameter", "/metadata"},
		{`{"metadata":null}`, 400, "invalid_request", "/metadata"},
		{`{"metadata":[1]}`, 400, "invalid_request", "/metadata"},
		{`{"metadata":"x"}`, 400, "invalid_request", "/metadata"},
		{`{"metadata":{"a":1,"a":2}}`, 400, "invalid_request", "/metadata/a"},
		{`{"metadata":{},"state":"end"}`, 400, "invalid_request", "/state"},
		{`{"metadata":{"deep":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`, 400, "invalid_request", "/metadata"},
		{`{"metadata":{"long":"` + long + `"}}`, 400, "invalid_request", ""},
		{`{"metadata":{"long":"` + strings.Repeat(long, 7) + `"}}`, 413, "entity_too_large", ""},
	} {
		for method, path := range map[string]string{"PATCH": labels + "one", "POST": labels + "two"} {
			assert.Equal(t, c.pointer, a.refuse(c.status, c.id, method, path, c.body).Pointer, c.body)
		}
	}
	a.refuse(404, "not_found", "GET", labels+"two", "")
	a.refuse(404, "not_found", "PATCH", labels+"two", `{"metadata":{}}`)
	a.refuse(400, "invalid_parameter", "PATCH", labels+"one?wait=10001", `{"metadata":{}}`)
	a.refuse(400, "invalid_parameter", "PATCH", labels+"one?null=drop", `{"metadata":{}}`)
}

func TestNullIsKeptIfAskedFor(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	a.apply(a.journey())
	a.require(201, "POST", labels+"one?wait=0", `{"metadata":{"a":{"b":1,"c":2},"d":3}}`)
	assert.JSONEq(t, `{"metadata":{"a":{"c":2},"d":3},"state":"start"}`, a.require(200, "PATCH", labels+"one?wait=0", `{"metadata":{"a":{"b":null}}}`))
	assert.JSONEq(t, `{"metadata":{"a":{"c":null},"d":3},"state":"start"}`,
		a.require(200, "PATCH", labels+"one?null=keep&wait=0", `{"metadata":{"a":{"c":null}}}`))
}

// TestMetadataThatATriggerDoesNotExpect has values where the path of a trigger has an object.
func TestMetadataThatATriggerDoesNotExpect(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	a.apply(strings.NewReplacer("metadata: go", "metadata: go.on", "metadata.go ", "metadata.go.on ").Replace(a.journey()))
	for i, value := range []string{"7", "null", `"on"`, `["on"]`, "true"} {
		path := labels + fmt.Sprint(i)
		a.require(201, "POST", path+"?wait=0", `{"metadata":{"go":`+value+`}}`)
		assert.JSONEq(t, `{"metadata":{"go":`+value+`},"state":"start"}`, a.require(200, "PATCH", path+"?null=keep&wait=0", `{"metadata":{"go":`+value+`}}`))
		a.workers.Work()
		assert.Contains(t, a.show(path).WaitingFor.Error, "not an object: metadata.go.on", value)
	}
	a.workers.Work()
	assert.Empty(t, a.service.Calls())
}

func TestContentTypeMustBeJSON(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	a.apply(a.journey())
	basic := a.Authorize
	for kind, status := range map[string]int{
		"application/json": 201, "application/json; charset=utf-8": 201, "application/x-www-form-urlencoded": 400, "text/plain": 400, "/": 400,
	} {
		request := httptest.NewRequestWithContext(t.Context(), "POST", labels+fmt.Sprint(len(kind))+"?wait=0", strings.NewReader(`{"metadata":{}}`))
		basic(request, alice)
		request.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		a.Handler.ServeHTTP(w, request)
		assert.Equal(t, status, w.Code, kind)
	}
}

func TestNamesOfMachinesInPaths(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	a.apply(strings.Replace(a.journey(), "journey:", `"a journey é":`, 1))
	list := decode[struct {
		Machines []struct{ Name, Labels string } `json:"state-machines"`
	}](a, a.require(200, "GET", "/state-machines", ""))
	require.Len(t, list.Machines, 1)
	assert.Equal(t, "/state-machines/a%20journey%20%C3%A9/labels", list.Machines[0].Labels)
	for _, name := range []string{"%C3%A9", "a%20b", "100%25", "q%3F%23", "history", "a:b"} {
		path := list.Machines[0].Labels + "/" + name
		a.require(201, "POST", path+"?wait=0", `{"metadata":{}}`)
		assert.Equal(t, "start", a.show(path).State)
	}
	for _, name := range []string{"a%2Fb", "a%2fretry", strings.Repeat("x", 513), "%0A", "%FF"} {
		a.refuse(400, "invalid_request", "POST", list.Machines[0].Labels+"/"+name, `{"metadata":{}}`)
	}
	a.refuse(404, "not_found", "GET", list.Machines[0].Labels+"/", "")
	a.refuse(405, "method_not_allowed", "PUT", list.Machines[0].Labels+"/x", "")
}

func TestUnknownMachines(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	for _, machine := range []string{"no", "journey2"} {
		path := "/state-machines/" + machine
		for _, r := range []struct{ method, path, body string }{
			{"GET", "", ""}, {"GET", "/labels", ""}, {"GET", "/labels/x", ""}, {"POST", "/labels/x", `{"metadata":{}}`},
			{"PATCH", "/labels/x", `{"metadata":{}}`}, {"DELETE", "/labels/x", ""}, {"GET", "/labels/x/history", ""},
			{"POST", "/labels/x/retry", ""}, {"POST", "/labels/x/evaluate", ""}, {"POST", "/labels/x/evaluate?dry_run=true", ""},
		} {
			got := a.refuse(404, "not_found", r.method, path+r.path, r.body)
			assert.Contains(t, got.Detail, "machine", r.method+r.path)
		}
		a.apply(a.journey()) // also when there are others
	}
}

// TestManyChangesOfOneLabelAtOnce has each answered with 200, and with its own change.
func TestManyChangesOfOneLabelAtOnce(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	a.apply(a.journey())
	const one, changes = labels + "one", 600
	a.require(201, "POST", one+"?wait=0", `{"metadata":{}}`)
	var all sync.WaitGroup
	for i := range changes {
		all.Go(func() {
			key := fmt.Sprint("k", i)
			r := httptest.NewRequestWithContext(t.Context(), "PATCH", one, strings.NewReader(`{"metadata":{"`+key+`":1}}`))
			a.Authorize(r, alice)
			w := httptest.NewRecorder()
			a.Handler.ServeHTTP(w, r)
			assert.Equal(t, 200, w.Code, w.Body)
			assert.Contains(t, w.Body.String(), `"`+key+`":1`)
		})
	}
	all.Wait()
	assert.Len(t, a.show(one).Metadata, changes)
}

// TestAWaitForALabelEndsWithItsToken removes the token of a client that waits for a worker, which
// does not come.
func TestAWaitForALabelEndsWithItsToken(t *testing.T) {
	a := newMachinesAPI(t, rdbtest.Embedded(t))
	a.apply(a.journey())
	a.require(201, "POST", labels+"one?wait=0", `{"metadata":{"go":true}}`)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"PATCH", labels + "one?wait=10000", `{"metadata":{"go":true,"n":1}}`, 200}, // it is stored
		{"POST", labels + "one/evaluate?wait=10000", ``, 401},
	} {
		require.NoError(t, a.PutToken(t.Context(), webtest.Bob, "bob"))
		body := webtest.NewSignal(c.body)
		served := make(chan int, 1)
		go func() {
			r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, body)
			a.Authorize(r, webtest.Bob)
			w := httptest.NewRecorder()
			a.Handler.ServeHTTP(w, r)
			served <- w.Code
		}()
		<-body.Ended
		require.NoError(t, a.DeleteToken(t.Context(), webtest.Bob))
		assert.Equal(t, c.status, <-served, c.path)
	}
}
