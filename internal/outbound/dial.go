package outbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"routemaster/internal/bus"
)

// trail records facts about the addresses dialled for one connection. Several may be dialled at the
// same time.
type trail struct {
	// trusted lists addresses that count as public.
	trusted bus.DenyList
	// dialled is set with the first address, private with the first that is not public.
	dialled, private atomic.Bool
	// connected is set once a TCP connection is made. Then private is about its address; a dial that
	// came too late may still set it.
	connected atomic.Bool
	// http2 is set if the connection speaks HTTP/2.
	http2 atomic.Bool
	// wire is the connection that was made last.
	wire atomic.Pointer[wire]
}

// public reports whether the address that was connected to is public or, without a connection,
// whether all dialled addresses are.
func (t *trail) public() bool { return t.dialled.Load() && !t.private.Load() }

// isPublic reports whether an address is public, or counts as that.
func (t *trail) isPublic(address netip.Addr) bool {
	return bus.IsPublic(address) || t.trusted.Denies(address)
}

type trailKey struct{}

// withTrail returns a context that records its dials.
func withTrail(ctx context.Context) (context.Context, *trail) {
	t := &trail{}
	return context.WithValue(ctx, trailKey{}, t), t
}

// trailOf is a context's trail, nil if it has none.
func trailOf(ctx context.Context) *trail {
	t, _ := ctx.Value(trailKey{}).(*trail)
	return t
}

// dialer dials, and notes in the context's trail where it got to.
type dialer struct {
	net.Dialer
	tls *tls.Config
	// wantsHTTP2 has the hosts to which HTTP/1.1 alone is not offered.
	wantsHTTP2 hostSet
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w := newWire(conn)
	if t := trailOf(ctx); t != nil {
		t.wire.Store(w)
	}
	noteConnection(ctx, conn.RemoteAddr())
	return w, nil
}

// noteConnection notes in the context's trail that there is a connection to an address.
func noteConnection(ctx context.Context, to net.Addr) {
	if t := trailOf(ctx); t != nil {
		address, _ := netip.ParseAddrPort(to.String())
		t.private.Store(!t.isPublic(address.Addr()))
		t.connected.Store(true)
	}
}

// deniedError is the refusal of an address that is about to be dialled.
type deniedError struct{ address netip.Addr }

func (e *deniedError) Error() string {
	return fmt.Sprintf("the address %s is denied by ROUTEMASTER_CALLBACK_DENY", e.address)
}

// checkAddress refuses a denied address that is about to be dialled. It notes others.
func checkAddress(ctx context.Context, deny bus.DenyList, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if deny.Denies(to.Addr()) {
		return &deniedError{to.Addr()}
	}
	if t := trailOf(ctx); t != nil {
		t.dialled.Store(true)
		if !t.isPublic(to.Addr()) {
			t.private.Store(true)
		}
	}
	return nil
}

// hostPort returns the host and port of a URL, as they are dialled.
func hostPort(u *url.URL) (string, error) {
	host := strings.ToLower(u.Hostname())
	if strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) { // it was percent-encoded
		var err error
		if host, err = idna.Lookup.ToASCII(host); err != nil {
			return "", err
		}
	}
	ports := map[string]string{"https": "443", "http": "80"}
	return net.JoinHostPort(host, cmp.Or(u.Port(), ports[u.Scheme])), nil
}

// outOfFiles returns EMFILE or ENFILE if one of them caused an error, else nil. It also compares
// the text, because [net.DNSError] does not wrap its cause.
func outOfFiles(err error) error {
	if err == nil {
		return nil
	}
	// ENFILE first: its text begins with the text of EMFILE.
	for _, errno := range []error{syscall.ENFILE, syscall.EMFILE} {
		if errors.Is(err, errno) || strings.Contains(err.Error(), errno.Error()) {
			return errno
		}
	}
	return nil
}
