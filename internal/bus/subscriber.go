package bus

import (
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds and defaults of a subscription.
const (
	DefaultTimeout   = 500 * time.Millisecond
	MaxTimeout       = time.Hour
	DefaultMaxEvents = 100
	MaxMaxEvents     = 10_000
	maxUUIDLen       = 256
)

// Subscription is a client's request to subscribe. A nil field keeps its value, or takes its
// default the first time.
type Subscription struct {
	// Topics are all the topics subscribed to from now on.
	Topics []TopicName
	// Callback is the https URL that batches are posted to.
	Callback string
	// UUID is the user name of the deliveries' Basic authentication.
	UUID *string
	// Timeout is how long a batch waits for more events, in whole ms.
	Timeout *time.Duration
	// MaxEvents is the maximum number of events of a batch.
	MaxEvents *int
	// Options are values that [ParseOption] returned, by the names of their options: "" for the
	// default. Options that are left out keep their value.
	Options map[string]string
	// Stored, if given, is the client's subscriber. Clients subscribe again when they start, so values
	// that it already has are not refused, even if the bus it was migrated from was less strict.
	Stored *Subscriber
}

// Normalize validates the subscription and drops the user name and password of its callback:
// existing clients send one, and deliveries carry the UUID instead. The error is an [Invalid]
// that points at the first wrong field. A callback whose host is denied is wrong.
func (s *Subscription) Normalize(deny DenyList) error { return s.normalize(deny, false) }

// NormalizeChange is [Subscription.Normalize] for a change of a subscription, which may leave out
// the callback.
func (s *Subscription) NormalizeChange(deny DenyList) error { return s.normalize(deny, true) }

func (s *Subscription) normalize(deny DenyList, change bool) error {
	for i, name := range s.Topics {
		if err := name.Validate(); err != nil {
			return At("/topics/"+strconv.Itoa(i), err)
		}
	}
	if s.Callback != "" || !change {
		callback, err := normalCallback(s.Callback, deny)
		switch {
		case err == nil:
			s.Callback = callback
		case !s.keepsCallback(deny):
			return At("/callback", err)
		}
	}
	if s.UUID != nil && !validUUID(*s.UUID) && (s.Stored == nil || s.Stored.UUID != *s.UUID) {
		// RFC 7617, section 2: a user-id has no colon and no control character.
		return Invalidf("/uuid", "must be at most %d characters, without a colon or control characters", maxUUIDLen)
	}
	if s.Timeout != nil && (*s.Timeout < 0 || *s.Timeout > MaxTimeout) {
		return Invalidf("/timeout", "must be 0 to %d ms", MaxTimeout.Milliseconds())
	}
	if s.MaxEvents != nil && (*s.MaxEvents < 1 || *s.MaxEvents > MaxMaxEvents) && (s.Stored == nil || s.Stored.MaxEvents != *s.MaxEvents) {
		return Invalidf("/max", "must be 1 to %d events", MaxMaxEvents)
	}
	return nil
}

// keepsCallback reports whether the callback is the stored one, and is not denied.
func (s *Subscription) keepsCallback(deny DenyList) bool {
	u, err := url.Parse(s.Callback)
	return err == nil && s.Stored != nil && s.Stored.Callback == s.Callback && !deny.DeniesHost(u)
}

func validUUID(uuid string) bool {
	return utf8.RuneCountInString(uuid) <= maxUUIDLen && !strings.ContainsFunc(uuid, func(r rune) bool {
		return r == ':' || unicode.IsControl(r)
	})
}

// normalCallback validates a callback and returns it without user name and password.
func normalCallback(callback string, deny DenyList) (string, error) {
	u, err := ParseHTTPS(callback)
	switch {
	case err != nil:
		return "", err
	case u.RawQuery != "" || u.ForceQuery:
		return "", Invalidf("", "must not have a query string")
	case strings.Contains(callback, "#"):
		return "", Invalidf("", "must not have a fragment")
	case deny.DeniesHost(u):
		return "", Invalidf("", "%s", DeniedHost)
	case u.User == nil:
		return callback, nil
	}
	// Cut from the text, so that the rest stays as the client wrote it.
	scheme, rest, _ := strings.Cut(callback, "//")
	authority, path, slash := strings.Cut(rest, "/")
	callback = scheme + "//" + authority[strings.LastIndexByte(authority, '@')+1:]
	if slash {
		callback += "/" + path
	}
	return callback, nil
}

// Subscriber is a client that has subscribed.
type Subscriber struct {
	Token     Token
	Callback  string
	UUID      string
	Timeout   time.Duration
	MaxEvents int
	Health    int
	// LastAttemptedAt is when a delivery was last tried; zero if never.
	LastAttemptedAt time.Time
	Topics          []TopicName
	// Queued is the number of events not yet delivered, Sent of those ever delivered.
	Queued, Sent int64
	// OldestAt is when the oldest queued event was received; zero if none is queued.
	OldestAt time.Time
}

// Topic is a topic as clients see it.
type Topic struct {
	Name TopicName
	// Publisher is the token of its owner, empty before the first publish.
	Publisher Token
	// Owner is the name of its owner, empty before the first publish or if only the token is known.
	Owner ClientName
	// Events is the number of events ever received.
	Events int64
}
