package console

import (
	"sync"
	"time"
)

// staleTTL is for how long a session is good that Redis cannot be asked about.
const staleTTL = 15 * time.Minute

// memory has the sessions that Redis knew lately, for while it is away.
type memory struct {
	now func() time.Time

	mu   sync.Mutex
	seen map[string]seen
}

type seen struct {
	session Session
	at      time.Time
}

func (m *memory) keep(id string, session Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil || len(m.seen) >= maxSessions {
		m.seen = map[string]seen{} // the next request of each brings it back
	}
	m.seen[id] = seen{session, m.now()}
}

func (m *memory) find(id string) (Session, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.seen[id]
	known.session.Stale = true
	return known.session, ok && m.now().Sub(known.at) < staleTTL
}

func (m *memory) forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, id)
}
