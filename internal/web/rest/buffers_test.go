package rest

import (
	"bytes"
	"errors"
	"fmt"
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
			buffer, err := b.Read("a", from)
			require.NoError(t, err)
			assert.Equal(t, text, append([]byte{}, buffer...), size)
			assert.Equal(t, cap(buffer), b.taken)
			assert.LessOrEqual(t, cap(buffer), max(firstBuffer, bufferGrowth*(size+1)))
			b.Release("a", buffer)
			assert.Zero(t, b.taken)
		}
	}
	broken := errors.New("broken")
	_, err := b.Read("a", io.MultiReader(strings.NewReader(strings.Repeat("x", 10_000)), iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
	assert.Zero(t, b.taken)
	assert.Empty(t, b.by)
}

// TestALargeBodyLeavesRoomForSmallOnes fills three quarters of the budget with large bodies.
func TestALargeBodyLeavesRoomForSmallOnes(t *testing.T) {
	const budget = 16 * firstBuffer
	b := NewBuffers(budget)
	large, err := b.Read("large", bytes.NewReader(make([]byte, 2*firstBuffer))) // grows once it is full
	require.NoError(t, err)
	_, err = b.Read("other", bytes.NewReader(make([]byte, budget)))
	require.ErrorIs(t, err, ErrBodyBudget)
	assert.Equal(t, cap(large), b.taken, "the refused body is released")
	var small [][]byte
	for b.taken < budget {
		buffer, err := b.Read(fmt.Sprint(len(small)), strings.NewReader("{}"))
		require.NoError(t, err)
		small = append(small, buffer)
	}
	_, err = b.Read("last", strings.NewReader("{}"))
	require.ErrorIs(t, err, ErrBodyBudget)
	for i, buffer := range small {
		b.Release(fmt.Sprint(i), buffer)
	}
	b.Release("large", large)
	assert.Zero(t, b.taken)
	assert.Empty(t, b.by)
}

// TestAClientHasAShareOfTheBodies has it take its quarter, and then others.
func TestAClientHasAShareOfTheBodies(t *testing.T) {
	const budget = 32 * firstBuffer
	b := NewBuffers(budget)
	read := func(client string, size int) (buffer []byte, err error) {
		return b.Read(client, bytes.NewReader(make([]byte, size)))
	}
	var held [][]byte
	for range 8 {
		buffer, err := read("many", 1)
		require.NoError(t, err)
		held = append(held, buffer)
	}
	_, err := read("many", 1)
	require.ErrorIs(t, err, ErrBodyShare)
	one, err := read("one", 7*firstBuffer) // no quarter bounds a single body
	require.NoError(t, err)
	b.Release("one", one)
	b.Release("many", held[0])
	_, err = read("many", firstBuffer) // it would have to grow
	require.ErrorIs(t, err, ErrBodyShare)
	again, err := read("many", 1)
	require.NoError(t, err)
	for _, buffer := range append(held[1:], again) {
		b.Release("many", buffer)
	}
	assert.Zero(t, b.taken)
	assert.Empty(t, b.by)
}
