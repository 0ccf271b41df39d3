package queue_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/wire"
)

// TestJobsInLua compares the bytes of a job packed by the scripts with the bytes packed by Go.
func TestJobsInLua(t *testing.T) {
	t.Parallel()
	job := wire.PackJob(bus.Job{Name: bus.JobBatch, Args: []string{"AAAABBBBCCCCDDDD-_-_"}})
	const uuid = "282227eb-3c76-4ef7-af7e-25dff933077f"
	texts := map[string]string{
		"pack_job('batch', 'AAAABBBBCCCCDDDD-_-_')":                          job,
		"table.concat({ unpack_job(ARGV[2]) }, ' ')":                         "batch AAAABBBBCCCCDDDD-_-_",
		"pack_job('job', '" + uuid + "')":                                    wire.PackJob(bus.Job{Name: bus.JobJob, Args: []string{uuid}}),
		"table.concat({ unpack_job(pack_job('job', '" + uuid + "')) }, ' ')": "job " + uuid,
		"tostring(unpack_job('\\146\\161a\\145\\217\\3abc'))":                "nil",
		"tostring(unpack_job(ARGV[2] .. 'x'))":                               "nil",
		"tostring(unpack_job(''))":                                           "nil",
		"tostring(unpack_job(pack_job('a', '')))":                            "nil",
		"tostring(unpack_job(string.sub(ARGV[2], 1, -2)))":                   "nil",
		"tostring(unpack_job('\\146' .. string.rep('x', 400)))":              "nil",
	}
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for expression, want := range texts {
			script := strings.Join(queue.Library, "") + "\nreturn " + expression
			got, err := server.Raw.Eval(t.Context(), script, nil, "ns:", job).Text()
			require.NoError(t, err, expression)
			assert.Equal(t, want, got, expression)
		}
	})
}
