package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/client/machines"
	"routemaster/client/subscriber"
	"routemaster/internal/app"
)

// TestWrongLabelsAreNotSent has commands that must fail without a request.
func TestWrongLabelsAreNotSent(t *testing.T) {
	b := newCannedBus(t, nil)
	for _, c := range []struct{ args, want string }{
		{"label show m", "got 1 arguments; usage: rtm label show MACHINE LABEL"},
		{"label show m/n a", `"m/n" does not name a machine: a machine's name is`},
		{"label show m a/b", `"a/b" does not name a label: a label's name is`},
		{"label del m a b/c", `"b/c" does not name a label`},
		{"label set m a", "nothing to merge; give PATH=VALUE"},
		{"label set m a plan", `"plan" is not PATH=VALUE, such as plan=pro`},
		{"label set m a .x=1", `".x=1" is not PATH=VALUE`},
		{"label set m a plan={x", "plan={x: the value is not JSON"},
		{"label set m a --data 7", "--data must be a JSON object"},
		{"label set m a --data @/nowhere", "--data: open /nowhere: no such file"},
		{"label set m a x=1 --wait 11s", "--wait must be 0s to 10s"},
		{"label list m --limit 0", "--limit must be 1 or more"},
		{"machine graph m n", "got 2 arguments; usage: rtm machine graph"},
	} {
		status, out, errors := b.rtm(t, strings.Fields(c.args)...)
		assert.Equal(t, app.ExitUsage, status, c.args)
		assert.Contains(t, errors, c.want, c.args)
		assert.Empty(t, out, c.args)
	}
	assert.Empty(t, b.requests)
}

func TestMovesThatAreNotKept(t *testing.T) {
	const moves = `"history":[{"at":2000,"from":"mail","to":"end","why":{"status":204}},{"at":1000,"from":"start","to":"mail","why":{"trigger":"entry"}}]`
	for count, want := range map[string]string{"2": "", "137": "rtm: these are the last 2 of 137 moves; older ones are not kept\n"} {
		b := newCannedBus(t, map[string]string{"GET /state-machines/m/labels/a/history": `{` + moves + `,"count":` + count + `}`})
		status, out, errors := b.rtm(t, "label", "history", "m", "a")
		assert.Equal(t, app.ExitOK, status)
		assert.Regexp(t, `^\S+:02(\.\d+)?\S*\tmail\tend\t\t204\n\S+:01\S*\tstart\tmail\tentry\t\n$`, out)
		assert.Equal(t, want, errors)
	}
}

func TestRowsOfALabel(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) subscriber.Time { return subscriber.Time{Time: now.Add(d)} }
	assert.Equal(t, [][]string{
		{"state", "mail"}, {"since", "2026-01-28T12:00:00Z (3d ago)"}, {"failed attempts", "2"}, {"last status", "503"},
		{"last error", "busy"}, {"next try", "2026-01-31T12:00:10Z (in 10s)"}, {"errored", "2026-01-31T12:00:00Z: no attempt is left"},
		{"metadata", "{}"},
	}, statusRows(machines.Status{
		Label: machines.Label{State: "mail", Metadata: machines.Object{}}, EnteredAt: at(-72 * time.Hour),
		Action:  &machines.Action{Attempts: 2, LastStatus: 503, LastError: "busy", NextTryAt: at(10 * time.Second)},
		Errored: &machines.Errored{At: at(0), Reason: "no attempt is left"},
	}, "", now))
	assert.Equal(t, []string{"end", "the label moves no further"}, statusRows(machines.Status{Label: machines.Label{State: "done"}}, "", now)[2])
	assert.Equal(t, [][]string{
		{"next trigger", "retry 2026-01-31T11:59:59Z (now)"}, {"trigger", "time 2026-01-31T18:30:00Z (in 6h30m)"},
		{"trigger", "metadata a.b"}, {"trigger", "topic users"}, {"trigger", "time, never: the metadata names no time zone"},
	}, triggerRows([]machines.Trigger{
		{Type: "metadata", Path: "a.b"}, {Type: "topic", Topic: "users"}, {Type: "time"}, {Type: "time", At: at(6*time.Hour + 30*time.Minute)},
		{Type: "retry", At: at(-time.Second)},
	}, "", now))
	assert.Equal(t, [][]string{
		{"condition", "feeds.f.a and x"}, {"value", "unknown, since it depends on a feed"},
		{"part", "feeds.f.a -> unknown, since it depends on a feed"}, {"part", "x -> fails: no"},
	}, explanationRows(machines.Explanation{
		Condition: "feeds.f.a\n  and x\n", Unknown: true,
		Parts: []machines.Part{{Text: "feeds.f.a", Unknown: true}, {Text: "x", Error: "no"}},
	}))
}

func TestTriggersOfAState(t *testing.T) {
	assert.Equal(t, "-", showTriggers(nil))
	assert.Equal(t, "topic parcels, metadata parcel.state, time 18h30m, event entry", showTriggers([]map[string]any{
		{"topic": "parcels", "label": map[string]any{"data": "order"}, "metadata": "parcel"},
		{"metadata": "parcel.state"}, {"time": "18h30m", "timezone": "Europe/London"}, {"event": "entry"},
	}))
}

func TestAGateThatWouldOpen(t *testing.T) {
	metadata := machines.Trigger{Type: "metadata", Path: "a"}
	waiting := func(value *bool, failure string, triggers ...machines.Trigger) machines.Waiting {
		return machines.Waiting{Explanation: machines.Explanation{Value: value, Error: failure}, Triggers: triggers}
	}
	for _, c := range []struct {
		waiting machines.Waiting
		hinted  bool
	}{
		{waiting(new(true), "", metadata), true},
		{waiting(new(true), ""), true},
		{waiting(new(false), "", metadata), false},
		{waiting(nil, "", metadata), false},
		{waiting(new(true), "next: no", metadata), false},
		{waiting(new(true), "", metadata, machines.Trigger{Type: "retry"}), false}, // a worker will look at it
	} {
		rows := statusRows(machines.Status{Waiting: &c.waiting}, "", time.Now())
		assert.Equal(t, c.hinted, slices.ContainsFunc(rows, func(row []string) bool { return row[0] == "hint" }), "%+v", c.waiting)
	}
}
