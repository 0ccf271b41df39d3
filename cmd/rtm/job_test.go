package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/client/jobs"
	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// jobBus is the API of a bus, without a worker.
type jobBus struct {
	url  string
	jobs *jobs.Jobs
}

func newJobBus(t *testing.T) *jobBus {
	url := webtest.New(t, rdbtest.Embedded(t)).Run()
	c, err := client.New(url, webtest.Alice)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return &jobBus{url, jobs.New(c)}
}

// rtm runs a command of rtm job that must succeed, and returns its output.
func (b *jobBus) rtm(t *testing.T, args ...string) string {
	t.Helper()
	status, out, errors := b.try(t, args...)
	require.Equal(t, app.ExitOK, status, errors)
	return out
}

func (b *jobBus) try(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	status = run(t.Context(), append(append([]string{"job"}, args...), "-b", b.url, "-t", webtest.Alice), &out, &errors)
	return status, out.String(), errors.String()
}

// take has a service fetch a job.
func (b *jobBus) take(t *testing.T) jobs.Fetched {
	t.Helper()
	fetched, err := b.jobs.Fetch(t.Context(), "ship", 1, 0)
	require.NoError(t, err)
	require.Len(t, fetched, 1)
	return fetched[0]
}

func TestJobTypes(t *testing.T) {
	b := newJobBus(t)
	assert.Empty(t, b.rtm(t, "type", "list"))
	assert.Equal(t, "[]\n", b.rtm(t, "type", "list", "--json"))
	b.rtm(t, "type", "add", "ship", "--strategy", "at_least_once", "--attempts", "3", "--concurrency", "2", "--url", "https://ship.example/jobs",
		"--timeout", "90s", "--retention", "0s", "--schedule", "0 6 * * *", "--timezone", "Europe/Berlin", "--schedule-data", `{"n":1.50}`, "--paused", "--clients", "alice,bob")
	made, err := b.jobs.Type(t.Context(), "ship")
	require.NoError(t, err)
	assert.Equal(t, jobs.Type{
		Name: "ship", Strategy: jobs.AtLeastOnce, Attempts: 3, Concurrency: 2, URL: new("https://ship.example/jobs"), Timeout: 90_000,
		Retention: new(int64(0)), Paused: true, Schedule: "0 6 * * *", Timezone: "Europe/Berlin", ScheduleData: json.RawMessage(`{"n":1.50}`),
		Clients: []string{"alice", "bob"},
	}, made.Type)
	b.rtm(t, "put", "ship")
	assert.Equal(t, "ship\t1\t0\t0\ttrue\t2\tat_least_once\t3\t90000\t0\t0 6 * * *\tEurope/Berlin\thttps://ship.example/jobs\talice\t\talice,bob\t"+
		milliseconds(made.NextAt)+"\n", strings.Replace(b.rtm(t, "type", "list"), "\t1\t1\t0\t", "\t1\t0\t0\t", 1))

	b.rtm(t, "type", "set", "ship", "--pull", "--schedule", "off", "--retention", "1h", "--clients", "off")
	b.rtm(t, "type", "resume", "ship")
	changed, err := b.jobs.Type(t.Context(), "ship")
	require.NoError(t, err)
	made.URL, made.Retention, made.Paused, made.Schedule, made.Timezone, made.ScheduleData = nil, new(int64(3600)), false, "", "", json.RawMessage("null")
	made.Clients = nil
	assert.Equal(t, made.Type, changed.Type, "the rest is as it was")
	assert.Equal(t, []string{"ship", "ready", "1", "1", "0", "2", "3", "at_least_once", "1m30s", "-", "-", "pull", "alice", "all"}, typeRow(changed))
	held := changed
	held.HeldUntil = time.UnixMilli(1_700_000_000_000)
	assert.Equal(t, "held until "+clock(held.HeldUntil), typeRow(held)[1])
	assert.Equal(t, "1700000000000", typeLine(held)[14])
	b.rtm(t, "type", "pause", "ship")
	paused, err := b.jobs.Type(t.Context(), "ship")
	require.NoError(t, err)
	assert.True(t, paused.Paused)

	status, _, errors := b.try(t, "type", "del", "ship")
	assert.Equal(t, app.ExitFailed, status)
	assert.Equal(t, "rtm: jobs of ship are queued or in progress; wait until they have ended, or give --force to have them cancelled\n", errors)
	b.rtm(t, "type", "del", "ship", "--force")
	assert.Empty(t, b.rtm(t, "type", "list"))
	assert.Contains(t, b.rtm(t, "list", "--archived"), "\tship\tcancelled\t")
}

func TestJobsArePutAndDone(t *testing.T) {
	b := newJobBus(t)
	b.rtm(t, "type", "add", "ship", "--strategy", "at_least_once", "--attempts", "3", "--concurrency", "2", "--pull")
	const id = "job_282227eb-3c76-4ef7-af7e-25dff933077f"
	file := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(file, []byte("{\"n\": 1.50}\n"), 0o600))
	assert.Equal(t, id+"\n", b.rtm(t, "put", "ship", id, "--data", "@"+file, "--expires-at", "1h"))
	assert.Equal(t, id+"\n", b.rtm(t, "put", "ship", id), "it is enqueued once")
	shown := b.rtm(t, "show", id)
	assert.Contains(t, shown, "status\tqueued\nattempts left\t3\n")
	assert.Contains(t, shown, "\ndata\t{\"n\":1.50}\n")
	var job jobs.Job
	require.NoError(t, json.Unmarshal([]byte(b.rtm(t, "show", id, "--json")), &job))
	assert.WithinDuration(t, time.Now().Add(time.Hour), job.ExpiresAt, time.Minute)

	shown = b.rtm(t, "type", "show", "ship")
	assert.Contains(t, shown, "queued\t1\n")
	assert.Contains(t, shown, "\nwhy\tno worker runs: ")
	assert.Contains(t, shown, "\nwhy\tjobs are due that no service has fetched\n")

	b.take(t)
	b.rtm(t, "report", id, "failed", "--final", "--error", "no such customer")
	assert.Contains(t, b.rtm(t, "show", id), "status\tfailed\nattempts left\t2\nended\t")
	var tried triedJob
	require.NoError(t, json.Unmarshal([]byte(b.rtm(t, "show", id, "--json")), &tried))
	assert.Equal(t, id, tried.ID)
	require.Len(t, tried.LastAttempts, 1)
	assert.Equal(t, "no such customer", tried.LastAttempts[0].Error)
	assert.Regexp(t, `\nreason\tno such customer\n(.*\n)*attempt 3\tfailed, began .*, took .*, no such customer\n`, b.rtm(t, "show", id))
	status, _, errors := b.try(t, "report", id, "succeeded")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, errors, "has ended as failed; a report on it needs the --attempt")
	status, _, errors = b.try(t, "report", id, "succeeded", "--attempt", "3")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, errors, "409 Conflict")

	replayed := strings.TrimSpace(b.rtm(t, "replay", id))
	assert.Equal(t, replayed, b.take(t).ID)
	assert.Equal(t, "cancelled "+replayed+"; its service has it, and may do the work all the same\n", b.rtm(t, "cancel", replayed))
	waiting := strings.TrimSpace(b.rtm(t, "put", "ship", "--run-after", "10m"))
	assert.Equal(t, "cancelled "+waiting+"\n", b.rtm(t, "cancel", waiting))
	status, _, errors = b.try(t, "cancel", id)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, errors, "409 Conflict")
	const unknown = "job_9d1a3c58-54f0-4b54-8a8f-0b7e4f0c2a11"
	for _, command := range []string{"show", "cancel", "replay"} {
		_, _, errors = b.try(t, command, unknown)
		assert.Contains(t, errors, "rtm: "+command+" job "+unknown+": 404 ")
	}
	_, _, errors = b.try(t, "report", unknown, "succeeded")
	assert.Contains(t, errors, "rtm: report on job "+unknown+": 404 ")
}

// TestJobsAreListed has more jobs than a page.
func TestJobsAreListed(t *testing.T) {
	b := newJobBus(t)
	b.rtm(t, "type", "add", "ship", "--strategy", "at_least_once", "--attempts", "3", "--concurrency", "2", "--pull")
	_, err := b.jobs.EnqueueAll(t.Context(), "ship", make([]jobs.NewJob, 102))
	require.NoError(t, err)
	taken := b.take(t)
	list := b.rtm(t, "list", "--status", "in-progress")
	assert.True(t, strings.HasPrefix(list, taken.ID+"\tship\tin-progress\t3\t"), list)
	assert.Len(t, strings.Split(list, "\t"), 9)

	status, first, more := b.try(t, "list", "ship", "--limit", "101")
	require.Equal(t, app.ExitOK, status)
	assert.Equal(t, 101, strings.Count(first, "\n"))
	_, before, found := strings.Cut(strings.TrimSpace(more), "--before ")
	require.True(t, found, more)
	status, rest, more := b.try(t, "list", "ship", "--before", before)
	require.Equal(t, app.ExitOK, status)
	assert.Equal(t, 1, strings.Count(rest, "\n"))
	assert.NotContains(t, first, strings.Fields(rest)[0])
	assert.Empty(t, more)
	assert.Empty(t, b.rtm(t, "list", "--archived"))
	assert.Equal(t, "[]\n", b.rtm(t, "list", "--archived", "--json"))
}

// TestWrongJobsAreNotSent has commands that must fail without a request.
func TestWrongJobsAreNotSent(t *testing.T) {
	b := newCannedBus(t, nil)
	const id = "job_282227eb-3c76-4ef7-af7e-25dff933077f"
	for _, c := range []struct{ args, want string }{
		{"put Sh!p", `"Sh!p" is not the name of a job type: must be 1 to 255 characters`},
		{"put ship 17", `"17" is not a job's id`},
		{"put ship --data {", "--data must be a JSON value"},
		{"put ship --data @/nowhere", "--data: open /nowhere: no such file"},
		{"put ship --run-after tomorrow", "--run-after must be like 2027"},
		{"put ship --run-after 10", "--run-after must be like 2027-01-31T12:00:00Z, like 10s, for in 10 seconds, or in ms"},
		{"put ship --run-after 9007199254740991", "in a year from 2001 to 9999"},
		{"put ship --run-after 9999-12-31T23:00:00-02:00", "in a year from 2001 to 9999"},
		{"put meta.shutdown", `"meta.shutdown" is not the name of a job type: must be another name`},
		{"put ship --expires-at -1h", "--expires-at must be like 2027"},
		{"put ship --expires-at 0", "--expires-at must be like 2027"},
		{"put ship --expires-at 0s --run-after 0", "--expires-at must be like 2027"},
		{"show 282227eb-3c76-4ef7-af7e-25dff933077f", "is not a job's id, which is job_ and a UUID"},
		{"list --limit 0", "--limit must be 1 or more"},
		{"list --status failed", "jobs that are failed have ended; give --archived too"},
		{"list --archived --status queued", "--status must be succeeded or failed or expired or cancelled"},
		{"report " + id + " done", `"done" is not an outcome; give succeeded or failed`},
		{"report " + id + " succeeded --final", "--final must be left out"},
		{"report " + id + " failed --attempt 0", "--attempt must be 1 or more"},
		{"cancel", "got 0 arguments; usage: rtm job cancel ID [ID...]"},
		{"cancel " + id + " x", `"x" is not a job's id`},
		{"type add job_ship", `must not begin with "job_"`},
		{"type add ship", "--strategy is required: at_least_once"},
		{"type add ship --strategy at_most_once --attempts 2", "--attempts must be 1, since the strategy is at_most_once"},
		{"type add ship --strategy at_most_once --attempts 1", "--concurrency is required, and must be 1 to 32767: how many"},
		{"type set ship --attempts 0", "--attempts is required, and must be 1 to 32767"},
		{"type set ship --attempts 99999", "rtm: --attempts must be 1 to 32767: how often"},
		{"type set ship --concurrency -1", "rtm: --concurrency must be 1 to 32767: how many"},
		{"type set ship", "nothing to change"},
		{"type set ship --url http://ship.example", "--url must"},
		{"type set ship --pull --url https://ship.example", "--pull must be given without --url"},
		{"type set ship --timeout 500ms", "--timeout must be 1s to 24h"},
		{"type set ship --timeout 25h", "--timeout must be 1s to 24h"},
		{"type set ship --retention 8761h", "--retention must be 0s to 8760h"},
		{"type set ship --retention 1500ms", "--retention must be 0s to 8760h, in whole seconds"},
		{"type set ship --schedule daily", "--schedule: a schedule has five fields"},
		{"type set ship --timezone Nowhere", "--timezone: there is no time zone"},
		{"type set ship --schedule-data {", "--schedule-data must be a JSON value"},
	} {
		status, out, errors := b.rtm(t, append([]string{"job"}, strings.Fields(c.args)...)...)
		assert.Equal(t, app.ExitUsage, status, c.args)
		assert.Contains(t, errors, c.want, c.args)
		assert.Empty(t, out, c.args)
	}
	status, _, errors := b.rtm(t, "job", "put", "ship", "--data", `"`+strings.Repeat("x", 102_399)+`"`)
	assert.Equal(t, app.ExitUsage, status)
	assert.Contains(t, errors, "--data must be at most 102400 bytes; it has 102401")
	file := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(file, []byte("7"+strings.Repeat(" ", 1<<20)+"8"), 0o600))
	status, _, errors = b.rtm(t, "job", "put", "ship", "--data", "@"+file)
	assert.Equal(t, app.ExitUsage, status)
	assert.Contains(t, errors, "--data: at most 1048576 bytes are read, and there are more")
	assert.Empty(t, b.requests)
}

// TestARefusalNamesTheFlag has requests that only the bus can refuse.
func TestARefusalNamesTheFlag(t *testing.T) {
	b := newJobBus(t)
	b.rtm(t, "type", "add", "nightly", "--strategy", "at_most_once", "--attempts", "1", "--concurrency", "2", "--pull")
	on := []string{"-b", b.url, "-t", webtest.Alice}
	require.Equal(t, app.ExitOK, run(t.Context(), append([]string{"sub", "add", "https://uuid@x.example/", "widgets"}, on...), t.Output(), t.Output()))
	for args, want := range map[string]string{
		"job type set nightly --attempts 2":     "rtm: change job type nightly: 400 Bad Request: --attempts must be 1, since the strategy is at_most_once\n",
		"sub set --max-per-minute -1":           "400 Bad Request: --max-per-minute must be an integer from",
		"sub set --dead-letters attempts=0":     "400 Bad Request: --dead-letters: attempts must be",
		"sub secret add --type rsa":             "400 Bad Request: --type must be hmac-sha256 or ed25519",
		"token add x a*b -t " + webtest.RootKey: "400 Bad Request: /token: a token",
		"topic history widgets --age 1ms":       "400 Bad Request: --age must be",
	} {
		var stderr bytes.Buffer
		assert.Equal(t, app.ExitFailed, run(t.Context(), append(slices.Clone(on), strings.Fields(args)...), t.Output(), &stderr), args)
		assert.Contains(t, stderr.String(), want)
	}
}
