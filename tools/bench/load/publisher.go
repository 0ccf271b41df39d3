package load

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Target is the place to publish to, and the events.
type Target struct {
	// URL leads to a bus, or to a server that answers like one.
	URL string
	// Insecure accepts any certificate.
	Insecure     bool
	Token, Topic string
	// Path, if set, is where events are posted; otherwise they go to the topic.
	Path string
	// Array is how many events one request has; 0 is one event that is not in an array.
	Array int
}

// Publishers are connected to a target.
type Publishers []*publisher

// publisher sends one prepared request again and again, with new marks each time.
type publisher struct {
	*connection
	id      int
	request []byte
	marks   []marks // within request
	// sent counts the events that were answered.
	sent int64
}

// Connect connects a number of publishers. The connections are closed by Close, or when the context
// is done.
func Connect(ctx context.Context, target Target, publishers int) (connected Publishers, err error) {
	for id := range publishers {
		p, err := connect(ctx, target, id)
		if err != nil {
			connected.Close()
			return nil, err
		}
		connected = append(connected, p)
	}
	return connected, nil
}

func connect(ctx context.Context, target Target, id int) (*publisher, error) {
	base, err := url.Parse(target.URL)
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, base, target.Insecure)
	if err != nil {
		return nil, err
	}
	body := requestBody(publishedJSON, target.Array)
	path := cmp.Or(target.Path, "/topics/"+target.Topic)
	p := &publisher{connection: conn, id: id, request: postRequest(base, path, target.Token, body)}
	p.marks = allMarks(p.request)
	return p, nil
}

// send publishes the next events. It is a [Sender].
func (p *publisher) send(due time.Time) error {
	stamp(p.marks, p.id, p.sent, due)
	if err := p.post(p.request); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	p.sent += int64(len(p.marks))
	return nil
}

// Senders returns a sender for each publisher.
func (all Publishers) Senders() (senders []Sender) {
	for _, p := range all {
		senders = append(senders, p.send)
	}
	return senders
}

// Sent returns how many events were answered. It must not be called while they are sent.
func (all Publishers) Sent() (events int64) {
	for _, p := range all {
		events += p.sent
	}
	return events
}

// Fill publishes a number of events, a multiple of a request's events, as fast as they are
// accepted.
func (all Publishers) Fill(ctx context.Context, events int64) (progress Samples, err error) {
	var begun, accepted atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	filled, done := context.WithCancel(ctx)
	defer done()
	for _, p := range all {
		group.Go(func() error {
			each := int64(len(p.marks))
			for begun.Add(each) <= events {
				if err := p.send(time.Now()); err != nil {
					return err
				}
				if accepted.Add(each) == events {
					done()
				}
			}
			return nil
		})
	}
	for err == nil {
		progress = append(progress, Sample{time.Now(), accepted.Load()})
		err = Sleep(filled, fillInterval)
	}
	err = group.Wait()
	return append(progress, Sample{time.Now(), accepted.Load()}), err
}

// fillInterval is how often the progress of a queue that is filled is read.
const fillInterval = 10 * time.Millisecond

// Close closes the connections.
func (all Publishers) Close() {
	for _, p := range all {
		_ = p.Close()
	}
}
