package jobs_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstest"
	"routemaster/internal/rdb/rdbtest"
)

// maxCommands is how many commands a script may run: a thousand short ones take Redis some 2 to 4
// ms. Only an array of 1,000 jobs takes longer, some 12 ms (BenchmarkEnqueueArray): the few others
// that it runs have 1,000 arguments each, and it cannot be cut, because it is all or none.
const maxCommands = 1200

// monitor follows the commands of a server, and returns a function that returns how many commands
// the longest script has run since the last call.
func monitor(t *testing.T, server *rdbtest.Server) (longest func() (commands int)) {
	t.Helper()
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	connection, err := net.Dial("tcp", address.Host)
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	_, err = fmt.Fprint(connection, "MONITOR\r\n")
	require.NoError(t, err)
	lines := bufio.NewReader(connection)
	_, err = lines.ReadString('\n')
	require.NoError(t, err)
	inScript := regexp.MustCompile(`^\+[0-9.]+ \[\d+ lua\]`)
	marks := 0
	return func() (most int) {
		t.Helper()
		marks++
		mark := fmt.Sprint("mark", marks)
		require.NoError(t, server.Raw.Echo(t.Context(), mark).Err())
		for commands := 0; ; {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			switch {
			case inScript.MatchString(line):
				commands++
			case strings.Contains(line, mark):
				return max(most, commands)
			default:
				most, commands = max(most, commands), 0
			}
		}
	}
}

// TestNoStepIsLong makes many types and jobs; no step may look at more than a part of them.
func TestNoStepIsLong(t *testing.T) {
	rdbtest.OneGoroutine(t)
	t.Parallel()
	server := rdbtest.Real(t)
	s, ctx := newShop(t, server), t.Context()
	const types = 300
	name := func(n int) jobs.TypeName { return jobs.TypeName(fmt.Sprint("t", n)) }
	for n := range types {
		s.Add(name(n), pulled, limit(3), func(c *jobs.Type) { c.Schedule, c.Owner = "* * * * *", "alice" })
		ids := s.putMany(name(n), 4)
		_, err := s.Cancel(ctx, name(n), ids[0], s.Now)
		require.NoError(t, err)
	}
	s.Add("many", pulled, limit(1000))
	s.putMany("many", 2500)
	_, _, err := s.Fetch(ctx, "many", 100, s.Now)
	require.NoError(t, err)

	longest := monitor(t, server)
	list := func(read func(context.Context, jobs.Filter) ([]jobs.Job, string, error), f jobs.Filter) func() error {
		f.Limit = 100
		return func() error { _, _, err := read(ctx, f); return err }
	}
	all, err := s.Types(ctx)
	require.NoError(t, err)
	longest()
	for _, step := range []struct {
		what string
		call func() error
	}{
		{"open", list(s.Open, jobs.Filter{})},
		{"queued", list(s.Open, jobs.Filter{Status: jobs.Queued})},
		{"in progress", list(s.Open, jobs.Filter{Status: jobs.InProgress})},
		{"of a type", list(s.Open, jobs.Filter{Type: "many"})},
		{"archived", list(s.Archived, jobs.Filter{})},
		{"types", func() error { _, err := s.Types(ctx); return err }},
		{"counts", func() error { _, err := s.Counts(ctx, all...); return err }},
		{"schedules", func() error { _, err := s.Schedules(ctx); return err }},
		{"drop", func() error { _, err := s.DropArchived(ctx, s.Now); return err }},
		{"fetch", func() error { _, _, err := s.Fetch(ctx, "many", 100, s.Now); return err }},
		{"array", func() error { s.putMany("many", 1000); return nil }},
		{"delete", func() error { return s.DeleteType(ctx, "many", true, s.Now, anybody) }},
		{"purge", func() error { _, err := s.Purge(ctx, s.Now.Add(2*time.Hour), always); return err }},
	} {
		require.NoError(t, step.call(), step.what)
		commands := longest()
		t.Logf("%s: %d commands", step.what, commands)
		assert.LessOrEqual(t, commands, maxCommands, step.what)
	}
}

// TestNoStepOfADeletionIsLong purges types that are being deleted and have both unended jobs and
// archived jobs past their retention: the purge handles both, in steps of a bounded length.
func TestNoStepOfADeletionIsLong(t *testing.T) {
	t.Parallel()
	server := rdbtest.Real(t)
	s, ctx := newShop(t, server), t.Context()
	s.Add("pulled", pulled, limit(1000))
	s.Add("sent", limit(1000), jobstest.AtMostOnce)
	for _, name := range []jobs.TypeName{"pulled", "sent"} {
		ids := s.putMany(name, 350)
		for _, id := range ids[:150] {
			_, err := s.Cancel(ctx, name, id, s.Now)
			require.NoError(t, err)
		}
		require.NoError(t, server.Raw.HSet(ctx, s.Keys.JobType(string(name)), "deleted", "1").Err())
	}
	longest := monitor(t, server)
	removed, err := s.Purge(ctx, s.Now.Add(2*time.Hour), always)
	require.NoError(t, err)
	assert.LessOrEqual(t, longest(), maxCommands)
	assert.Equal(t, 2*150, removed, "all that were archived before")
	assert.Zero(t, s.counts("pulled").Queued+s.counts("sent").Queued)
	removed, err = s.Purge(ctx, s.Now.Add(4*time.Hour), always)
	require.NoError(t, err)
	assert.Equal(t, 2*200, removed)
	names, err := s.TypeNames(ctx)
	require.NoError(t, err)
	assert.Empty(t, names, "nothing is left")
}

// TestAPageOfLargeJobsIsShort: so are replies to services that fetch them.
func TestAPageOfLargeJobsIsShort(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		s, ctx := newShop(t, server), t.Context()
		const bound = jobs.MaxPageBytes + 16*jobs.MaxData
		s.Add("ship", pulled, limit(1000))
		large := make([]byte, jobs.MaxData)
		var list, small []jobs.NewJob
		for range 60 {
			job := jobs.NewJob{ID: jobs.NewID(), Data: large}
			_, err := s.Enqueue(ctx, "ship", []jobs.NewJob{job}, "", s.Now)
			require.NoError(t, err)
			list, small = append(list, job), append(small, jobs.NewJob{ID: job.ID, Data: []byte("1")})
		}
		size := func(page []jobs.Job) (size int) {
			for _, job := range page {
				size += len(job.Data)
			}
			return size
		}
		seen := 0
		for f := (jobs.Filter{Limit: 100}); ; {
			page, next, err := s.Open(ctx, f)
			require.NoError(t, err)
			assert.Less(t, size(page), bound)
			seen += len(page)
			if f.Before = next; next == "" {
				break
			}
		}
		assert.Equal(t, 60, seen)

		again, err := s.Enqueue(ctx, "ship", list, "", s.Now)
		require.NoError(t, err, "the same array may be sent again")
		assert.Len(t, again, 60)
		_, err = s.Enqueue(ctx, "ship", append(small, jobs.NewJob{ID: jobs.NewID(), Data: []byte("1")}), "", s.Now)
		require.ErrorIs(t, err, jobs.ErrTooLarge)
		assert.EqualValues(t, 60, s.counts("ship").Queued, "none was added")

		fetched, _, err := s.Fetch(ctx, "ship", 100, s.Now)
		require.NoError(t, err)
		assert.Less(t, size(fetched), bound)
		assert.Len(t, fetched, 41)
	})
}

// TestWhatAJobCosts counts the commands of a job that succeeds: to enqueue, fetch and report it.
func TestWhatAJobCosts(t *testing.T) {
	t.Parallel()
	server := rdbtest.Real(t)
	s := newShop(t, server)
	s.Add("ship", pulled)
	do := func() {
		id := s.Put("ship")
		list, _, err := s.Fetch(t.Context(), "ship", 1, s.Now)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.NoError(t, s.report("ship", id, 3, jobs.Succeeded))
	}
	do() // so that all scripts are there
	before := commands(t, server)
	do()
	assert.Equal(t, 36, commands(t, server)-before)
}

var calls = regexp.MustCompile(`(?m)^cmdstat_(\w+)[^:]*:calls=(\d+)`)

// commands is how many commands scripts have run on a server.
func commands(t *testing.T, server *rdbtest.Server) (sum int) {
	t.Helper()
	stats, err := server.Raw.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	for _, found := range calls.FindAllStringSubmatch(stats, -1) {
		n, err := strconv.Atoi(found[2])
		require.NoError(t, err)
		if found[1] != "info" && found[1] != "evalsha" {
			sum += n
		}
	}
	return sum
}
