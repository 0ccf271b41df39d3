package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"routemaster/tools/bench/load"
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
	stderr  bytes.Buffer
	exited  chan struct{} // closed once it has exited, and stderr is complete
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
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !ready() {
		if err := p.Err(); err != nil {
			return nil, err
		}
		if err := load.Sleep(ctx, 2*time.Millisecond); err != nil {
			err = errors.Join(err, p.Stop())
			return nil, fmt.Errorf("%s is not ready in time: %w: %s", name, err, p.stderr.Bytes())
		}
	}
	return p, nil
}

// Err fails if the program has exited by itself.
func (p *Process) Err() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s has exited: %s", p.name, bytes.TrimSpace(p.stderr.Bytes()))
	default:
		return nil
	}
}

// Stop asks a program to stop, and waits until it has.
func (p *Process) Stop() error {
	err := p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopTimeout):
	}
	err = errors.Join(err, fmt.Errorf("%s does not stop", p.name), p.command.Process.Kill())
	<-p.exited
	return err
}
