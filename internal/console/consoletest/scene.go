package consoletest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/console"
	"routemaster/internal/layout"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/outbound"
	"routemaster/internal/web/webtest"
	"routemaster/internal/wire"
)

// The clients of a [Desk] after [Desk.Fill], by their tokens. Shop and Search are subscribed,
// Warehouse publishes.
const Shop, Search, Warehouse = "shop--1", "search--1", "warehouse--1"

// UUID is a secret that no page shows by itself. Hostile is text of a publisher that must be shown
// as text, and Data is data of an event, a job or a label that has it, with numbers that JavaScript
// would change.
const (
	UUID    = "hush-4711"
	Hostile = `</script><img src=x onerror=a()>`
	Data    = `{"n":9007199254740993,"x":1.0,"t":"` + Hostile + `"}`
)

// The jobs of [Desk.Fill]: one that waits, and one that was cancelled.
const (
	WaitingJob   = "job_1f7c4a52-6f7e-4a35-8f0e-0c6f3f1f0001"
	CancelledJob = "job_1f7c4a52-6f7e-4a35-8f0e-0c6f3f1f0002"
)

// inBraces is a name in the path of a page.
var inBraces = regexp.MustCompile(`\{([a-z]+)\}`)

// Path fills in a page's path with names that [Desk.Fill] has made, or with "none".
func (d *Desk) Path(p console.Page) string {
	return inBraces.ReplaceAllStringFunc(p.Path, func(name string) string {
		return url.PathEscape(cmp.Or(d.names[strings.Trim(name, "{}")], "none"))
	})
}

// Fill fills the bus with some of everything that pages show.
func (d *Desk) Fill() {
	d.T.Helper()
	d.names = map[string]string{
		"topic": "widgets", "subscriber": "shop", "token": console.TokenID(Search),
		"type": "invoice", "job": WaitingJob, "machine": "parcel", "label": "p1", "session": "all", "queue": "main",
	}
	for _, token := range []string{Shop, Search, Warehouse} {
		name, _, _ := strings.Cut(token, "--")
		d.require(http.StatusCreated, webtest.RootKey, "POST", "/api_tokens", `{"name":"`+name+`","token":"`+token+`"}`)
	}
	d.publish()
	d.attempt()
	d.enqueue()
	d.move()
}

// require sends a request with a secret, and requires a status. It returns the body.
func (d *Desk) require(status int, who, method, path, body string) string {
	d.T.Helper()
	got := d.Do(who, method, path, body)
	require.Equal(d.T, status, got.Status, "%s %s: %s", method, path, got.Body)
	return got.Body
}

// publish has Shop have a batch, a dead letter and a replay.
func (d *Desk) publish() {
	d.T.Helper()
	d.RequireDone(Shop, "POST", "/subscriber", `{"topics":["widgets","parcels"],"callback":"https://shop.example/events","uuid":"`+UUID+`"}`)
	d.RequireDone(Shop, "PATCH", "/subscriber", `{"dead_letters":{"attempts":3}}`)
	d.RequireDone(Search, "POST", "/subscriber", `{"topics":["parcels"],"callback":"https://search.example/events","uuid":"`+UUID+`"}`)
	event := `{"type":"update","url":"https://example.com/1","data":` + Data + `}`
	d.RequireDone(Warehouse, "POST", "/topics/parcels", webtest.EventText(1))
	d.RequireDone(Warehouse, "POST", "/topics/widgets", event)
	d.RequireDone(Warehouse, "PUT", "/topics/widgets/history", `{"events":1000}`)
	d.RequireDone(Shop, "DELETE", "/subscriber/batches/"+d.first("batches"), "")
	d.names["letter"] = d.first("dead_letters")
	d.RequireDone(Warehouse, "POST", "/topics/widgets", event)
	d.names["batch"] = d.first("batches")
	d.require(http.StatusAccepted, Shop, "POST", "/subscriber/replays", `{"topic":"widgets","from":1}`)
	d.names["replay"] = d.first("replays")
}

// attempt has Shop have a failed attempt on record, of an answer that is hostile.
func (d *Desk) attempt() {
	d.T.Helper()
	record := wire.PackAttempt(wire.AttemptRecord{
		At: At, Batch: "0123456789abcdefghij", Attempt: 3, Events: 2, Outcome: bus.OutcomeFailed, Status: http.StatusServiceUnavailable,
		Duration: time.Second, RetryAt: At.Add(time.Minute), Excerpt: Hostile, Public: true,
	})
	p := d.Of(Shop).Partition()
	require.NoError(d.T, p.LPush(d.T.Context(), layout.Keys{Namespace: p.Namespace()}.Attempts(Shop), record).Err())
}

// first is the ID of the first element of a list of Shop's.
func (d *Desk) first(list string) string {
	d.T.Helper()
	var all []struct{ ID string }
	require.NoError(d.T, json.Unmarshal([]byte(d.require(http.StatusOK, Shop, "GET", "/subscriber/"+list, "")), &all))
	require.NotEmpty(d.T, all, list)
	return all[0].ID
}

// enqueue has a job of each status but expired.
func (d *Desk) enqueue() {
	d.T.Helper()
	d.require(http.StatusCreated, Shop, "POST", "/v2/job-types",
		`{"name":"invoice","delivery_strategy":"at_least_once","attempts":3,"concurrency":2,"url":null}`)
	const path = "/v1/jobs/invoice/"
	put := func(id string) {
		d.require(http.StatusAccepted, Shop, "PUT", path+id, `{"id":"`+id+`","data":`+Data+`}`)
	}
	some := strings.TrimSuffix(WaitingJob, "1")
	put(some + "3")
	d.require(http.StatusOK, Shop, "POST", path+"fetch", "")
	for number, report := range map[string]string{"4": `{"status":"succeeded","attempt":3}`, "5": `{"status":"failed","attempt":3,"retryable":false}`} {
		put(some + number)
		d.require(http.StatusOK, Shop, "POST", path+some+number, report)
	}
	put(CancelledJob)
	put(WaitingJob)
	d.require(http.StatusNoContent, Shop, "DELETE", path+CancelledJob, "")
}

// machine is a machine whose webhooks fail, because no server listens at their address.
const machine = `{"state_machines":{"parcel":{"states":[
	{"gate":"start","exit_condition":"metadata.go","triggers":[{"event":"entry"}],"next":"packed"},
	{"gate":"packed","exit_condition":"metadata.send","triggers":[{"event":"entry"}],"next":"send"},
	{"action":"send","webhook":"http://127.0.0.1:1/<label>","attempts":1,"next":"end"},
	{"gate":"end","exit_condition":false}]}}}`

// move has labels wait in two gates, and be errored in an action.
func (d *Desk) move() {
	d.T.Helper()
	d.require(http.StatusOK, webtest.RootKey, "PUT", "/state-machines", machine)
	for name, metadata := range map[string]string{"p1": Data, "p2": `{"go":true}`, "p3": `{"go":true,"send":true}`} {
		d.require(http.StatusCreated, Shop, "POST", "/state-machines/parcel/labels/"+name+"?wait=0", `{"metadata":`+metadata+`}`)
	}
	d.Work()
}

// Work runs workers until the state machines have nothing left to do.
func (d *Desk) Work() {
	d.T.Helper()
	client := outbound.New(outbound.Config{ConnectTimeout: time.Minute, Timeout: time.Minute}, time.Now)
	d.T.Cleanup(client.Close)
	workers := machinestest.Beside(d.T, d.Partitions(), client)
	workers.Now = time.Now()
	workers.Work()
}
