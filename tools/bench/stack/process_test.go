package stack

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAProgramThatFailsSaysWhy(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	broken := exec.Command(sh, "-c", "echo it is broken >&2; exit 1")
	_, err = Start(t.Context(), "thing", broken, func() bool { return false })
	require.EqualError(t, err, "thing has exited: it is broken")
}
