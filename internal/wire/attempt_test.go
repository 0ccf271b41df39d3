package wire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

func TestAttempts(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	for _, record := range []AttemptRecord{
		{},
		{At: at, Batch: "AAAABBBBCCCCDDDD-_-_", Attempt: 1, Events: 100, Outcome: bus.OutcomeAcknowledged, Status: 204},
		{
			At: at, Batch: "AAAABBBBCCCCDDDD-_-_", Attempt: 70_000, Events: 10_000, Outcome: bus.OutcomePartial, Status: 207,
			Error: bus.ErrorReceipt, Detail: "no JSON", Duration: 3 * time.Second, RetryAt: at.Add(time.Minute), Excerpt: "\xff\x00",
			Public: true, WebhookID: "AAAABBBBCCCCDDDD-_-_-1-50", Acknowledged: 1, Retried: 2, Rejected: 3, Replay: "x", Test: true,
		},
	} {
		packed := PackAttempt(record)
		got, err := UnpackAttempt(string(packed))
		require.NoError(t, err)
		assert.Equal(t, record, got)
	}
	assert.Equal(t, "\x80", string(PackAttempt(AttemptRecord{})), "what is zero takes no space")
}

func TestAttemptsOfOtherVersions(t *testing.T) {
	got, err := UnpackAttempt("\x83\xa3new\x91\x91\x01\xa1s\xcd\x01\xf4\xa5later\xc0")
	require.NoError(t, err)
	assert.Equal(t, AttemptRecord{Status: 500}, got)
	for _, broken := range []string{"", "x", "\x90", "\x81", "\x81\xa1s", "\x81\xa1s\xa1x", "\x81\x01\x01", "\x81\xa1b\xa9x"} {
		_, err := UnpackAttempt(broken)
		assert.Error(t, err, "%x", broken)
	}
}
