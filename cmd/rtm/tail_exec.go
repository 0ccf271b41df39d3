package main

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

// execute runs the command of --exec for an event, and reports if it fails.
func (t *tail) execute(ctx context.Context, event client.Event) {
	err := t.runCommand(ctx, event)
	if err == nil {
		t.handled.Add(1)
		return
	}
	t.failed.Add(1)
	t.say("the command failed for %s of %s: %v", terminal.Escape(string(event.Type)), terminal.Escape(event.URL), err)
}

// runCommand runs the command for an event, and waits for it.
func (t *tail) runCommand(ctx context.Context, event client.Event) error {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-c", t.command)
	command.Env = append(os.Environ(), "RTM_TOPIC="+event.Topic, "RTM_TYPE="+string(event.Type), "RTM_URL="+event.URL)
	if !event.Timestamp.IsZero() {
		command.Env = append(command.Env, "RTM_TIMESTAMP="+strconv.FormatInt(event.Timestamp.UnixMilli(), 10))
	}
	command.Stdin = strings.NewReader(terminal.JSON(event) + "\n")
	command.Stdout, command.Stderr = t.out, t.errors
	command.WaitDelay = time.Second // if its background processes hold the output open
	inOwnGroup(command)
	err := command.Run()
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("killed after %v (--exec-timeout)", t.timeout)
	}
	return err
}
