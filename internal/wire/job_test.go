package wire

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

func TestJobs(t *testing.T) {
	for packed, job := range map[string]bus.Job{
		"\x92\xa5batch\x91\xb4AAAABBBBCCCCDDDD-_-_": {Name: bus.JobBatch, Args: []string{"AAAABBBBCCCCDDDD-_-_"}},
		"\x92\xadscrub_workers\x90":                 {Name: bus.JobScrubWorkers},
	} {
		assert.Equal(t, packed, PackJob(job))
		got, err := UnpackJob(packed)
		require.NoError(t, err)
		assert.Equal(t, job, got)
	}
	for _, broken := range []string{"", "\x93", "\x92\x01", "\x92\xa1x", "\x92\xa1x\x91\x01", "\x92\xa1x\x91"} {
		_, err := UnpackJob(broken)
		require.Error(t, err, "%x", broken)
	}
}
