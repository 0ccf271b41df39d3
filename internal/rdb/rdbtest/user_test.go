package rdbtest

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestThePageGivesTheRights requires the rights of tests to be on the page.
func TestThePageGivesTheRights(t *testing.T) {
	page, err := os.ReadFile("../../../docs/scaling.md")
	require.NoError(t, err)
	assert.Contains(t, strings.Join(strings.Fields(string(page)), " "), "ACL SETUSER bus on >secret "+Rights+" ")
}
