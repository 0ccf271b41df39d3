package delivery

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
	"routemaster/internal/store"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

// TestADeliverySaysWhatItIsOf cuts slices of a replayed batch, of a test event and of any other.
func TestADeliverySaysWhatItIsOf(t *testing.T) {
	event := wiretest.Pack(t, "widgets", `{"type":"noop","url":"https://x.example/"}`)
	for want, basis := range map[string]*store.Basis{
		"": nil,
		`batch="AAAABBBBCCCCDDDDEEEE", attempt=2`:                                {},
		`batch="AAAABBBBCCCCDDDDEEEE", attempt=2, test`:                          {Test: true},
		`batch="AAAABBBBCCCCDDDDEEEE", attempt=2, replay="BAAABBBBCCCCDDDDEEEE"`: {Replay: "BAAABBBBCCCCDDDDEEEE"},
	} {
		batch := &store.Delivery{Batch: "AAAABBBBCCCCDDDDEEEE", Attempts: 2, Events: []wire.PackedEvent{event}, Basis: basis}
		if basis != nil {
			basis.Total, basis.Count = 1, 1
		}
		s, header := cut(batch, noOptions, time.Now()), http.Header{}
		s.setHeader(header)
		assert.Equal(t, want, header.Get("Routemaster-Delivery"))

		d := &decision{outcome: bus.OutcomeFailed, retryAt: now.Add(time.Second)}
		none, kept := newAttemptRecorder(0, 256).record(s, outbound.Attempt{}, d, time.Now())
		assert.Empty(t, none, "no attempts are to be kept")
		assert.Zero(t, kept)
		packed, _ := newAttemptRecorder(1, 0).record(s, outbound.Attempt{}, d, time.Now())
		if basis != nil {
			record, err := wire.UnpackAttempt(string(packed))
			require.NoError(t, err)
			assert.Equal(t, basis.Replay, record.Replay)
			assert.Equal(t, basis.Test, record.Test)
			assert.Equal(t, d.retryAt, record.RetryAt)
		}
	}
}
