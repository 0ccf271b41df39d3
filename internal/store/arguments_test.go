package store

import (
	"regexp"
	"strings"
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

func TestScriptsNameTheirRepliesAsGoDoes(t *testing.T) {
	t.Parallel()
	rdbtest.RequireReply[batchReply](t, lua("lib/deliveries"), "function BATCH.take(entry)")
	slices := lua("lib/slices")
	shown := regexp.MustCompile(`local shown, batch = { ([\w, ]+) }`).FindStringSubmatch(slices)[1]
	state := regexp.MustCompile(`'HMGET', batch_state_key\(bid\), ([\w', \n]+), 'lane'\)`).FindStringSubmatch(slices)[1]
	rdbtest.RequireNames[basisReply](t, regexp.MustCompile(`\w+`).FindAllString(shown+","+state, -1))
	settled := regexp.MustCompile(`local ([\w, ]+) =\s+unpack\(entry.result, 9, 17\)`).FindStringSubmatch(slices)[1]
	rdbtest.RequireNames[sliceArgs](t, strings.Split(strings.Replace(settled, " _,", " keep_turn,", 1), ", "))
}
