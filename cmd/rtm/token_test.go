package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/client"
)

// TestPickToken: a token counts before a name, and a name only if one token bears it.
func TestPickToken(t *testing.T) {
	tokens := []client.Token{
		{Name: "shop", Token: "shop--1"}, {Name: "mail", Token: "mail--1"}, {Name: "mail", Token: "mail--2"},
		{Name: "other", Token: "stock"}, {Name: "stock", Token: "stock--1"}, {Name: "mail--2", Token: "x--1"},
	}
	for meant, want := range map[string]string{
		"shop": "shop--1", "shop--1": "shop--1", "mail--1": "mail--1", "mail--2": "mail--2", "stock": "stock", "other": "stock",
	} {
		token, err := pickToken(tokens, meant)
		assert.NoError(t, err, meant)
		assert.Equal(t, want, token, meant)
	}
	for meant, want := range map[string]string{"mail": "mail has several tokens", "nobody": "no such token", "": "no such token"} {
		token, err := pickToken(tokens, meant)
		assert.ErrorContains(t, err, want, meant)
		assert.Empty(t, token, meant)
	}
}
