package auth

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// refusalLogInterval is the pause between two log lines about the same source.
	refusalLogInterval = time.Second
	// maxSources bounds the sources that get a line each, and so the memory and the log they take.
	maxSources = 100
	// otherSources stands for all further sources.
	otherSources = "others"
)

// refusalLog logs refused credentials: for each source one line an interval, with a count.
type refusalLog struct {
	log *slog.Logger

	mu     sync.Mutex
	counts map[string]int
}

// add counts a refusal of a request from a remote address.
func (l *refusalLog) add(remote string) {
	source := sourceOf(remote)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	if _, known := l.counts[source]; !known && len(l.counts) >= maxSources {
		source = otherSources
	}
	l.counts[source]++
}

// flush logs what was refused since the last flush.
func (l *refusalLog) flush() {
	l.mu.Lock()
	counts := l.counts
	l.counts = nil
	l.mu.Unlock()
	for source, count := range counts {
		l.log.Info("refused credentials", "source", source, "count", count)
	}
}

// run flushes at every interval until the context is done, and then once more.
func (l *refusalLog) run(ctx context.Context) {
	ticker := time.NewTicker(refusalLogInterval)
	defer ticker.Stop()
	defer l.flush()
	for {
		select {
		case <-ticker.C:
			l.flush()
		case <-ctx.Done():
			return
		}
	}
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
