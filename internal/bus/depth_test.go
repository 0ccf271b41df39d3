package bus_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
)

func TestIsTooDeep(t *testing.T) {
	t.Parallel()
	nested := func(n int, inner string) string {
		return strings.Repeat(`{"a":[`, n/2) + inner + strings.Repeat(`]}`, n/2)
	}
	for data, want := range map[string]bool{
		"1":                              false,
		nested(bus.MaxDepth, ""):         false,
		nested(bus.MaxDepth, `"[\"[\\"`): false,
		nested(bus.MaxDepth, `"\\",[]`):  true,
		nested(bus.MaxDepth+2, ""):       true,
		"[" + strings.Repeat("[{}],", bus.MaxDepth) + "1]": false,
	} {
		assert.Equal(t, want, bus.IsTooDeep([]byte(data)), data[:min(len(data), 20)])
	}
}
