package freeport

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func portOf(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	return port
}

// TestAPortIsGivenOnce uses other claims in place of another process.
func TestAPortIsGivenOnce(t *testing.T) {
	var mine, others Claims
	const above = 10_000
	address, err := mine.address(above)
	require.NoError(t, err)
	port := portOf(t, address)
	assert.False(t, others.claimAll(port, []int{0}), "though nobody listens on it yet")
	assert.False(t, others.claimAll(port-1, []int{0, above + 1}), "nor is that which goes with it given")
	require.NoError(t, others.Close())

	listener, err := net.Listen("tcp", address)
	require.NoError(t, err, "its owner may listen")
	require.NoError(t, mine.Close())
	assert.False(t, others.claimAll(port, []int{0}), "it is in use")
	require.NoError(t, listener.Close())
	assert.True(t, others.claimAll(port, []int{0}))
	require.NoError(t, others.Close())
}

func TestWhatIsClaimedInPartIsGivenBack(t *testing.T) {
	var mine, others Claims
	address, err := mine.address(1)
	require.NoError(t, err)
	port := portOf(t, address)
	require.NoError(t, mine.Close())
	require.True(t, mine.claimAll(port+1, []int{0}))
	require.False(t, others.claimAll(port, []int{0, 1}))
	assert.True(t, mine.claimAll(port, []int{0}))
	require.NoError(t, mine.Close())
}
