package web

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/web/rest"
	"routemaster/internal/wire"
)

const (
	// tailPace is how many events a live tail shows in a second; it only counts the rest.
	tailPace = 100
	// tailTime is how long one lasts; then its reader asks again.
	tailTime = 30 * time.Minute
	// tailBeat is the pause between two lines that keep the connection open, and find out whether its
	// reader is there.
	tailBeat = 15 * time.Second
	// tailWrite is how long a reader may take for one write.
	tailWrite = 10 * time.Second
)

// getTail shows the events of a topic while they are published, as server-sent events.
func (a *API) getTail(w http.ResponseWriter, r *http.Request) {
	r, release := a.Hold(r)
	defer release()
	stream, err := a.tails.Open(r.Context(), rest.TopicParam(r), rest.Caller(r).PublicName())
	if errors.Is(err, bus.ErrOverloaded) {
		err = &rest.Problem{
			Status: http.StatusServiceUnavailable,
			Detail: "this client, or all together, have as many live tails here as they may; stop one, or try again later",
		}
	}
	if err != nil {
		a.Fail(w, r, err)
		return
	}
	defer stream.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not wait for more
	w.WriteHeader(http.StatusOK)
	t := &tail{to: w, stream: stream, left: tailPace}
	t.write(": live\n\n")
	if r.Method == http.MethodHead {
		return
	}
	ends := time.After(tailTime)
	second, check := time.NewTicker(time.Second), time.NewTicker(tailBeat)
	defer second.Stop()
	defer check.Stop()
	for t.err == nil {
		select {
		case part, ok := <-stream.Parts():
			if !ok {
				return
			}
			t.show(part)
		case <-second.C:
			t.count()
		case <-check.C:
			t.write(": live\n\n")
		case <-ends:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// tail writes a live tail.
type tail struct {
	to     http.ResponseWriter
	stream *store.TailStream
	// left is how many events may be shown in this second, and leftOut how many were not shown since
	// the last count.
	left, leftOut int64
	err           error
}

// show writes the events of a part, as far as the pace allows.
func (t *tail) show(part store.TailPart) {
	events := part.Events[:min(t.left, int64(len(part.Events)))]
	t.left -= int64(len(events))
	t.leftOut += part.Total - int64(len(events))
	var text []byte
	for _, event := range wire.ShowEvents(events) {
		text = append(append(append(text, "data: "...), event...), "\n\n"...)
	}
	if len(text) > 0 {
		t.write(string(text))
	}
}

// count begins another second, and says how many events were left out in the last.
func (t *tail) count() {
	t.left = tailPace
	if t.leftOut += t.stream.Missed(); t.leftOut > 0 {
		t.write("event: left_out\ndata: " + strconv.FormatInt(t.leftOut, 10) + "\n\n")
		t.leftOut = 0
	}
}

func (t *tail) write(text string) {
	c := http.NewResponseController(t.to)
	_ = c.SetWriteDeadline(time.Now().Add(tailWrite)) // where it cannot be set, the server's holds
	if _, t.err = fmt.Fprint(t.to, text); t.err == nil {
		t.err = c.Flush()
	}
}
