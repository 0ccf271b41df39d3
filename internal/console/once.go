package console

import (
	"context"
	"sync"
	"time"
)

// doubleClick is for how long a form that is sent again gets the answer of the first time. A
// browser shows only the second one, and to load that page again takes longer.
const doubleClick = 2 * time.Second

// onces has the answers to forms that may be sent once. It is safe for concurrent use.
type onces struct {
	mu  sync.Mutex
	all map[string]*once
}

// once is a form that was sent. The others are there when done is closed.
type once struct {
	done   chan struct{}
	at     time.Time
	answer Answer
	err    error
}

// once submits the form with a nonce once for all web processes: see [Visit.Once].
func (s *server) once(v *Visit, nonce string, do func(context.Context) (Answer, error)) (Answer, error) {
	o, first := s.onces.find(v.Session+nonce, s.Now())
	if !first {
		<-o.done
		return o.answer, o.err
	}
	defer close(o.done)
	ctx := context.WithoutCancel(v.Context()) // the browser gives up the first of two
	if first, o.err = s.Sessions.IsFirst(ctx, nonce); o.err != nil {
		return o.answer, o.err
	}
	if !first {
		o.err = ErrSentBefore
		return o.answer, o.err
	}
	o.answer, o.err = do(ctx)
	return o.answer, o.err
}

// find finds a form that was sent a moment ago, or notes its first submission. It forgets older
// ones.
func (s *onces) find(key string, now time.Time) (o *once, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, o := range s.all {
		if now.Sub(o.at) >= doubleClick {
			delete(s.all, other)
		}
	}
	if o = s.all[key]; o != nil {
		return o, false
	}
	o = &once{done: make(chan struct{}), at: now}
	s.all[key] = o
	return o, true
}
