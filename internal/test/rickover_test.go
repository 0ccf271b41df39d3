package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// rickoverTables are the tables of rickover that a move reads, with the columns and types of its
// page, and the additions of its migrations.
const rickoverTables = `
CREATE TYPE delivery_strategy AS ENUM ('at_most_once', 'at_least_once');
CREATE TYPE job_status AS ENUM ('queued', 'in-progress');
CREATE TABLE jobs (
  name text PRIMARY KEY, delivery_strategy delivery_strategy NOT NULL,
  attempts smallint NOT NULL CHECK (attempts > 0), concurrency smallint NOT NULL CHECK (concurrency >= 0),
  created_at timestamptz NOT NULL DEFAULT now(), auto_id bigserial);
CREATE TABLE queued_jobs (
  id uuid PRIMARY KEY, name text NOT NULL REFERENCES jobs(name), attempts smallint NOT NULL CHECK (attempts >= 0),
  run_after timestamptz NOT NULL, expires_at timestamptz, created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(), status job_status NOT NULL, data jsonb NOT NULL, auto_id bigserial);
INSERT INTO jobs (name, delivery_strategy, attempts, concurrency) VALUES
  ('Ship:Daily', 'at_least_once', 3, 5), ('pay', 'at_most_once', 1, 0), ('idle', 'at_least_once', 7, 1);
INSERT INTO queued_jobs (id, name, attempts, run_after, expires_at, status, data)
  SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'Ship:Daily', 2, now() - interval '1 minute', NULL,
    'queued', jsonb_build_object('n', n) FROM generate_series(1, 1500) n;
INSERT INTO queued_jobs (id, name, attempts, run_after, expires_at, status, data)
  SELECT ('00000000-0000-4000-9000-' || lpad(n::text, 12, '0'))::uuid, 'Ship:Daily', 1, now() + interval '1 hour',
    '2099-01-31 18:00:00.123456+05:30', 'queued', to_jsonb(repeat('x', 102000)) FROM generate_series(1, 45) n;
INSERT INTO queued_jobs (id, name, attempts, run_after, status, data) VALUES
  ('00000000-0000-4000-a000-000000000001', 'Ship:Daily', 3, now(), 'in-progress', '{"a|b": "c\\d\n", "n": 1.50}'),
  ('00000000-0000-4000-a000-000000000002', 'pay', 1, now(), 'in-progress', '1'),
  ('00000000-0000-4000-a000-000000000003', 'pay', 1, now(), 'queued', 'null');
INSERT INTO queued_jobs (id, name, attempts, run_after, expires_at, status, data) VALUES
  ('00000000-0000-4000-b000-000000000001', 'Ship:Daily', 3, now(), now() - interval '1 day', 'queued', '1'),
  ('00000000-0000-4000-b000-000000000002', 'Ship:Daily', 3, now(), now() - interval '10 s', 'in-progress', '1'),
  ('00000000-0000-4000-b000-000000000003', 'Ship:Daily', 3, now() + interval '2 h', now() + interval '1 h', 'queued', '1'),
  ('00000000-0000-4000-b000-000000000004', 'Ship:Daily', 3, now() + interval '2 h', NULL, 'queued',
    to_jsonb(array_fill(1, ARRAY[51000])));`

// TestAQueueMovesFromRickover pastes the blocks of the page, with rickover's tables in PostgreSQL.
func TestAQueueMovesFromRickover(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/migrating-from-rickover.md")
	require.NoError(t, err)
	blocks := walkBlock.FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 3)
	database := startPostgres(t)
	runTool(t, nil, "psql", database, "-qv", "ON_ERROR_STOP=1", "-c", rickoverTables)

	service, sent := bustest.NewJobService(t)
	b := bustest.Start(t, rdbtest.Embedded(t), func(c *app.Config) { c.DownstreamURL, c.DownstreamAuth = service, "s3cret" })
	shop := b.AddClient("shop")
	head, rest, found := strings.Cut(blocks[0][1], "\n")
	require.True(t, found)
	require.Regexp(t, `^BUS=\S+ TOKEN=\S+ DATABASE_URL=\S+ DEQUEUERS=2$`, head)
	variables := []string{"BUS=" + b.API, "TOKEN=" + shop, "DATABASE_URL=" + database, "DEQUEUERS=2"}
	runTool(t, variables, "bash", "-euc", rest)
	for range 3 { // the second time changes nothing, nor does one after a stop
		runTool(t, variables, "bash", "-euc", blocks[1][1])
		runTool(t, nil, "psql", database, "-qc", "DELETE FROM moved_jobs WHERE id IN (SELECT id FROM moved_jobs ORDER BY id LIMIT 700)")
		assert.Contains(t, b.Call(shop, "GET", "/v2/job-types/Ship:Daily", "", 200),
			`"attempts":3,"concurrency":10,"url":"","timeout":300000,"retention":604800,"paused":true`)
		assert.Contains(t, b.Call(shop, "GET", "/v2/job-types/Ship:Daily", "", 200), `"counts":{"queued":1547,`)
		assert.Contains(t, b.Call(shop, "GET", "/v2/job-types/pay", "", 200), `"counts":{"queued":1,`)
	}
	const path = "/v1/jobs/Ship:Daily/job_00000000-0000-4000-"
	assert.Contains(t, b.Call(shop, "GET", path+"9000-000000000045", "", 200), `"expires_at":"2099-01-31T12:30:00.123456Z"`)
	assert.Contains(t, b.Call(shop, "GET", path+"a000-000000000001", "", 200), `"data":{"n":1.50,"a|b":"c\\d\n"}`)
	assert.Contains(t, b.Call(shop, "GET", path+"b000-000000000004", "", 200), `"data":[1,1,1,`)
	for n := 1; n <= 3; n++ {
		b.Call(shop, "GET", fmt.Sprintf("%sb000-%012d", path, n), "", 404)
	}
	b.Call(shop, "GET", "/v1/jobs/pay/job_00000000-0000-4000-a000-000000000002", "", 404)
	runTool(t, variables, "bash", "-euc", blocks[1][1])
	runTool(t, variables, "bash", "-euc", blocks[2][1])
	first := map[string]string{}
	for range 11 { // ten of the first type, and one of the other: these are in progress
		job := <-sent
		first[job[0]] = job[1]
	}
	for n := 1; n <= 10; n++ {
		assert.Contains(t, first[fmt.Sprintf("%s8000-%012d", path, n)], fmt.Sprintf(`{"data":{"n": %d},"attempts":3,`, n))
	}
	const paid = "/v1/jobs/pay/job_00000000-0000-4000-a000-000000000003"
	assert.Contains(t, first[paid], `{"data":null,"attempts":1,`)

	// Moving the same jobs again changes nothing, even after they have ended.
	b.Call(shop, "POST", paid, `{"status":"succeeded","attempt":1}`, 200)
	runTool(t, variables, "bash", "-euc", blocks[1][1])
	assert.Contains(t, b.Call(shop, "GET", paid, "", 200), `"status":"succeeded"`)
}

// runTool runs a command with more variables, and returns its output.
func runTool(t *testing.T, variables []string, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Env = append(append(os.Environ(), "no_proxy=*"), variables...)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return string(output)
}

// startPostgres starts a PostgreSQL with an empty database, and returns its URL. It ends with the
// test, which is skipped where there is none.
func startPostgres(t *testing.T) (url string) {
	t.Helper()
	programs := postgresPrograms(t)
	dir, err := os.MkdirTemp("", "pg") // its socket's path must be short
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	as := notRoot(t, dir)
	run := func(ctx context.Context, name string, args ...string) *exec.Cmd {
		command := exec.CommandContext(ctx, filepath.Join(programs, name), args...)
		command.Dir, command.SysProcAttr, command.Env = dir, as, append(os.Environ(), "LC_ALL=C", "HOME="+dir)
		return command
	}
	data := filepath.Join(dir, "data")
	output, err := run(t.Context(), "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync").CombinedOutput()
	require.NoError(t, err, "%s", output)
	server := run(context.WithoutCancel(t.Context()), "postgres", "-D", data, "-F", "-k", dir, "-c", "listen_addresses=")
	var log strings.Builder
	server.Stdout, server.Stderr = &log, &log
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		assert.NoError(t, server.Process.Signal(os.Interrupt)) // a fast shutdown
		assert.NoError(t, server.Wait())
		if t.Failed() {
			t.Log(log.String())
		}
	})
	url = "postgresql:///postgres?user=postgres&host=" + dir
	require.Eventually(t, func() bool {
		return exec.CommandContext(t.Context(), "psql", url, "-c", "SELECT 1").Run() == nil
	}, bustest.WaitTimeout, 20*time.Millisecond)
	return url
}

// postgresPrograms is the directory of PostgreSQL's programs: Debian has only the client's in PATH.
func postgresPrograms(t *testing.T) string {
	t.Helper()
	for _, command := range []string{"bash", "curl", "psql"} {
		rdbtest.NeedCommand(t, command)
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	require.NoError(t, err)
	if len(found) == 0 {
		found = append(found, rdbtest.NeedCommand(t, "initdb"))
	}
	return filepath.Dir(found[0])
}

// notRoot returns the attributes for running PostgreSQL, which refuses to run as root: as root,
// they name the user that its package makes, to which notRoot gives dir.
func notRoot(t *testing.T, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	account, err := user.Lookup("postgres")
	require.NoError(t, err)
	uid, err := strconv.Atoi(account.Uid)
	require.NoError(t, err)
	gid, err := strconv.Atoi(account.Gid)
	require.NoError(t, err)
	require.NoError(t, os.Chown(dir, uid, gid))
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
