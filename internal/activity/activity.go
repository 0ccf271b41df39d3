// Package activity keeps the latest changes that root made, or that were made in the console, for
// the operator. All changes are in the log of the process that made them; this is the part of it
// that a page can show.
package activity

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

const (
	// kept is how many changes are kept.
	kept = 500
	// maxField is how many bytes of a field are kept: the log has all of it.
	maxField = 256
	// waiting is how many may wait to be stored. More are lost, which is logged.
	waiting = 256
	// storeTimeout bounds storing one.
	storeTimeout = 2 * time.Second
)

// Change is a recorded change.
type Change struct {
	// When, in ms since the Unix epoch.
	At int64 `json:"at"`
	// The name of the client, `root` for the operator.
	Client string `json:"client"`
	// Whether it was done in the console.
	Console bool `json:"console"`
	// The name that was given at the login, which is not verified.
	Person string `json:"person,omitempty"`
	// The request's id, as in the log.
	RequestID string `json:"request_id"`
	// The change, as in the log.
	What string `json:"what"`
	// Its object, as in the log.
	Fields map[string]string `json:"fields,omitempty"`
}

// Log keeps changes. It is safe for concurrent use.
type Log struct {
	redis   *rdb.Partition
	key     string
	log     *slog.Logger
	changes chan Change
}

// New makes a log of changes in a partition.
func New(partition *rdb.Partition, log *slog.Logger) *Log {
	return &Log{redis: partition, key: layout.Keys{Namespace: partition.Namespace()}.Activity(), log: log, changes: make(chan Change, waiting)}
}

// Note has a change stored, soon: a request does not wait for that. It cuts long fields.
func (l *Log) Note(c Change) {
	for name, value := range c.Fields {
		if len(value) > maxField {
			c.Fields[name] = strings.ToValidUTF8(value[:maxField], "") + "…"
		}
	}
	select {
	case l.changes <- c:
	default:
		l.log.Warn("a change is not in the activity: too many at once", "request_id", c.RequestID)
	}
}

// Run stores changes until the context is done, and then those that are still waiting.
func (l *Log) Run(ctx context.Context) {
	for {
		select {
		case c := <-l.changes:
			l.store(ctx, c)
		case <-ctx.Done():
			for {
				select {
				case c := <-l.changes:
					l.store(ctx, c)
				default:
					return
				}
			}
		}
	}
}

func (l *Log) store(ctx context.Context, c Change) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	text, err := json.Marshal(c)
	if err == nil {
		err = l.redis.Transaction(ctx, "note a change", func(pipe rdb.Commands) {
			pipe.LPush(ctx, l.key, text)
			pipe.LTrim(ctx, l.key, 0, kept-1)
		})
	}
	if err != nil {
		l.log.Warn("a change is not in the activity", "request_id", c.RequestID, "error", err)
	}
}

// Last returns the last changes, the latest first. It fails with [bus.ErrUnavailable].
func (l *Log) Last(ctx context.Context, limit int) ([]Change, error) {
	texts, err := l.redis.LRange(ctx, l.key, 0, int64(limit)-1).Result()
	if err != nil {
		return nil, rdb.Wrap("read the activity", err)
	}
	changes := make([]Change, 0, len(texts))
	for _, text := range texts {
		var c Change
		if json.Unmarshal([]byte(text), &c) == nil {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

type personKey struct{}

// InConsole marks a context's changes as made in the console by a person, whose name may be empty.
func InConsole(ctx context.Context, person string) context.Context {
	return context.WithValue(ctx, personKey{}, person)
}

// Person returns the person that acts in the console, and whether the context is the console's.
func Person(ctx context.Context) (person string, inConsole bool) {
	person, inConsole = ctx.Value(personKey{}).(string)
	return person, inConsole
}
