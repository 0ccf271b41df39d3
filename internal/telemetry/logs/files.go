package logs

import (
	"errors"
	"log/slog"
	"sync"
	"syscall"
	"time"
)

// filesWarningInterval is the shortest time between two warnings.
const filesWarningInterval = 10 * time.Second

// FileWarner warns in the log that the process or its host is out of file descriptors: at most
// once in 10 s, with how often that happened. It is safe for concurrent use.
type FileWarner struct {
	log *slog.Logger

	mu    sync.Mutex
	next  time.Time // for the next warning
	times int       // since the last warning
}

// NewFileWarner makes a FileWarner that logs to log.
func NewFileWarner(log *slog.Logger) *FileWarner { return &FileWarner{log: log} }

// Check reports whether err is that no file descriptor is left, and if so warns. Doing says what
// needed one.
func (w *FileWarner) Check(err error, doing string) bool {
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times++
	if now := time.Now(); !now.Before(w.next) {
		w.log.Warn("out of file descriptors; raise the limit of open files", "doing", doing, "times", w.times, "error", err)
		w.next, w.times = now.Add(filesWarningInterval), 0
	}
	return true
}
