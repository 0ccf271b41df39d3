package machines_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/machines"
)

func TestNamesOfLabels(t *testing.T) {
	for name, valid := range map[string]bool{
		"user-7": true, "ann+1@x é": true, "...": true, "a.": true, "%2F": true, strings.Repeat("x", machines.MaxLabelNameLen): true,
		"": false, ".": false, "..": false, "a/b": false, "a\nb": false, "\xff": false, strings.Repeat("x", machines.MaxLabelNameLen+1): false,
	} {
		assert.Equal(t, valid, machines.LabelName(name).Validate() == nil, "%q", name)
	}
}
