package web

import (
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"routemaster/internal/bus"
)

func (s *Server) postSubscriber(w http.ResponseWriter, r *http.Request) {
	sub, err := s.readSubscription(w, r)
	if err == nil {
		err = sub.Normalize(s.config.Deny)
	}
	if limit := s.config.MaxSubscriptionTopics; err == nil && limit > 0 && len(sub.Topics) > limit {
		err = bus.Invalidf("/topics", "must be at most %d topics", limit)
	}
	if err == nil {
		err = s.store.Subscribe(r.Context(), caller(r).Token, sub, s.now())
	}
	s.respondChanged(w, r, err, "subscription set", slog.Int("topics", len(sub.Topics)), slog.String("callback_host", hostOf(sub.Callback)))
}

// readSubscription reads a subscription; it does not validate it.
func (s *Server) readSubscription(w http.ResponseWriter, r *http.Request) (sub bus.Subscription, err error) {
	b, err := s.readBodyUpTo(w, r, maxLongBody, maxLongBody)
	if err != nil {
		return sub, err
	}
	defer b.release()
	listed := false
	err = b.object(func(member []byte) error {
		switch string(member) {
		case "topics":
			listed = true
			return b.array(func() error {
				name, err := b.string()
				sub.Topics = append(sub.Topics, bus.TopicName(name))
				return err
			})
		case "callback":
			callback, err := b.string()
			sub.Callback = callback
			return err
		case "uuid":
			uuid, given, err := optional(b, (*body).string)
			if given {
				sub.UUID = &uuid
			}
			return err
		case "timeout":
			ms, given, err := optional(b, (*body).integer)
			if given {
				// Clamped, so that no number of ms overflows; beyond the bound it is refused.
				timeout := time.Duration(min(max(ms, -1), bus.MaxTimeout.Milliseconds()+1)) * time.Millisecond
				sub.Timeout = &timeout
			}
			return err
		case "max":
			n, given, err := optional(b, (*body).integer)
			if given {
				most := int(n)
				sub.MaxEvents = &most
			}
			return err
		default:
			return b.unknown("topics", "callback", "uuid", "timeout", "max")
		}
	})
	if err == nil {
		err = b.end()
	}
	if err == nil && !listed {
		err = bus.Invalidf("/topics", "is required: an array of topic names")
	}
	return sub, err
}

func (s *Server) deleteSubscriber(w http.ResponseWriter, r *http.Request) {
	s.respondChanged(w, r, s.store.DeleteSubscriber(r.Context(), caller(r).Token), "subscription deleted")
}

func (s *Server) deleteSubscription(w http.ResponseWriter, r *http.Request) {
	topic := topicParam(r)
	err := s.store.Unsubscribe(r.Context(), caller(r).Token, topic)
	s.respondChanged(w, r, err, "unsubscribed from topic", slog.String("topic", string(topic)))
}

// hostOf returns the host of a callback for the log: its path may contain a secret.
func hostOf(callback string) string {
	u, err := url.Parse(callback)
	if err != nil {
		return ""
	}
	return u.Host
}
