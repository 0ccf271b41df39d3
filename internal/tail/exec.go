package tail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"routemaster/client"
	"routemaster/client/receipt"
	"routemaster/internal/terminal"
)

// usualDelivery is how long a bus waits for the answer to a delivery, unless its operator has set
// ROUTEMASTER_TIMEOUT.
const usualDelivery = 20 * time.Second

// warnOfTimeout says so if commands may take longer than the bus waits: such an event is delivered
// again and again, although its command succeeds.
func (t *tail) warnOfTimeout() {
	if t.Exec.Command != "" && t.Exec.Timeout > usualDelivery {
		t.say("--exec-timeout is longer than a bus usually waits for a delivery (%v, ROUTEMASTER_TIMEOUT): it delivers an event again "+
			"whose command takes longer, even if that succeeds", usualDelivery)
	}
}

// execute runs the command for each event, one at a time even if the operator lets deliveries
// overlap. It fails if the tail is ending. If commands that fail are to be retried, its error is
// the receipt that has the bus deliver their events again, and those that it has put off.
func (t *tail) execute(ctx context.Context, events []client.Event) error {
	arrived := time.Now()
	t.executing.Lock()
	defer t.executing.Unlock()
	var slowest time.Duration
	var again []error
	for i, event := range events {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		began := time.Now()
		if i > 0 && began.Sub(arrived)+slowest > t.Exec.Timeout { // so that the bus does not give up waiting
			t.say("%d of the %d events of a delivery are put off: their commands take longer than --exec-timeout together", len(events)-i, len(events))
			again = append(again, receipt.RetryFrom(i))
			break
		}
		if !t.handle(ctx, event) {
			again = append(again, receipt.Retry(i))
		}
		slowest = max(slowest, time.Since(began))
	}
	return errors.Join(again...)
}

// handle runs the command for an event, and reports whether the bus is done with the event. A
// command that runs when the tail ends may finish.
func (t *tail) handle(ctx context.Context, event client.Event) bool {
	err := t.runCommand(context.WithoutCancel(ctx), event)
	if err == nil {
		t.handled.Add(1)
		return true
	}
	t.failed.Add(1)
	what := fmt.Sprintf("the command failed for %s of %s: %v", terminal.Escape(string(event.Type)), terminal.Escape(event.URL), err)
	if t.Exec.Retry {
		what += "; the bus is asked to deliver it again"
	}
	t.say("%s", what)
	return !t.Exec.Retry
}

// runCommand runs the command for an event, and waits for it.
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
