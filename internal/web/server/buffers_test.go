package server

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBuffersReadEverythingAndReleaseIt(t *testing.T) {
	b := NewBuffers(4 << 20)
	for _, size := range []int{0, 1, firstBuffer - 1, firstBuffer, firstBuffer + 1, 100_000, 1 << 20} {
		text := bytes.Repeat([]byte("x"), size)
		for _, from := range []io.Reader{bytes.NewReader(text), iotest.HalfReader(iotest.DataErrReader(bytes.NewReader(text)))} {
			buffer, err := b.Read(from)
			require.NoError(t, err)
			assert.Equal(t, text, append([]byte{}, buffer...), size)
			assert.Equal(t, cap(buffer), b.taken)
			assert.LessOrEqual(t, cap(buffer), max(firstBuffer, bufferGrowth*(size+1)))
			b.Release(buffer)
			assert.Zero(t, b.taken)
		}
	}
	broken := errors.New("broken")
	_, err := b.Read(io.MultiReader(strings.NewReader(strings.Repeat("x", 10_000)), iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
	assert.Zero(t, b.taken)
}

// TestALargeBodyLeavesRoomForSmallOnes fills three quarters of the budget with large bodies.
func TestALargeBodyLeavesRoomForSmallOnes(t *testing.T) {
	const budget = 16 * firstBuffer
	b := NewBuffers(budget)
	large, err := b.Read(bytes.NewReader(make([]byte, 2*firstBuffer))) // grows once it is full
	require.NoError(t, err)
	_, err = b.Read(bytes.NewReader(make([]byte, budget)))
	require.ErrorIs(t, err, ErrBodyBudget)
	assert.Equal(t, cap(large), b.taken, "the refused body is released")
	var small [][]byte
	for b.taken < budget {
		buffer, err := b.Read(strings.NewReader("{}"))
		require.NoError(t, err)
		small = append(small, buffer)
	}
	_, err = b.Read(strings.NewReader("{}"))
	require.ErrorIs(t, err, ErrBodyBudget)
	for _, buffer := range append(small, large) {
		b.Release(buffer)
	}
	assert.Zero(t, b.taken)
}
