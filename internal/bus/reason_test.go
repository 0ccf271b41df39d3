package bus_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
)

func TestAReasonHidesFromClients(t *testing.T) {
	for _, c := range []struct{ stored, client, root string }{
		{"", "", ""},
		{"a reason", "a reason", "a reason"},
		{bus.HidingReason("less", "less"), "less", "less"},
		{bus.HidingReason("less", "more\nof it"), "less", "more\nof it"},
	} {
		assert.Equal(t, c.client, bus.ShownReason(c.stored, false))
		assert.Equal(t, c.root, bus.ShownReason(c.stored, true))
	}
}
