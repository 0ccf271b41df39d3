package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// The programs.
const (
	Redis    = "redis"
	Web      = "web"
	Worker   = "worker"
	Receiver = "receiver"
	Noop     = "noop"
)

// How long a process may take to be ready, and to stop.
const (
	startWithin = 20 * time.Second
	stopWithin  = 40 * time.Second
)

// process is a running program.
type process struct {
	name    string
	command *exec.Cmd
	output  output
	exited  chan struct{}
}

// output keeps the first line that a program prints, and the end of what it complains about.
type output struct {
	mu         sync.Mutex
	first      []byte
	whole      bool
	complaints []byte
}

// Write takes in standard output.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.whole {
		line, _, found := bytes.Cut(p, []byte("\n"))
		o.first, o.whole = append(o.first, line...), found
	}
	return len(p), nil
}

func (o *output) firstLine() (line []byte, whole bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first, o.whole
}

// maxComplaints is how much is kept, in bytes.
const maxComplaints = 4 << 10

// complain is the end of standard error.
type complain struct{ *output }

func (c complain) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.complaints = append(c.complaints, p...)
	c.complaints = c.complaints[max(0, len(c.complaints)-maxComplaints):]
	return len(p), nil
}

// start starts a program. It ends with this process, or by stop.
func start(name string, command *exec.Cmd) (*process, error) {
	p := &process{name: name, command: command, exited: make(chan struct{})}
	command.Stdout, command.Stderr = &p.output, complain{&p.output}
	dieWithParent(command)
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() { // it ends with the program; stop waits for it
		_ = command.Wait()
		close(p.exited)
	}()
	return p, nil
}

// died says that a program has ended by itself.
func (p *process) died() error {
	select {
	case <-p.exited:
		return p.failed("has ended")
	default:
		return nil
	}
}

// ready waits until a program is ready.
func (p *process) ready(ctx context.Context, is func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for !is() {
		if err := p.died(); err != nil {
			return err
		}
		if sleep(ctx, 2*time.Millisecond) != nil {
			return p.failed("does not get ready")
		}
	}
	return nil
}

// listening waits until a helper has said where it listens.
func (p *process) listening(ctx context.Context) (a addresses, err error) {
	err = p.ready(ctx, func() bool { _, whole := p.output.firstLine(); return whole })
	if err != nil {
		return a, err
	}
	line, _ := p.output.firstLine()
	return a, json.Unmarshal(line, &a)
}

func (p *process) failed(how string) error {
	p.output.mu.Lock()
	defer p.output.mu.Unlock()
	return fmt.Errorf("%s %s: %s", p.name, how, bytes.TrimSpace(p.output.complaints))
}

// stop asks a program to stop, and waits until it has.
func (p *process) stop() error {
	err := p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopWithin):
	}
	err = errors.Join(err, p.command.Process.Kill(), p.failed("does not stop"))
	<-p.exited
	return err
}

// freeAddress finds a loopback address that nobody listens on. Its port is below those that systems give to whoever
// wants any, so that nobody takes it by chance until the program that it is for has started.
func freeAddress() (address string, err error) {
	const lowest, highest, tries = 20_000, 32_000, 100
	for range tries {
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(lowest+rand.IntN(highest-lowest)))
		var listener net.Listener
		if listener, err = net.Listen("tcp", address); err == nil {
			return address, listener.Close()
		}
	}
	return "", err
}
