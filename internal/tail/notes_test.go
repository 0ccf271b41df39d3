package tail

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func mustOpenNotes(t *testing.T) *notes {
	t.Helper()
	opened, err := openNotes()
	require.NoError(t, err)
	return opened
}

// TestANoteIsOneTails has many tails, each like a process of its own, that all want one note, and
// leave it or remove it.
func TestANoteIsOneTails(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var all sync.WaitGroup
	var mu sync.Mutex
	holders, turns, found := 0, 0, 0
	for i := range 8 {
		all.Go(func() {
			for turn := range 25 {
				own, left, err := mustOpenNotes(t).take(t.Context(), "shared", "a-bus")
				if err != nil {
					assert.ErrorIs(t, err, errTaken)
					continue
				}
				mu.Lock()
				holders++
				turns++
				found += len(left)
				assert.Equal(t, 1, holders)
				mu.Unlock()
				assert.NoError(t, own.write(record{Bus: "a-bus", UUID: strconv.Itoa(i)}))
				mu.Lock()
				holders--
				mu.Unlock()
				if turn%2 == 0 {
					assert.NoError(t, own.remove())
				} else {
					assert.NoError(t, own.keep())
				}
			}
		})
	}
	all.Wait()
	assert.Positive(t, turns)
	assert.Positive(t, found)
}

func TestNotesThatAreLeft(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	write := func(name string, content record, keep bool) *note {
		own, _, err := mustOpenNotes(t).take(t.Context(), name, "no-bus")
		require.NoError(t, err)
		require.NoError(t, own.write(content))
		if keep {
			require.NoError(t, own.keep())
		}
		return own
	}
	runs := write("runs", record{Bus: "a-bus", UUID: "1"}, false)
	write("left", record{Bus: "a-bus", UUID: "2", Token: "rtm-tail-x--1"}, true)
	write("another", record{Bus: "another-bus", UUID: "3"}, true)
	dir := filepath.Join(state, "routemaster", "tail")
	for name, text := range map[string]string{"empty": "", "half": `{"bus":"a-bus","uu`, "foreign": `{"bus":"a-bus"}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+noteSuffix), []byte(text), 0o600))
	}
	own, left, err := mustOpenNotes(t).take(t.Context(), "own", "a-bus")
	require.NoError(t, err)
	require.Len(t, left, 1)
	assert.Equal(t, record{Bus: "a-bus", UUID: "2", Token: "rtm-tail-x--1", PID: os.Getpid()}, left[0].record)
	assert.True(t, own.notes.has("rtm-tail-x--1"))
	assert.False(t, own.notes.has("rtm-tail-y--1"))
	require.NoError(t, left[0].remove())
	require.NoError(t, own.remove())
	require.NoError(t, runs.keep())
	var names []string
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	assert.Equal(t, []string{"another.json", "door", "runs.json"}, names)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestNotesWithoutAPlace(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "relative") // which does not count
	t.Setenv("HOME", "")
	_, err := openNotes()
	assert.ErrorContains(t, err, "set XDG_STATE_HOME to a directory")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	t.Setenv("XDG_STATE_HOME", file)
	_, err = openNotes()
	assert.ErrorContains(t, err, "XDG_STATE_HOME names another directory")
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", home)
	assert.Equal(t, filepath.Join(home, ".local", "state", "routemaster", "tail"), mustOpenNotes(t).dir)
}

func TestClock(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	p := &printer{now: func() time.Time { return time.Date(2026, 3, 1, 0, 30, 0, 0, zone) }}
	for want, at := range map[string]time.Time{
		"00:10:05.007":            time.Date(2026, 2, 28, 22, 10, 5, 7e6, time.UTC),
		"2026-02-28 23:59:59.000": time.Date(2026, 2, 28, 21, 59, 59, 0, time.UTC),
		"00:30:00.000":            {},
	} {
		assert.Equal(t, want, p.clock(at))
	}
}
