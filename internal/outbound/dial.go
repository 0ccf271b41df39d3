package outbound

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"routemaster/internal/bus"
)

// checkAddress refuses a denied address that is about to be dialled.
func checkAddress(deny bus.DenyList, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if deny.Denies(to.Addr()) {
		return fmt.Errorf("the address %s is denied by ROUTEMASTER_CALLBACK_DENY", to.Addr())
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
	// ENFILE first: its text begins with that of EMFILE.
	for _, errno := range []error{syscall.ENFILE, syscall.EMFILE} {
		if errors.Is(err, errno) || strings.Contains(err.Error(), errno.Error()) {
			return errno
		}
	}
	return nil
}
