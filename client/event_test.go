package client_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
)

func TestEventsAreReadAndWrittenAsDelivered(t *testing.T) {
	for text, at := range map[string]time.Time{
		`1700000000123`:    time.UnixMilli(1700000000123),
		`-1`:               time.UnixMilli(-1),
		`1700000000123.5`:  time.UnixMilli(1700000000123).Add(500 * time.Microsecond),
		`-1.5`:             time.UnixMilli(-1).Add(-500 * time.Microsecond),
		`1.7e12`:           time.UnixMilli(1700000000000),
		`null`:             {},
		`0`:                time.UnixMilli(0),
		`9007199254740993`: time.UnixMilli(9007199254740993),
	} {
		var event client.Event
		require.NoError(t, json.Unmarshal(fmt.Appendf(nil, `{"topic":"widgets","type":"noop","url":"https://x/?a&b","t":%s,"data":[1.0],"more":{}}`, text), &event), text)
		assert.True(t, at.Equal(event.Timestamp), "%s: %v", text, event.Timestamp)
		assert.Equal(t, "widgets noop https://x/?a&b [1.0]", fmt.Sprintf("%s %s %s %s", event.Topic, event.Type, event.URL, event.Data))
	}
	for _, text := range []string{`"now"`, `1e300`, `{}`, `true`} {
		assert.Error(t, json.Unmarshal([]byte(`{"t":`+text+`}`), new(client.Event)), text)
	}
	text, err := json.Marshal(client.Event{Topic: "widgets", Type: client.Noop, URL: "https://x/", Timestamp: time.UnixMilli(5)})
	require.NoError(t, err)
	assert.Equal(t, `{"topic":"widgets","type":"noop","url":"https://x/","t":5}`, string(text))
}
