package bus_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
)

func TestAReasonHidesFromClients(t *testing.T) {
	for _, c := range []struct {
		stored, client, root string
		hides                bool
	}{
		{"", "", "", false},
		{"a reason", "a reason", "a reason", false},
		{bus.HidingReason("less", "less"), "less", "less", false},
		{bus.HidingReason("less", "more\nof it"), "less", "more\nof it", true},
	} {
		shown, hides := bus.ShownReason(c.stored, false)
		assert.Equal(t, []any{c.client, c.hides}, []any{shown, hides})
		shown, hides = bus.ShownReason(c.stored, true)
		assert.Equal(t, []any{c.root, c.hides}, []any{shown, hides})
	}
}
