package jobs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/jobs"
)

func TestIsTooDeep(t *testing.T) {
	t.Parallel()
	nested := func(n int, inner string) string {
		return strings.Repeat(`{"a":[`, n/2) + inner + strings.Repeat(`]}`, n/2)
	}
	for data, want := range map[string]bool{
		"1":                               false,
		nested(jobs.MaxDepth, ""):         false,
		nested(jobs.MaxDepth, `"[\"[\\"`): false,
		nested(jobs.MaxDepth, `"\\",[]`):  true,
		nested(jobs.MaxDepth+2, ""):       true,
		"[" + strings.Repeat("[{}],", jobs.MaxDepth) + "1]": false,
	} {
		assert.Equal(t, want, jobs.IsTooDeep([]byte(data)), data[:min(len(data), 20)])
	}
}
