package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"routemaster/client"
)

// runner runs a command for events.
type runner struct {
	command string
	retry   bool
	timeout time.Duration
	// mu has them run one at a time, also if the operator lets several deliveries overlap.
	mu sync.Mutex
}

// execute runs the command for each event. It fails if a command does and is to be tried again, or if the tail is ending.
func (t *tail) execute(ctx context.Context, events []client.Event) error {
	t.exec.mu.Lock()
	defer t.exec.mu.Unlock()
	for _, event := range events {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := t.exec.run(context.WithoutCancel(ctx), event, t.out, t.errors)
		if err == nil {
			t.events.Add(1)
			continue
		}
		t.failed.Add(1)
		what := fmt.Sprintf("the command failed for %s of %s: %v", showable(string(event.Type)), showable(event.URL), err)
		if t.exec.retry {
			t.say("%s; the bus is asked to deliver it again", what)
			return err
		}
		t.say("%s", what)
	}
	return nil
}

// run runs the command for an event, and waits for it. One that was started is not cut off by the end of the tail.
func (r *runner) run(ctx context.Context, event client.Event, out, errors io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-c", r.command)
	command.Env = append(os.Environ(), "RTM_TOPIC="+event.Topic, "RTM_TYPE="+string(event.Type), "RTM_URL="+event.URL)
	if !event.Timestamp.IsZero() {
		command.Env = append(command.Env, "RTM_TIMESTAMP="+strconv.FormatInt(event.Timestamp.UnixMilli(), 10))
	}
	command.Stdin = strings.NewReader(jsonOf(event) + "\n")
	command.Stdout, command.Stderr = out, errors
	command.WaitDelay = time.Second // for what it has started in the background
	inOwnGroup(command)
	err := command.Run()
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("killed after %v (--exec-timeout)", r.timeout)
	}
	return err
}
