package rdb

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAddressesThatNodesTell(t *testing.T) {
	for _, c := range []struct{ address, by, want string }{
		{"10.0.0.1:7000", "10.0.0.2:7001", "10.0.0.1:7000"},
		{"::1:7000", "[::1]:7001", "[::1]:7000"},
		{"[2001:db8::1]:7000", "a:7001", "[2001:db8::1]:7000"},
		{"redis-1.example.com:7000", "10.0.0.2:7001", "redis-1.example.com:7000"},
		{":7000", "a:7001", "a:7000"},             // the node does not know its own address yet
		{"?:7000", "a:7001", "a:7000"},            // it has no name, where names are preferred
		{"10.0.0.1:0", "a:7001", "10.0.0.1:7001"}, // it only speaks TLS
		{"127.0.0.1:7000", "a:7001", "a:7000"},
		{"127.0.0.1:7000", "localhost:7001", "127.0.0.1:7000"},
	} {
		assert.Equal(t, c.want, resolveAddress(c.address, c.by), "%s, by %s", c.address, c.by)
	}
}

func TestWhoHasASlot(t *testing.T) {
	master := func(address string) []Endpoint {
		return []Endpoint{{Address: address}, {Address: "replica:1"}}
	}
	m, err := newSlotMap([]NodeRange{
		{100, 199, master("b:1")}, {0, 9, master("a:1")}, {200, 200, master("c:1")}, {201, 300, nil},
	}, "a:1")
	require.NoError(t, err)
	for slot, want := range map[int]string{
		0: "a:1", 9: "a:1", 10: "", 99: "", 100: "b:1", 199: "b:1", 200: "c:1", 201: "", 16383: "",
	} {
		assert.Equal(t, want, m.find(slot), slot)
	}
	moved := m.with(150, "a:1").with(150, "d:1").with(10, "d:1")
	assert.Equal(t, "d:1", moved.find(150))
	assert.Equal(t, "d:1", moved.find(10))
	assert.Equal(t, "b:1", moved.find(151))
	assert.Equal(t, "b:1", m.find(150), "a map does not change")
	assert.True(t, m.names("a:1"))
	assert.False(t, m.names("replica:1"))

	_, err = newSlotMap(nil, "a:1")
	assert.ErrorIs(t, err, errNoSlots)
}

func TestRangesAsNodesTellThem(t *testing.T) {
	node := []any{"10.0.0.1", int64(7000), "id", []any{"hostname", "a.example"}}
	var r NodeRange
	require.True(t, r.read([]any{int64(0), int64(9), node, []any{nil, int64(7001), "id of the replica"}}))
	assert.Equal(t, NodeRange{0, 9, []Endpoint{{"10.0.0.1:7000", "id"}, {":7001", "id of the replica"}}}, r)
	for _, wrong := range []any{
		nil, "0-9", []any{int64(0)}, []any{"0", int64(9)}, []any{int64(0), "9"}, []any{int64(0), int64(9), "10.0.0.1"},
		[]any{int64(0), int64(9), node[:2]}, []any{int64(0), int64(9), []any{"a", "7000", "id"}}, []any{int64(0), int64(9), []any{"a", int64(7000), nil}},
	} {
		assert.False(t, new(NodeRange).read(wrong), "%v", wrong)
	}
}
