package jobs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/jobs"
)

func TestParseID(t *testing.T) {
	const digits = "282227eb-3c76-4ef7-af7e-25dff933077f"
	for _, text := range []string{digits, "job_" + digits, "job_282227EB-3C76-4ef7-af7e-25dff933077F"} {
		id, err := jobs.ParseID(text)
		require.NoError(t, err, text)
		assert.Equal(t, "job_"+digits, id.String())
	}
	for text, want := range map[string]error{
		"":                   jobs.ErrInvalidUUID,
		"job_":               jobs.ErrInvalidUUID,
		"random_id":          jobs.ErrInvalidUUID,
		"job_" + digits[1:]:  jobs.ErrInvalidUUID,
		digits + "\n":        jobs.ErrInvalidUUID,
		"usr_" + digits:      jobs.ErrInvalidPrefix,
		"JOB_" + digits:      jobs.ErrInvalidPrefix,
		"job_job_" + digits:  jobs.ErrInvalidPrefix,
		"urn:uuid:" + digits: jobs.ErrInvalidPrefix,
		"job_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz": jobs.ErrInvalidUUID,
	} {
		_, err := jobs.ParseID(text)
		assert.ErrorIs(t, err, want, text)
	}
	assert.NotEqual(t, jobs.NewID(), jobs.NewID())
}

func TestScheduledIDsAreOfTypeAndTime(t *testing.T) {
	id := jobs.ScheduledID("a", 1_700_000_000_000)
	assert.Equal(t, id, jobs.ScheduledID("a", 1_700_000_000_000))
	assert.NotEqual(t, id, jobs.ScheduledID("b", 1_700_000_000_000))
	assert.NotEqual(t, id, jobs.ScheduledID("a", 1_700_000_060_000))
	parsed, err := jobs.ParseID(id.String())
	require.NoError(t, err)
	assert.Equal(t, id, parsed)
}

func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: 2, 2: 4, 11: 2048, 12: 3600, 40: 3600, 32767: 3600} {
		assert.Equal(t, want*time.Second, jobs.Backoff(32767, 32767-failures, 0), "%d", failures)
	}
	assert.Equal(t, 2*time.Second, jobs.Backoff(1, 5, 0), "a type whose attempts were lowered")
	assert.Equal(t, 3240*time.Second, jobs.Backoff(40, 1, 0.5))
}

func TestHold(t *testing.T) {
	for times, want := range map[int]time.Duration{0: 500, 1: 500, 2: 1000, 3: 2000, 7: 32_000, 8: 60_000, 5000: 60_000} {
		assert.Equal(t, want*time.Millisecond, jobs.Hold(times), "%d", times)
	}
}
