package store

import (
	"testing"

	"routemaster/internal/rdb/rdbtest"
)

func TestScriptsNameTheirArgumentsAsGoDoes(t *testing.T) {
	t.Parallel()
	rdbtest.RequireArguments(t, lua("topic_publish"), func(a publishArgs) []any { return a.appendTo(nil) })
	rdbtest.RequireArguments(t, lua("lib/subscriptions"), SubscriberArgs.List)
	rdbtest.RequireArguments(t, lua("relay_put"), relayArgs.list)
	rdbtest.RequireArguments(t, lua("replay_start"), replayArgs.list)
	rdbtest.RequireArguments(t, lua("replay_step"), stepArgs.list)
	rdbtest.RequireArguments(t, lua("letter_trim"), trimArgs.list)
	rdbtest.RequireArguments(t, lua("batch_drop"), dropArgs.list)
}
