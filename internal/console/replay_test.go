package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// TestAReplayIsCountedFirst replays the counted events, without later ones.
func TestAReplayIsCountedFirst(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	const path = "subscribers/shop/replay"
	b := d.As(shop)
	assert.Contains(t, b.Send(path+"?topic=parcels&since=&until=", nil).Body.String(), "It keeps no history.")
	d.RequireDone(consoletest.Warehouse, "PUT", "/topics/parcels/history", `{"events":100}`)
	publish := func() { d.RequireDone(consoletest.Warehouse, "POST", "/topics/parcels", webtest.EventText(1)) }
	publish()
	publish()
	for query, want := range map[string]string{
		"&until=":           "2 events of parcels",
		"2020-01-01&until=": "2 events of parcels",
		"2100-01-01&until=": "no event of this time",
		"&until=2020-01-01": "no event of this time",
		"&until=0001-01-01": "Write a time as",
		"yesterday&until=":  "Write a time as",
	} {
		assert.Contains(t, b.Send(path+"?topic=parcels&since="+query, nil).Body.String(), want, query)
	}
	uncounted := b.Send(path, url.Values{"topic": {"parcels"}})
	assert.Equal(t, http.StatusUnprocessableEntity, uncounted.Code)

	counted := b.Send(path+"?topic=parcels&since=&until=", nil).Body.String()
	assert.Contains(t, counted, "Replay 2 events to shop")
	publish()
	assert.Equal(t, http.StatusSeeOther, b.Send(path, consoletest.Fields(counted)).Code)
	assert.Contains(t, b.Send("subscribers/shop", nil).Body.String(), "of 2 events queued")
	assert.Contains(t, d.Do(shop, "GET", "/subscriber/replays", "").Body, `"from":2,"to":3`)
}

// TestWhatBecomesOfAnEvent publishes an event as root, which sees the attempts of all subscribers.
func TestWhatBecomesOfAnEvent(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	b := d.As(webtest.RootKey)
	_, body := b.Submit("publish", "as", "warehouse", "topic", "widgets", "type", "noop", "url", "https://example.com/1")
	assert.Contains(t, body, "Published to widgets for ")
	assert.Contains(t, body, "<h1>Sent to widgets</h1>")
	assert.Contains(t, body, `<tr id="sent-shop">`)
	assert.Equal(t, http.StatusOK, d.As(search).Send("topics/widgets/sent?at=x", nil).Code)
}
