package rest

import (
	"fmt"
	"net/http"
	"sync"

	"routemaster/internal/bus"
)

// clientShare limits one client to 1/clientShare of a process's memory for bodies, or places.
const clientShare = 4

// Places are how many requests of a process may wait for something at once. One client has at most
// a quarter of them. It is safe for concurrent use.
type Places struct {
	what string
	max  int

	mu    sync.Mutex
	taken int
	by    map[bus.ClientName]int
}

// NewPlaces makes places for waiting requests. Errors name what they wait for.
func NewPlaces(atMost int, what string) *Places {
	return &Places{what: what, max: atMost, by: map[bus.ClientName]int{}}
}

// Take takes a place for a client, which must be left. The error is a [Problem].
func (p *Places) Take(client bus.ClientName) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	share := max(1, p.max/clientShare)
	switch {
	case p.by[client] >= share:
		return nil, &Problem{Status: http.StatusTooManyRequests, Detail: fmt.Sprintf(
			"%d requests of yours wait for %s, which is the share of one client; have fewer wait at once, or send it without wait",
			share, p.what,
		)}
	case p.taken >= p.max:
		return nil, &Problem{Status: http.StatusTooManyRequests, Detail: fmt.Sprintf(
			"too many requests wait for %s; send it again later, or without wait", p.what,
		)}
	}
	p.taken++
	p.by[client]++
	return sync.OnceFunc(func() { p.leave(client) }), nil
}

func (p *Places) leave(client bus.ClientName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.by[client]--; p.by[client] == 0 {
		delete(p.by, client)
	}
}
