package delivery

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/store"
)

func TestExpiredBatchesAreLoggedInSums(t *testing.T) {
	var out bytes.Buffer
	d := New(Config{}, slog.New(slog.NewTextHandler(&out, nil)), time.Now)
	log := func() { assert.NoError(t, d.LogExpired(t.Context())) }
	log()
	assert.Empty(t, out.String())
	for range 1000 {
		d.Discarded(store.ExpiredBatch{Client: "shop", Events: 3})
	}
	d.Discarded(store.ExpiredBatch{Client: "billing", Events: 7})
	for range 2 {
		log()
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	const message = `msg="dropped batches that were too old for their subscriber" `
	if assert.Len(t, lines, 2, "once each") {
		assert.Contains(t, lines[0], message+"subscriber=billing batches=1 events=7")
		assert.Contains(t, lines[1], message+"subscriber=shop batches=1000 events=3000")
	}
}
