package load

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// Target is where and what publishers publish.
type Target struct {
	// URL is that of a bus, or of a server that answers like one.
	URL string
	// Insecure accepts any certificate.
	Insecure     bool
	Token, Topic string
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

// Connect connects so many publishers. The connections are closed by Close, or when the context is
// done.
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
	p := &publisher{connection: conn, id: id, request: postRequest(base, "/topics/"+target.Topic, target.Token, body)}
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

// Close closes the connections.
func (all Publishers) Close() {
	for _, p := range all {
		_ = p.Close()
	}
}
