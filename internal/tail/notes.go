package tail

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

// notes is a directory in which every tail notes what it creates on the bus, so that a later one
// can remove it if the tail is killed. A tail holds the lock of its note for as long as it runs: a
// note whose lock is free was left.
type notes struct {
	dir string
	// door is locked while notes are opened or removed, so that nobody locks a file that is removed.
	door *flock.Flock
}

// note is a note whose lock this process holds.
type note struct {
	notes *notes
	lock  *flock.Flock
	record
}

// record is the content of a note. It is empty while nothing has been created.
type record struct {
	// Bus is the bus's URL.
	Bus string `json:"bus"`
	// UUID is that of the subscription that the tail created, and of no other.
	UUID string `json:"uuid"`
	// Token is that of the client that the tail created for itself. It is empty if the tail used a
	// token of the user, which must not be stored.
	Token string `json:"token,omitempty"`
	// PID is for the reader.
	PID int `json:"pid"`
}

// errTaken says that a note belongs to another tail, which is running.
var errTaken = errors.New("another tail holds the lock of this note")

// StateDir creates the directory for what rtm keeps from run to run, for the user only: in
// $XDG_STATE_HOME or its default in the home directory.
func StateDir() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // a relative one is ignored: XDG Base Directory Specification
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%w; set XDG_STATE_HOME to a directory", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	dir := filepath.Join(state, "routemaster")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("%w; XDG_STATE_HOME names another directory", err)
	}
	return dir, nil
}

// openNotes creates the directory of the notes.
func openNotes() (*notes, error) {
	dir, err := StateDir()
	if err == nil {
		dir = filepath.Join(dir, "tail")
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("no place to note what to clean up: %w", err)
	}
	return &notes{dir: dir, door: flock.New(filepath.Join(dir, "door"))}, nil
}

const noteSuffix = ".json"

// noteName names the note of a tail that uses the token of a client. Only one such tail can run at
// a time, since a client has one subscription. The name does not reveal the token.
func noteName(bus, token string) string {
	sum := sha256.Sum256([]byte(bus + "\n" + token))
	return hex.EncodeToString(sum[:16])
}

// take creates a note with a name and locks it, or fails with [errTaken]. It also locks all notes
// for the same bus that tails have left: the one of that name first, if it was left. All of them
// must be kept or removed.
func (n *notes) take(ctx context.Context, name, bus string) (own *note, left []*note, err error) {
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
		old, err := n.open(path)
		switch {
		case err != nil: // its tail is running, or it belongs to another user
		case old.UUID == "": // its tail was killed before it created anything
			_ = old.erase()
		case old.Bus != bus:
			_ = old.keep()
		default:
			left = append(left, old)
		}
	}
	return own, left, nil
}

// has reports whether any note has a token, including those of running tails.
func (n *notes) has(token string) bool {
	paths, _ := filepath.Glob(filepath.Join(n.dir, "*"+noteSuffix))
	return slices.ContainsFunc(paths, func(path string) bool {
		text, err := os.ReadFile(path)
		var content record
		return err == nil && json.Unmarshal(text, &content) == nil && content.Token == token
	})
}

// open locks and reads a note, which is empty if there was none.
func (n *notes) open(path string) (*note, error) {
	lock := flock.New(path)
	locked, err := lock.TryLock()
	if err != nil {
		return nil, err
	}
	if !locked {
		return nil, errTaken
	}
	opened := &note{notes: n, lock: lock}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if json.Unmarshal(text, &opened.record) != nil { // it was written in part
		opened.record = record{}
	}
	return opened, nil
}

// write stores what is about to be created.
func (n *note) write(content record) error {
	content.PID = os.Getpid()
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	n.record = content
	return os.WriteFile(n.lock.Path(), text, 0o600)
}

// keep unlocks a note, and leaves it to a later tail.
func (n *note) keep() error { return n.lock.Close() }

// remove removes a note: nothing is left to clean up.
func (n *note) remove() error {
	if err := n.notes.door.Lock(); err != nil {
		return errors.Join(err, n.keep())
	}
	defer n.notes.door.Close()
	return n.erase()
}

// erase removes a note while the door is locked.
func (n *note) erase() error { return errors.Join(os.Remove(n.lock.Path()), n.keep()) }

// busName is the URL of a bus as notes have it.
func busName(url string) string { return strings.TrimRight(url, "/") }
