package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// tailNotes is a directory in which every tail notes what it leaves on the bus if it is killed, so that a later one
// can remove it. A tail holds the lock of its note for as long as it lives: a note whose lock is free is a leftover.
type tailNotes struct {
	dir string
	// door is held by whoever opens or removes notes, so that nobody gets the lock of a file that is removed.
	door *flock.Flock
}

// tailNote is a note whose lock this process holds.
type tailNote struct {
	notes *tailNotes
	lock  *flock.Flock
	tailRecord
}

// tailRecord is what a note says. It is empty while nothing has been made.
type tailRecord struct {
	// Bus is the bus's URL.
	Bus string `json:"bus"`
	// UUID is in the subscription that the tail made, and in no other.
	UUID string `json:"uuid"`
	// Token is that of the client that the tail made for itself. It is empty if the tail used a client's token, which is
	// not the tail's to keep.
	Token string `json:"token,omitempty"`
	// PID is for the reader.
	PID int `json:"pid"`
}

// errTailRuns says that a note is another tail's that runs.
var errTailRuns = errors.New("another tail holds this note")

// openTailNotes finds the directory: $XDG_STATE_HOME/routemaster, or the like in the home directory.
func openTailNotes() (*tailNotes, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // as the XDG Base Directory Specification wants it
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("no place to note what to clean up: %w; set XDG_STATE_HOME to a directory", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	dir := filepath.Join(state, "routemaster", "tail")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("no place to note what to clean up: %w; XDG_STATE_HOME names another directory", err)
	}
	return &tailNotes{dir: dir, door: flock.New(filepath.Join(dir, "door"))}, nil
}

const noteSuffix = ".json"

// noteName names the note of a tail that uses a client's token: one such tail at a time can run, for a client has one
// subscription. It does not tell the token.
func noteName(bus, token string) string {
	sum := sha256.Sum256([]byte(bus + "\n" + token))
	return hex.EncodeToString(sum[:16])
}

// take makes a note with a name and locks it, or fails with [errTailRuns]. It also takes all notes of the same bus that
// tails have left: the one of that name first, if it was left. They must be kept or removed.
func (n *tailNotes) take(ctx context.Context, name, bus string) (own *tailNote, left []*tailNote, err error) {
	if _, err := n.door.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return nil, nil, err
	}
	defer n.door.Close()
	if own, err = n.open(filepath.Join(n.dir, name+noteSuffix)); err != nil {
		return nil, nil, err
	}
	paths, err := filepath.Glob(filepath.Join(n.dir, "*"+noteSuffix))
	if err != nil {
		return nil, nil, errors.Join(err, own.keep())
	}
	if own.UUID != "" {
		left = append(left, own)
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return path == own.lock.Path() })
	for _, path := range paths {
		note, err := n.open(path)
		switch {
		case err != nil: // it is a running tail's, or not for us to read
		case note.UUID == "": // its tail died before it made anything
			_ = note.erase()
		case note.Bus != bus:
			_ = note.keep()
		default:
			left = append(left, note)
		}
	}
	return own, left, nil
}

// has reports whether a note has a token, also one whose tail runs.
func (n *tailNotes) has(token string) bool {
	paths, _ := filepath.Glob(filepath.Join(n.dir, "*"+noteSuffix))
	return slices.ContainsFunc(paths, func(path string) bool {
		text, err := os.ReadFile(path)
		var record tailRecord
		return err == nil && json.Unmarshal(text, &record) == nil && record.Token == token
	})
}

// open locks and reads a note, which is empty if there was none.
func (n *tailNotes) open(path string) (*tailNote, error) {
	lock := flock.New(path)
	locked, err := lock.TryLock()
	if err != nil {
		return nil, err
	}
	if !locked {
		return nil, errTailRuns
	}
	note := &tailNote{notes: n, lock: lock}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if json.Unmarshal(text, &note.tailRecord) != nil { // written in part: see write
		note.tailRecord = tailRecord{}
	}
	return note, nil
}

// write notes what is about to be made.
func (n *tailNote) write(record tailRecord) error {
	record.PID = os.Getpid()
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	n.tailRecord = record
	return os.WriteFile(n.lock.Path(), text, 0o600)
}

// keep leaves a note for a later tail.
func (n *tailNote) keep() error { return n.lock.Close() }

// remove says that nothing is left to clean up.
func (n *tailNote) remove() error {
	if err := n.notes.door.Lock(); err != nil {
		return errors.Join(err, n.keep())
	}
	defer n.notes.door.Close()
	return n.erase()
}

// erase removes a note while the door is held.
func (n *tailNote) erase() error { return errors.Join(os.Remove(n.lock.Path()), n.keep()) }

// busName is a bus's URL as notes have it.
func busName(url string) string { return strings.TrimRight(url, "/") }
