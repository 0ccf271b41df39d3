package buscopy

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"routemaster/internal/machines/engine"
	"routemaster/internal/rdb"
)

// spread writes data that all partitions share to all of them. The partitions of the source agree
// except about their own parts, which are joined.
func (w *writing) spread(ctx context.Context, p *part) error {
	elements := p.elements
	if p.key == keys.Definitions() {
		elements = without(elements, "preparing")
	}
	if p.f.Kind != rdb.Hash {
		for at := range w.To {
			w.put(ctx, at, p, elements)
		}
		return nil
	}
	for at, to := range w.To {
		full := to.Namespace() + p.key
		there, ttl, err := w.there(ctx, at, p, elements)
		if err != nil {
			return err
		}
		for i := 0; i+1 < len(elements); i += 2 {
			field, value := elements[i], elements[i+1]
			if other, is := there[field]; is {
				if value, err = join(p, other, value); err != nil {
					return fmt.Errorf("%s: %w", p.key, err)
				}
				w.do(at, func(pipe rdb.Commands) rdb.AnyReply { return pipe.HSet(ctx, full, field, value) })
				continue
			}
			w.do(at, func(pipe rdb.Commands) rdb.AnyReply { return pipe.HSetNX(ctx, full, field, value) })
		}
		if p.isLast && p.ttl.Val() > ttl {
			w.expire(ctx, at, p)
		}
	}
	return nil
}

// there returns what another partition of the source has already written to a key of the target:
// values to join, by field, and how long the key stays (ms).
func (w *writing) there(ctx context.Context, at int, p *part, elements []string) (values map[string]string, ttl int64, err error) {
	var fields []string
	for i := 0; i+1 < len(elements); i += 2 {
		if p.key == keys.Walks() || p.f.Prefix == idempotencyPrefix && elements[i] == idempotencyLife {
			fields = append(fields, elements[i])
		}
	}
	if w.from.Number() == 0 || len(fields) == 0 && (!p.isLast || p.ttl.Val() <= 0) {
		return nil, 0, nil
	}
	full := w.To[at].Namespace() + p.key
	var left rdb.Reply[int64]
	var found rdb.Reply[[]any]
	err = w.To[at].Reads(ctx, "read the target", func(pipe rdb.Commands) {
		left = rdb.Expiry(ctx, pipe, full)
		if len(fields) > 0 {
			found = pipe.HMGet(ctx, full, fields...)
		}
	})
	if err != nil || found == nil {
		return nil, left.Val(), err
	}
	values = map[string]string{}
	for i, value := range found.Val() {
		if text, is := value.(string); is {
			values[fields[i]] = text
		}
	}
	return values, left.Val(), nil
}

// join is the value of a field of a key of all partitions that two of the source have.
func join(p *part, a, b string) (string, error) {
	if p.key == keys.Walks() {
		return earlier(a, b)
	}
	return joinLives(a, b)
}

// The key of a slice of idempotency keys, and its field that says from when to when it lives.
const (
	idempotencyPrefix = "idempotency:"
	idempotencyLife   = "life"
)

// without is fields and values without one of them.
func without(elements []string, field string) (left []string) {
	for i := 0; i+1 < len(elements); i += 2 {
		if elements[i] != field {
			left = append(left, elements[i], elements[i+1])
		}
	}
	return left
}

// earlier returns the position of the walk that has come less far: to look at a label again costs
// no more than that.
func earlier(a, b string) (string, error) {
	var both [2]engine.Progress
	for i, text := range []string{a, b} {
		if err := json.Unmarshal([]byte(text), &both[i]); err != nil {
			return "", err
		}
	}
	if both[1].At < both[0].At || both[1].At == both[0].At && both[1].After < both[0].After {
		return b, nil
	}
	return a, nil
}

// joinLives is the life of a slice of idempotency keys that was two: from the first to the last
// moment, each in ms.
func joinLives(a, b string) (string, error) {
	begun, expires, isLife := parseLife(a)
	otherBegun, otherExpires, isOther := parseLife(b)
	if !isLife || !isOther {
		return a, nil
	}
	return fmt.Sprintf("%d-%d", min(begun, otherBegun), max(expires, otherExpires)), nil
}

func parseLife(text string) (begun, expires int64, is bool) {
	from, to, _ := strings.Cut(text, "-")
	begun, err := strconv.ParseInt(from, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	expires, err = strconv.ParseInt(to, 10, 64)
	return begun, expires, err == nil
}
