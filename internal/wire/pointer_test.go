package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

func TestValueAt(t *testing.T) {
	t.Parallel()
	event := wiretest.Pack(t, "widgets", `{"type":"update","url":"https://x.example/1","timestamp":7,
		"data":{"account":{"id":12},"lines":[{"sku":"a"},{"sku":"b"}],"a/b":true,"m~n":null,"s":"x\"y"}}`)
	for pointer, want := range map[string]string{
		"/topic": `"widgets"`, "/type": `"update"`, "/url": `"https://x.example/1"`, "/t": "7",
		"/data/account": `{"id":12}`, "/data/account/id": "12", "/data/lines/1/sku": `"b"`, "/data/lines/0": `{"sku":"a"}`,
		"/data/a~1b": "true", "/data/m~0n": "null", "/data/s": `"x\"y"`,
		"": "", "/nope": "", "/data/nope": "", "/data/lines/2": "", "/data/lines/01": "", "/data/lines/-1": "",
		"/url/0": "", "/data/account/id/x": "", "/u": "",
	} {
		value, err := wire.ValueAt(event, pointer)
		require.NoError(t, err, pointer)
		assert.Equal(t, want, string(value), pointer)
	}
	without := wiretest.Pack(t, "widgets", `{"type":"update","url":"https://x.example/1"}`)
	value, err := wire.ValueAt(without, "/data/account")
	require.NoError(t, err)
	assert.Empty(t, value)
	_, err = wire.ValueAt("no event", "/url")
	assert.Error(t, err)
}
