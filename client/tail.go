package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// TailItem is one thing that a live tail reports. Exactly one of its fields is set.
type TailItem struct {
	// Event was published to the topic.
	Event *Event
	// LeftOut is how many published events the tail does not show.
	LeftOut int64
	// Live says that the stream has begun: events are shown from now on.
	Live bool
	// Lost says why the stream ended, or could not be begun again: [ErrTailEnded] if the bus ended it,
	// as it does every half hour. Events published before the next Live are not shown.
	Lost error
}

// tailSilence is how long a bus may send nothing. It sends a line every 15 s.
const tailSilence = 45 * time.Second

// ErrTailEnded is the error of a tail whose stream the bus ended in order.
var ErrTailEnded = errors.New("the bus has ended the stream")

// tailSettled is how long a stream must have lasted for the next one to begin without a growing
// pause.
const tailSettled = 15 * time.Second

var errSilent = fmt.Errorf("the bus has sent nothing for %v", tailSilence)

// Tail yields the events of a topic while they are published. It needs no subscription: nothing is
// queued or acknowledged, and the bus leaves events out if they come fast (100 a second, and 20 of
// one request, are shown). To get every event, subscribe, or read the topic's history.
//
// If the stream cannot be begun, Tail tries as often as for any other request. Once it has begun,
// Tail begins it again whenever it is lost, until the context is done. An error is the last value
// that it yields: the bus refuses the stream, for example because the topic (404) or the token
// (401) is unknown.
func (c *Client) Tail(ctx context.Context, topic string) iter.Seq2[TailItem, error] {
	return func(yield func(TailItem, error) bool) {
		t := tail{client: *c, topic: topic, yield: yield}
		withoutTimeout := *c.http // which would end the stream
		withoutTimeout.Timeout = 0
		t.client.http = &withoutTimeout
		t.run(ctx)
	}
}

// tail is a live tail that runs.
type tail struct {
	client Client
	topic  string
	yield  func(TailItem, error) bool
	// began says that a stream has begun, stopped that the caller wants no more.
	began, stopped bool
}

// run reads one stream after the other.
func (t *tail) run(ctx context.Context) {
	pauses := t.client.pauses()
	for failures := 0; ; {
		start := time.Now()
		live, err := t.stream(ctx)
		if t.stopped || ctx.Err() != nil {
			return
		}
		if live {
			failures = 0
		}
		if live && time.Since(start) > tailSettled {
			pauses.Reset()
		}
		failures++
		err = fmt.Errorf("tail %s: %w", t.topic, err)
		if !IsTemporary(err) || !t.began && failures > t.client.retries {
			t.yield(TailItem{}, err)
			return
		}
		if t.began && !t.yield(TailItem{Lost: err}, nil) {
			return
		}
		pause := pauses.NextBackOff()
		if refused, ok := errors.AsType[*Error](err); ok {
			pause += min(refused.RetryAfter, maxRetryAfter)
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// stream reads a stream to its end, and returns why it ended, and whether it had begun.
func (t *tail) stream(ctx context.Context) (live bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(tailSilence, func() { cancel(errSilent) })
	defer silence.Stop()
	var got Response
	body, err := t.client.attempt(ctx, request{method: http.MethodGet, path: "/topics/" + url.PathEscape(t.topic) + "/tail", response: &got})
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errSilent):
		return false, &connectionError{errSilent}
	case err != nil:
		return false, err
	}
	defer body.Close()
	if kind, _, _ := mime.ParseMediaType(got.Header.Get("Content-Type")); kind != "text/event-stream" {
		return false, fmt.Errorf("the response is not from a bus: it is %q, not a stream of events", kind)
	}
	silence.Stop()
	t.began = true
	if !t.report(TailItem{Live: true}) {
		return true, nil
	}
	err = t.read(&heard{body, silence})
	if errors.Is(context.Cause(ctx), errSilent) {
		err = &connectionError{errSilent}
	}
	return true, err
}

// heard stops the timer of silence while nothing is read, since the caller may take its time.
type heard struct {
	io.Reader
	silence *time.Timer
}

func (h *heard) Read(into []byte) (int, error) {
	h.silence.Reset(tailSilence)
	defer h.silence.Stop()
	return h.Reader.Read(into)
}

// read reports the items of a stream of server-sent events (HTML, section 9.2), until it ends.
func (t *tail) read(stream io.Reader) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxResponse)
	var kind, data string
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			item, err := readItem(kind, data)
			if err != nil {
				return err
			}
			if item != (TailItem{}) && !t.report(item) {
				return nil
			}
			kind, data = "", ""
		case name == "event":
			kind = value
		case name == "data":
			data += value
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("an event has more than %d bytes", maxResponse)
	} else if err != nil {
		return &connectionError{bare(err)}
	}
	return &connectionError{ErrTailEnded}
}

// readItem reads a server-sent event. The item is empty if this client does not know its kind.
func readItem(kind, data string) (item TailItem, err error) {
	switch {
	case data == "":
	case kind == "" || kind == "message":
		item.Event = &Event{}
		err = json.Unmarshal([]byte(data), item.Event)
	case kind == "left_out":
		item.LeftOut, err = strconv.ParseInt(data, 10, 64)
	}
	if err != nil {
		return TailItem{}, fmt.Errorf("the response is not from a bus: %w", err)
	}
	return item, nil
}

// report yields an item, and reports whether the caller wants more.
func (t *tail) report(item TailItem) bool {
	t.stopped = !t.yield(item, nil)
	return !t.stopped
}
