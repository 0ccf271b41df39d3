package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/app"
)

func TestWhatWorkersRun(t *testing.T) {
	const running = `{"queue":"main","job":"batch","arguments":["b1"],"due_at":null,"thread":"w1",
		"batch":{"id":"b1","subscriber":"shop","created_at":5,"attempts":2,"events":7}}`
	const label = `{"queue":"machines","job":"label","arguments":["welcome","user\u001b"],"due_at":1700000000000,"thread":null,"batch":null}`
	const unreadable = `{"queue":"machines","job":null,"arguments":[],"due_at":null,"thread":null,"batch":null}`
	b := newCannedBus(t, map[string]string{
		"GET /threads":         `{"active":1,"silent":2,"running":[` + running + `],"more":3}`,
		"GET /queues/machines": "[" + unreadable + "," + label + "]",
		"GET /queues/jobs":     "[]",
	})
	const silent = "rtm: threads not heard of for 30 s: 2; what they ran is queued again\nrtm: threads that were not looked at: 3\n"
	for _, c := range []struct {
		args           string
		status         int
		stdout, stderr string
	}{
		{"", app.ExitOK, "main\tbatch\tb1\tshop\t2\t7\tw1\n", silent},
		{"machines --limit 2", app.ExitOK, "machines\t\t\t\t\t\t\nmachines\tlabel\twelcome user\\u001b\t\t\t\t1700000000000\n", ""},
		{"jobs", app.ExitOK, "", ""},
		{"jobs --json", app.ExitOK, "[]\n", ""},
		{"aux", app.ExitFailed, "", "rtm: list queued jobs: 403 Forbidden"},
		{"main aux", app.ExitUsage, "", "got 2 arguments; usage: rtm workers [QUEUE]"},
		{"mian", app.ExitUsage, "", `there is no queue "mian"; there are: main, aux, jobs, machines`},
		{"main --limit 101", app.ExitUsage, "", "--limit must be 1 to 100"},
		{"--limit 5", app.ExitUsage, "", "--limit needs a QUEUE"},
	} {
		status, out, errors := b.rtm(t, append([]string{"workers"}, strings.Fields(c.args)...)...)
		assert.Equal(t, c.status, status, c.args)
		assert.Equal(t, c.stdout, out, c.args)
		assert.Contains(t, errors, c.stderr, c.args)
		assert.Equal(t, c.stderr == "", errors == "", "%s: %s", c.args, errors)
	}
	assert.Equal(t, []string{"GET /threads", "GET /queues/machines", "GET /queues/jobs", "GET /queues/jobs", "GET /queues/aux"}, b.requests)
	_, out, _ := b.rtm(t, "workers", "--json")
	assert.JSONEq(t, `{"active":1,"silent":2,"running":[{"queue":"main","job":"batch","arguments":["b1"],"thread":"w1",
		"batch":{"id":"b1","subscriber":"shop","created_at":5,"attempts":2,"events":7}}],"more":3}`, out)
}
