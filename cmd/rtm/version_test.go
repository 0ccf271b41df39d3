package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/app"
)

func TestVersion(t *testing.T) {
	var out, errors bytes.Buffer
	assert.Equal(t, app.ExitOK, run(t.Context(), []string{"version"}, &out, &errors))
	assert.Regexp(t, `^rtm \S+ \(go1\.\S+, \w+/\w+\)\n$`, out.String())
	assert.Empty(t, errors.String())
}
