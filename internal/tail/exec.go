package tail

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"routemaster/client"
	"routemaster/internal/terminal"
)

// execute runs the command for each event, one at a time even if the operator lets deliveries
// overlap. It fails if a command fails that is to be retried, or if the tail is ending.
func (t *tail) execute(ctx context.Context, events []client.Event) error {
	t.executing.Lock()
	defer t.executing.Unlock()
	for _, event := range events {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := t.runCommand(context.WithoutCancel(ctx), event)
		if err == nil {
			t.handled.Add(1)
			continue
		}
		t.failed.Add(1)
		what := fmt.Sprintf("the command failed for %s of %s: %v", terminal.Escape(string(event.Type)), terminal.Escape(event.URL), err)
		if t.Exec.Retry {
			t.say("%s; the bus is asked to deliver it again", what)
			return err
		}
		t.say("%s", what)
	}
	return nil
}

// runCommand runs the command for an event, and waits for it. A command that runs when the tail
// ends may finish.
func (t *tail) runCommand(ctx context.Context, event client.Event) error {
	ctx, cancel := context.WithTimeout(ctx, t.Exec.Timeout)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-c", t.Exec.Command)
	command.Env = append(os.Environ(), "RTM_TOPIC="+event.Topic, "RTM_TYPE="+string(event.Type), "RTM_URL="+event.URL)
	if !event.Timestamp.IsZero() {
		command.Env = append(command.Env, "RTM_TIMESTAMP="+strconv.FormatInt(event.Timestamp.UnixMilli(), 10))
	}
	command.Stdin = strings.NewReader(terminal.JSON(event) + "\n")
	command.Stdout, command.Stderr = t.Out, t.Errors
	command.WaitDelay = time.Second // if what it has started in the background holds its output
	inOwnGroup(command)
	err := command.Run()
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("killed after %v (--exec-timeout)", t.Exec.Timeout)
	}
	return err
}
