package rest

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// guessesPerSecond is how many wrong credentials from one source are answered in a second, after
	// guessBurst at once; allGuesses limits all sources together.
	guessesPerSecond, guessBurst = 5, 10
	allGuesses                   = 50
	// guessWait is how long a wrong guess waits for its turn at most.
	guessWait = 2 * time.Second
	// maxGuessers bounds the sources that have a rate of their own. The others share one.
	maxGuessers = 1000
)

// ErrGuesses says that more wrong credentials come from a source, or from all, than are answered.
var ErrGuesses = errors.New("too many wrong credentials")

// Guesses slows down guesses of secrets in one process: wrong credentials for the API, and wrong
// logins to the console. Right credentials are not its business, whatever others send from the same
// address. It is safe for concurrent use.
type Guesses struct {
	all, others *rate.Limiter

	mu      sync.Mutex
	sources map[string]*rate.Limiter
}

// NewGuesses makes a limiter that nothing was counted by.
func NewGuesses() *Guesses {
	return &Guesses{
		all: rate.NewLimiter(allGuesses, allGuesses), others: rate.NewLimiter(guessesPerSecond, guessBurst),
		sources: map[string]*rate.Limiter{},
	}
}

// Wait waits for the turn of a wrong guess from a remote address. It fails with [ErrGuesses] if
// that would take longer than [guessWait], at once.
func (g *Guesses) Wait(ctx context.Context, remote string) error {
	ctx, cancel := context.WithTimeout(ctx, guessWait)
	defer cancel()
	if g.of(sourceOf(remote)).Wait(ctx) != nil || g.all.Wait(ctx) != nil {
		return ErrGuesses
	}
	return nil
}

// of returns the limiter of a source.
func (g *Guesses) of(source string) *rate.Limiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if known := g.sources[source]; known != nil {
		return known
	}
	if len(g.sources) >= maxGuessers {
		for other, limiter := range g.sources {
			if limiter.Tokens() >= guessBurst { // as good as new
				delete(g.sources, other)
			}
		}
	}
	if len(g.sources) >= maxGuessers {
		return g.others
	}
	made := rate.NewLimiter(guessesPerSecond, guessBurst)
	g.sources[source] = made
	return made
}

// sourceOf is where a request came from: an IPv4 address, or the /64 network of an IPv6 address,
// since one host may use all addresses of such a network.
func sourceOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return "unknown"
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return "unknown"
	}
	address = address.Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64)
		return network.String()
	}
	return address.String()
}

type uncounted struct{}

// Uncounted returns the context for requests that a part of this process sends in the name of
// others. That part counts their guesses itself. Tests of refusals use it too.
func Uncounted(ctx context.Context) context.Context {
	return context.WithValue(ctx, uncounted{}, true)
}
