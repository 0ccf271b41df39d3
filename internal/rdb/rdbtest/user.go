package rdbtest

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Rights are the rights that the page on scaling tells operators to give the user of web and
// worker.
const Rights = "~* &* +@read +@write +@scripting +@connection +@blocking +@transaction +@pubsub +info +wait +time +cluster|slots"

// userArguments add a user "bus" to a server, with these rights and no others. They persist over a
// restart.
func userArguments() []string {
	return append([]string{"--user", "bus", "on", ">secret"}, strings.Fields(Rights)...)
}

// requireNothingRefused fails the test in the end if a user lacked a right. The page has the bus do
// without CONFIG GET, which tells passwords.
func (c *Cluster) requireNothingRefused(t testing.TB) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		for _, node := range c.Nodes {
			if node.processes[0].command == nil {
				continue // it was killed: to ask it takes seconds of tries
			}
			var refused []string
			for _, entry := range node.Raw.ACLLog(ctx, -1).Val() {
				if entry.Object != "config|get" {
					refused = append(refused, entry.Username+": "+entry.Object)
				}
			}
			assert.Empty(t, refused, "what %s refused", node.Address)
		}
	})
}
