package console

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Listed is a session in the list of all.
type Listed struct {
	Session
	// ID stands for the session. It is no secret: the SHA-256 of its cookie.
	ID string
	// Ends is when it ends by itself.
	Ends time.Time
}

// All lists the sessions, the latest first, as they are in Redis: their proof needs their cookies,
// so one that another root key has ended is among them. The error may be [bus.ErrUnavailable] or a
// [DamagedError].
func (s *Store) All(ctx context.Context) (all []Listed, err error) {
	ids, err := s.redis.ZRange(ctx, s.keys.Sessions(), 0, -1).Result()
	if err != nil {
		return nil, s.wrap("list sessions", err)
	}
	fields := make([]rdb.Reply[map[string]string], len(ids))
	err = s.redis.Reads(ctx, "list sessions", func(c rdb.Commands) {
		for i, id := range ids {
			fields[i] = c.HGetAll(ctx, s.keys.Session(id))
		}
	})
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if session, ok := parse(fields[i].Val()); ok && s.now().Before(session.ends()) {
			all = append(all, Listed{session, id, session.ends()})
		}
	}
	slices.SortFunc(all, func(a, b Listed) int { return cmp.Or(b.MadeAt.Compare(a.MadeAt), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}

// parse makes a session of its fields in Redis. Whether it bears a proof is not looked at.
func parse(fields map[string]string) (session Session, ok bool) {
	made, err := strconv.ParseInt(fields["made_at"], 10, 64)
	return Session{
		Token: bus.Token(fields["token"]), Client: fields["client"], Person: fields["person"], From: fields["from"],
		LookOnly: fields["look_only"] == "true", MadeAt: time.UnixMilli(made),
	}, err == nil
}

// EndID ends the session with an ID. The error may be [bus.ErrUnavailable].
func (s *Store) EndID(ctx context.Context, id string) error {
	s.recent.forget(id)
	err := s.redis.Pipelined(ctx, "end a session", func(c rdb.Commands) {
		c.Del(ctx, s.keys.Session(id))
		c.ZRem(ctx, s.keys.Sessions(), id)
	})
	if rdb.IsWrongType(err) {
		return nil // it is not in the list, and it has ended
	}
	return err
}

// EndAll ends all sessions. The error may be [bus.ErrUnavailable] or a [DamagedError].
func (s *Store) EndAll(ctx context.Context) error {
	ids, err := s.redis.ZRange(ctx, s.keys.Sessions(), 0, -1).Result()
	if err != nil {
		return s.wrap("end all sessions", err)
	}
	return s.redis.Pipelined(ctx, "end all sessions", func(c rdb.Commands) {
		for _, id := range ids {
			s.recent.forget(id)
			c.Del(ctx, s.keys.Session(id))
			c.ZRem(ctx, s.keys.Sessions(), id)
		}
	})
}
