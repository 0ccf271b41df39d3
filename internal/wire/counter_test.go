package wire

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

// The bytes are the output of Ruby's MessagePack.dump([name, tags.to_a.sort]).
func TestCounters(t *testing.T) {
	for field, counter := range map[string]bus.Counter{
		"\x92\xb0events.published\x92\x92\xa9publisher\xa4shop\x92\xa5topic\xa7widgets": bus.NewCounter(
			"events.published", bus.Tag{Name: "topic", Value: "widgets"}, bus.Tag{Name: "publisher", Value: "shop"}),
		"\x92\xadjobs.scrubbed\x90": bus.NewCounter("jobs.scrubbed"),
	} {
		assert.Equal(t, field, PackCounter(counter))
		got, err := UnpackCounter(field)
		require.NoError(t, err)
		assert.Equal(t, counter, got)
	}
	got, err := UnpackCounter("\x92\xa1a\x91\x92\xa1b\xc0")
	require.NoError(t, err)
	assert.Equal(t, bus.NewCounter("a", bus.Tag{Name: "b"}), got, "nil is empty")
	tag := "\x92\xa1b\xa1c"
	for _, broken := range []string{
		"", "not a counter", "\x93", "\x92\x01\x90", "\x92\xa1a", "\x92\xa1a\x91", "\x92\xa1a\x91\x91\xa1b", "\x92\xa1a\x91\x92\xa1b\x01",
		"\x92\xa1a\x94" + tag + tag + tag + tag,
	} {
		_, err := UnpackCounter(broken)
		require.Error(t, err, "%x", broken)
	}
}
