package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"routemaster/internal/bench/load"
)

// How long a process may take to be ready, and to stop.
const (
	startTimeout = 20 * time.Second
	stopTimeout  = 40 * time.Second
)

// Process is a running program.
type Process struct {
	name    string
	command *exec.Cmd
	stderr  tail
	exited  chan struct{}
}

// maxStderr is how much of a program's standard error is kept, in bytes.
const maxStderr = 4 << 10

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-maxStderr):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}

// Start starts a program, and waits until it is ready. It must be stopped.
func Start(ctx context.Context, name string, command *exec.Cmd, ready func() bool) (*Process, error) {
	p := &Process{name: name, command: command, exited: make(chan struct{})}
	command.Stderr = &p.stderr
	dieWithParent(command)
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() { // it ends with the program; Stop waits for it
		_ = command.Wait()
		close(p.exited)
	}()
	if err := p.await(ctx, ready); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (p *Process) await(ctx context.Context, ready func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !ready() {
		if err := p.Err(); err != nil {
			return err
		}
		if load.Sleep(ctx, 2*time.Millisecond) != nil {
			return p.failed("is not ready in time")
		}
	}
	return nil
}

// Err fails if the program has exited by itself.
func (p *Process) Err() error {
	select {
	case <-p.exited:
		return p.failed("has exited")
	default:
		return nil
	}
}

func (p *Process) failed(how string) error {
	return fmt.Errorf("%s %s: %s", p.name, how, &p.stderr)
}

// Stop asks a program to stop, and waits until it has.
func (p *Process) Stop() error {
	err := p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopTimeout):
	}
	err = errors.Join(err, p.command.Process.Kill(), p.failed("does not stop"))
	<-p.exited
	return err
}
