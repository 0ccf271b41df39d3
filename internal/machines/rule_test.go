package machines_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/machines"
)

// TestALabelGetsNoHeadersByItsName names labels so that they match the patterns of other services'
// rules.
func TestALabelGetsNoHeadersByItsName(t *testing.T) {
	for _, c := range []struct {
		pattern, template string
		label             machines.LabelName
		holds             bool
	}{
		{`payments\.internal`, "https://hooks.example/<label>", "payments.internal", false},
		{`.*payments`, "https://hooks.example/<label>", "payments", false},
		{`^https://hooks\.example/vip-`, "https://hooks.example/<label>", "vip-1", false},
		{`payments\.internal`, "https://payments.internal/<label>", "any", true},
		{`/orders/`, "https://hooks.example/orders/<label>", "any", true},
		{`^https://hooks\.example/m/.+$`, "https://hooks.example/<state_machine>/<label>", "any", true},
		{`/\d+$`, "https://hooks.example/<label>", "17", true},
		{`/\d+$`, "https://hooks.example/<label>", "any", false},
		{`/[a-z]+$`, "https://hooks.example/<label>", "any", true},
	} {
		rule := machines.WebhookRule{Match: regexp.MustCompile(c.pattern)}
		assert.Equal(t, c.holds, rule.Holds(c.template, "m", c.label), "%s %s", c.pattern, c.label)
	}
}
