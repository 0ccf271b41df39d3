package bench

import (
	"context"
	"errors"
	"net/http"
)

// Remote is somebody else's bus. Nothing is started but a receiver, nothing of its machines is measured, and there
// are no limits beside the figures: they need its machines.
type Remote struct {
	URL string
	// Token is a client's, who publishes, and subscribes too. Its subscription is taken over, and removed in the end.
	Token string
	// Insecure says that the bus's certificate need not be valid.
	Insecure bool
	// Listen is where the receiver listens, and PublicURL how the bus reaches it. Without a PublicURL there are no deliveries.
	Listen, PublicURL string
}

func remoteSite(ctx context.Context, o Options) (*site, error) {
	s := newSite(busAPI{url: o.Remote.URL, insecure: o.Remote.Insecure, client: newHTTPClient(o.Remote.Insecure)})
	s.publisher, s.subscribers, s.callback = o.Remote.Token, []string{o.Remote.Token}, o.Remote.PublicURL
	command, err := o.Launch(Receiver, o.Remote.Listen)
	if err != nil {
		return nil, err
	}
	if s.helper, err = start(Receiver, command); err != nil {
		return nil, err
	}
	listening, err := s.helper.listening(ctx)
	if err != nil {
		return nil, errors.Join(err, s.helper.stop())
	}
	s.receiver = receiverAPI{listening.Control, newHTTPClient(false)}
	return s, nil
}

// fit leaves out what a bus cannot be asked for.
func (s *site) fit(size size) size {
	switch {
	case s.own != nil:
	case s.callback == "":
		size.subscribers = []int{0}
	default:
		size.subscribers = []int{1}
	}
	return size
}

// leave takes down what was set up on somebody else's bus.
func (s *site) leave(ctx context.Context) error {
	if s.callback != "" {
		_ = s.bus.call(context.WithoutCancel(ctx), s.publisher, http.MethodDelete, "/subscriber", nil) // it may be gone
	}
	return s.helper.stop()
}
