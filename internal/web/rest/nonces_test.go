package rest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSeenNoncesAreBounded(t *testing.T) {
	seen, begun := newSeenNonces(), time.UnixMilli(1_700_000_000_000)
	seen.max = 100
	nonce := func(i int) openNonce {
		n := openNonce{madeAt: begun.Add(time.Duration(i) * time.Millisecond)}
		copy(n.seal[:], fmt.Sprint(i))
		return n
	}
	for i := range 1000 {
		require.True(t, seen.count(nonce(i), 1, begun), i)
	}
	assert.Len(t, seen.counts, 100)
	assert.Len(t, seen.oldest, 100)
	assert.False(t, seen.count(nonce(899), 2, begun), "it was forgotten: nobody knows which counts it has had")
	assert.False(t, seen.count(nonce(5), 9, begun))
	assert.False(t, seen.count(nonce(950), 1, begun), "it is remembered")
	assert.True(t, seen.count(nonce(950), 2, begun))
	assert.True(t, seen.count(nonce(1000), 1, begun))

	assert.True(t, seen.count(nonce(5000), 1, begun.Add(4*time.Second)))
	assert.Len(t, seen.counts, 1, "those that have expired are forgotten")
}
