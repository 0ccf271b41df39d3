package test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// operator runs the commands of a page, each block in the same directory.
type operator struct {
	t         *testing.T
	home      string
	blocks    map[string]string
	variables []string
}

// runBlock is a code block with a name, perhaps within a list.
var runBlock = regexp.MustCompile("(?s)<!-- run: ([a-z-]+) -->\n *```sh\n(.*?)```")

// newOperator reads the page on operating, and finds commands in a directory too.
func newOperator(t *testing.T, bin string, variables ...string) *operator {
	t.Helper()
	page, err := os.ReadFile("../../docs/operating.md")
	require.NoError(t, err)
	o := &operator{t: t, home: t.TempDir(), blocks: map[string]string{}}
	for _, block := range runBlock.FindAllStringSubmatch(string(page), -1) {
		o.blocks[block[1]] = block[2]
	}
	tools := t.TempDir()
	for _, tool := range []string{"server", "cli", "check-rdb", "check-aof"} {
		path := rdbtest.NeedCommand(t, strings.Replace(rdbtest.Engine(), "server", tool, 1))
		require.NoError(t, os.Symlink(path, filepath.Join(tools, "redis-"+tool)))
	}
	o.variables = append(append(os.Environ(), "PATH="+tools+":"+bin+":"+os.Getenv("PATH")), variables...)
	return o
}

// run runs a block as if an operator pasted it into a shell, and returns its output. The output
// goes to a file: a Redis that is left running would hold a pipe open.
func (o *operator) run(name string, variables ...string) (output string, err error) {
	o.t.Helper()
	require.Contains(o.t, o.blocks, name)
	ctx, cancel := context.WithTimeout(o.t.Context(), bustest.WaitTimeout)
	defer cancel()
	file, err := os.CreateTemp(o.home, "output")
	require.NoError(o.t, err)
	defer file.Close()
	shell := exec.CommandContext(ctx, "sh", "-c", o.blocks[name])
	shell.Dir, shell.Stdout, shell.Stderr = o.home, file, file
	shell.Env = append(o.variables, variables...)
	err = shell.Run()
	text, _ := os.ReadFile(file.Name())
	return string(text), err
}

func (o *operator) mustRun(name string, variables ...string) {
	o.t.Helper()
	output, err := o.run(name, variables...)
	require.NoError(o.t, err, "%s: %s", name, output)
}

// endRestoringServer ends the Redis of a restore that failed.
func endRestoringServer(t *testing.T, directory string) {
	t.Cleanup(func() {
		_ = exec.Command("redis-cli", "-s", filepath.Join(directory, "restore.sock"), "shutdown", "nosave").Run() // mostly it has ended
	})
}

// TestBackups runs the commands of docs/operating.md on a bus whose Redis appends to a file.
func TestBackups(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	buildProgram(t, filepath.Join(bin, "rtm"), "../../cmd/rtm")
	for backup, restore := range map[string]string{"rdb": "restore", "bgsave": "restore", "aof": "restore-aof"} {
		t.Run(backup, func(t *testing.T) {
			t.Parallel()
			restoreABackup(t, bin, backup, restore)
		})
	}
}

func restoreABackup(t *testing.T, bin, backup, restore string) {
	redis := rdbtest.Real(t, "--appendonly", "yes", "--repl-diskless-sync-delay", "0")
	directory := redis.Raw.ConfigGet(t.Context(), "dir").Val()["dir"]
	endRestoringServer(t, directory)
	url, _, _ := strings.Cut(redis.URL, "?")
	o := newOperator(t, bin, "ROUTEMASTER_REDIS_URL="+url+"/0", "REDIS_DIR="+directory)
	b := bustest.Start(t, redis)
	publisher, removed := b.AddClient("publisher"), b.AddClient("removed")
	s := bustest.NewSubscriber(t, b.AddClient("shop"))
	s.Subscribe(b, 0, 1, "widgets")
	b.StopWorker()
	b.Publish(publisher, "widgets", 1)
	partition := redis.Open(t).Partition("")
	remembers := newIdentity(t, partition, b)

	o.mustRun(backup)
	o.requireBackupAgain(backup)
	b.StartWorker()
	s.WaitFor(t, 1)
	b.Publish(publisher, "widgets", 2)
	s.WaitFor(t, 2)
	late := b.AddClient("late")
	b.Call(bustest.RootKey, "DELETE", "/api_tokens/"+removed, "", http.StatusNoContent)
	require.NoError(t, remembers.Notice(t.Context()))
	b.StopWeb()
	b.StopWorker()

	redis.Kill(t)
	if restore == "restore" {
		requireStartsEmpty(t, redis, directory, o.home)
	}
	o.requireStops(restore, directory)
	require.NoError(t, os.WriteFile(filepath.Join(directory, "appendonly.aof"), nil, 0o600)) // of Redis 6.2
	o.mustRun(restore)
	o.mustRun(restore) // a careful operator runs it twice
	for name, times := range map[string]int{"appendonly.aof": 1, "appendonlydir": 2} {
		away, err := filepath.Glob(filepath.Join(directory, "lost-*", name))
		require.NoError(t, err)
		assert.Len(t, away, times, "%s is put away each time that it is there", name)
	}
	redis.Restart(t)
	o.mustRun("doctor")
	requireAlarm(t, o, remembers)

	b.StartWeb()
	b.StartWorker()
	s.WaitFor(t, 3)
	assert.Equal(t, []int{1, 2, 1}, s.Numbers(), "what was queued comes again, and what came later is gone")
	b.Call(late, "GET", "/topics", "", http.StatusUnauthorized)
	b.Call(removed, "GET", "/topics", "", http.StatusOK)
	b.StopWeb()
	b.StopWorker()
	output, err := o.run("doctor")
	assert.NoError(t, err, output)
}

// requireBackupAgain requires that a second backup takes the place of the first one, or that it
// says that one is there and leaves it.
func (o *operator) requireBackupAgain(backup string) {
	o.t.Helper()
	if backup != "aof" {
		o.mustRun(backup)
		return
	}
	output, err := o.run(backup)
	require.Error(o.t, err)
	assert.Contains(o.t, output, "backup-aof")
	assert.NoDirExists(o.t, filepath.Join(o.home, "backup-aof", "appendonlydir"))
}

// requireStops requires that a restore without a backup fails and leaves Redis's data.
func (o *operator) requireStops(restore, directory string) {
	o.t.Helper()
	names := func() (names []string) {
		entries, err := os.ReadDir(directory)
		require.NoError(o.t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	home, before := o.home, names()
	o.home = o.t.TempDir()
	output, err := o.run(restore)
	o.home = home
	require.Error(o.t, err, output)
	assert.Equal(o.t, before, names())
}

// newIdentity is the memory of a process that runs on while Redis is restored.
func newIdentity(t *testing.T, p *rdb.Partition, b *bustest.Bus) *rdb.Identity {
	t.Helper()
	var o rdb.Options
	b.Logged.LogTo(&o)
	i := rdb.NewIdentity(p, o.Log, time.Now)
	require.NoError(t, i.Notice(t.Context()))
	return i
}

// requireStartsEmpty puts the snapshot in place as the page warns not to.
func requireStartsEmpty(t *testing.T, redis *rdbtest.Server, directory, home string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(filepath.Join(directory, "appendonlydir")))
	snapshot, err := os.ReadFile(filepath.Join(home, "backup.rdb"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(directory, "dump.rdb"), snapshot, 0o600))
	redis.Restart(t)
	keys, err := redis.Raw.DBSize(t.Context()).Result()
	require.NoError(t, err)
	require.Zero(t, keys)
	redis.Kill(t)
}

// requireAlarm has a process notice that Redis is older, and acknowledges that.
func requireAlarm(t *testing.T, o *operator, remembers *rdb.Identity) {
	t.Helper()
	require.NoError(t, remembers.Notice(t.Context()))
	assert.True(t, remembers.IsLost())
	output, err := o.run("doctor")
	assert.Error(t, err, "an alarm is an exit status of 1")
	assert.Contains(t, output, "older data")
	o.mustRun("accept")
	require.NoError(t, remembers.Notice(t.Context()))
	assert.False(t, remembers.IsLost())
}

// TestABackupOfACluster restores each master by itself, and requires the data of each partition.
func TestABackupOfACluster(t *testing.T) {
	t.Parallel()
	const masters, partitions = 2, 4
	cluster := rdbtest.NewCluster(t, masters, time.Second, func(o *rdbtest.ClusterOptions) {
		o.Replicas, o.Arguments = 0, []string{"--appendonly", "yes"}
	})
	o := newOperator(t, t.TempDir(), "NODE="+cluster.Nodes[0].Address)
	parts := cluster.Open(t).Partitions("", partitions)
	set := func(name string) {
		for _, p := range parts {
			require.NoError(t, p.Set(t.Context(), p.Namespace()+name, name, 0).Err())
		}
	}
	set("kept")
	o.mustRun("cluster")
	set("later")
	_, err := o.run("cluster")
	require.Error(t, err, "a backup is there")
	directories := map[*rdbtest.Node]string{}
	for _, node := range cluster.Nodes {
		directories[node] = node.Raw.ConfigGet(t.Context(), "dir").Val()["dir"]
		endRestoringServer(t, directories[node])
	}
	for _, node := range cluster.Nodes {
		node.Kill(t)
	}
	for node, directory := range directories {
		files, err := filepath.Glob(filepath.Join(o.home, "backup-cluster", "*-"+strings.ReplaceAll(node.Address, ":", "-")+"-*.rdb"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		require.NoError(t, os.Rename(files[0], filepath.Join(o.home, "backup.rdb")))
		o.mustRun("restore", "REDIS_DIR="+directory)
		node.Restart(t)
	}
	for _, p := range parts {
		require.Eventually(t, func() bool { return p.Get(t.Context(), p.Namespace()+"kept").Val() == "kept" }, bustest.WaitTimeout, time.Millisecond)
		later, err := p.Exists(t.Context(), p.Namespace()+"later").Result()
		require.NoError(t, err)
		assert.Zero(t, later)
	}
}
