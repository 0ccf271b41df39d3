package ingest

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
)

func TestThePublisherOfACounterIsNoSecret(t *testing.T) {
	for token, want := range map[bus.Token]string{"shop--1": "shop", "secret": "malformed", "--secret": "malformed", "": "null"} {
		assert.Equal(t, want, publisherOf(token), token)
	}
}
