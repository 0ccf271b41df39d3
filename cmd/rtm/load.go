package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"routemaster/client"
	"routemaster/internal/terminal"
)

// loadRetries is how often a chunk is sent again: for about a minute, which a restart of the bus's
// Redis may take.
const loadRetries = 15

// keyTTL is how long the bus remembers the key of a publish, and stores no repetition.
const keyTTL = 24 * time.Hour

// errStopped says that the user stopped the load.
var errStopped = errors.New("stopped")

// load publishes a file of events.
type load struct {
	client *client.Client
	// topic is for lines that name none. key distinguishes this load from others of the same lines.
	topic, key string
	stderr     io.Writer

	published int
}

// loadFile publishes the events of a file, or of the standard input.
func loadFile(cmd *cobra.Command, bus *busFlags, path string, args []string, key string) error {
	bus.stderr = cmd.ErrOrStderr()
	c, err := bus.client(client.WithRetries(loadRetries))
	if err != nil {
		return err
	}
	defer c.CloseIdleConnections()
	from := cmd.InOrStdin()
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		from = file
	}
	l := &load{client: c, key: key, stderr: cmd.ErrOrStderr()}
	if len(args) == 1 {
		l.topic = args[0]
	}
	return l.run(cmd.Context(), from)
}

func (l *load) run(ctx context.Context, from io.Reader) error {
	events, err := l.validate(ctx, from)
	if err != nil {
		return fmt.Errorf("%w; nothing was published", err)
	}
	progress := l.progress(events)
	chunks := newChunker(&interruptible{ctx: ctx, from: from}, l.topic, l.key)
	for {
		chunk, err := chunks.read()
		if err == nil && chunk != nil {
			err = l.publish(ctx, chunk)
		}
		if ctx.Err() != nil && err != nil {
			err = errStopped
		}
		if err != nil {
			if terminal.Is(l.stderr) {
				_ = progress.Exit() // the message begins on a line of its own
			}
			return fmt.Errorf("%w; the first %d events are published: run it again to go on, which within 24 hours adds none of them twice", err, l.published)
		}
		if chunk == nil {
			_ = progress.Finish()
			return nil
		}
		l.published += len(chunk.events)
		_ = progress.Add(len(chunk.events))
	}
}

// validate reads all events of a regular file, and returns their number. It does not read input
// that cannot be read twice, and returns -1 for it.
func (l *load) validate(ctx context.Context, from io.Reader) (events int, err error) {
	file, ok := from.(*os.File)
	if !ok {
		return -1, nil
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = errors.New(file.Name() + " is a directory")
	}
	if err != nil || !info.Mode().IsRegular() {
		return -1, err
	}
	start, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return -1, err
	}
	chunks := newChunker(file, l.topic, l.key)
	for {
		chunk, err := chunks.read()
		if ctx.Err() != nil {
			err = errStopped
		}
		if err != nil {
			return -1, err
		}
		if chunk == nil {
			_, err = file.Seek(start, io.SeekStart)
			return events, err
		}
		events += len(chunk.events)
	}
}

// progress is a bar on a terminal; events is how many there will be, -1 if unknown.
func (l *load) progress(events int) *progressbar.ProgressBar {
	return progressbar.NewOptions(events,
		progressbar.OptionSetWriter(l.stderr), progressbar.OptionSetVisibility(terminal.Is(l.stderr)),
		progressbar.OptionSetDescription("events"), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionOnCompletion(func() { fmt.Fprintln(l.stderr) }))
}

// publish publishes a chunk. If the bus refuses an event, the error has the number of its line.
func (l *load) publish(ctx context.Context, c *chunk) error {
	err := explain(l.client.PublishAll(ctx, c.topic, c.events, client.WithIdempotencyKey(c.key()), client.WithIdempotencyTTL(keyTTL)))
	if answered, ok := errors.AsType[*client.Error](err); ok {
		place, field, _ := strings.Cut(strings.TrimPrefix(answered.Pointer, "/"), "/")
		if i, notOne := strconv.Atoi(place); notOne == nil && i >= 0 && i < len(c.lines) {
			return lineError{c.lines[i], fmt.Errorf("%s: %s", field, answered.Detail)}
		}
	}
	if err != nil {
		return fmt.Errorf("lines %d to %d: %w", c.lines[0], c.lines[len(c.lines)-1], err)
	}
	return nil
}

// interruptible is a reader that stops when its context is done, even if a read from the pipe or
// terminal below it blocks. The goroutine of that read is left behind until the program exits.
type interruptible struct {
	ctx  context.Context
	from io.Reader
}

func (r *interruptible) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	buffer, read := make([]byte, len(p)), make(chan result, 1)
	go func() {
		n, err := r.from.Read(buffer)
		read <- result{n, err}
	}()
	select {
	case got := <-read:
		return copy(p, buffer[:got.n]), got.err
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}
