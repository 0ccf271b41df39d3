package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"routemaster/internal/bus"
)

// failed notes that there was no response.
func (a *Attempt) failed(ctx context.Context, err error) {
	a.Err, a.Error = explained(err), classify(ctx, err)
	if ctx.Err() != nil {
		a.Err = context.Cause(ctx)
	}
	if a.Doubtful {
		a.Err = fmt.Errorf("%w, over a connection that was used before", a.Err)
	}
}

// explained adds to an error its meaning for the operator of the endpoint. The error of a look-up
// names the resolver, which belongs to the bus operator's network: explained leaves that out.
func explained(err error) error {
	var name *net.DNSError
	if errors.As(err, &name) {
		return &net.DNSError{
			Err: resolverError(name), Name: name.Name, IsTimeout: name.IsTimeout, IsTemporary: name.IsTemporary, IsNotFound: name.IsNotFound,
		}
	}
	if wrong := wrongCertificate(err); wrong != "" {
		return fmt.Errorf("%s: %w", wrong, err)
	}
	return err
}

// resolverError returns why a look-up failed, without the addresses in the errors of its
// connections.
func resolverError(err *net.DNSError) string {
	switch {
	case err.IsNotFound:
		return "no such host"
	case err.IsTimeout:
		return "the name server did not answer in time"
	case strings.Contains(err.Err, "udp") || strings.Contains(err.Err, "tcp"):
		return "the name server cannot be reached"
	}
	return err.Err
}

// wrongCertificate returns the fault of a certificate; empty if there is no word for it.
func wrongCertificate(err error) string {
	var (
		invalid   x509.CertificateInvalidError
		hostname  x509.HostnameError
		authority x509.UnknownAuthorityError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return bus.CertificateExpired
	case errors.As(err, &hostname):
		return bus.CertificateWrongHost
	case errors.As(err, &authority):
		return bus.CertificateUnknownAuthority
	}
	return ""
}

// connectError is an error before there was a connection, including its TLS.
type connectError struct {
	error
	// connected is whether there was a TCP connection.
	connected bool
}

func (e *connectError) Unwrap() error { return e.error }

// classify returns the class of an error of an attempt: one of the errors of attempts in bus. If
// the error itself does not show it, the time at which it came does.
func classify(ctx context.Context, err error) string {
	var denied *deniedError
	var name *net.DNSError
	var connect *connectError
	errors.As(err, &connect)
	switch {
	case errors.As(err, &denied):
		return bus.ErrorDenied
	case errors.As(err, &name):
		return bus.ErrorDNS
	case isTLS(err):
		return bus.ErrorTLS
	case isTimeout(err) || ctx.Err() != nil:
		if connect != nil {
			return bus.ErrorConnectTimeout
		}
		return bus.ErrorTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return bus.ErrorRefused
	case isReset(err):
		return bus.ErrorReset
	case connect != nil && !connect.connected:
		return bus.ErrorUnreachable
	case connect != nil: // other errors of a TLS handshake have no type
		return bus.ErrorTLS
	}
	return bus.ErrorProtocol
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// isTLS reports whether an error is known to be of TLS: a certificate that does not pass, an alert,
// or bytes that are not TLS.
func isTLS(err error) bool {
	var (
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		hostname    x509.HostnameError
		invalid     x509.CertificateInvalidError
		record      tls.RecordHeaderError
		alert       *net.OpError
	)
	if errors.As(err, &alert) && (alert.Op == "remote error" || alert.Op == "local error") { // as crypto/tls wraps them
		return true
	}
	return errors.As(err, &certificate) || errors.As(err, &authority) || errors.As(err, &hostname) ||
		errors.As(err, &invalid) || errors.As(err, &record)
}

// isReset reports whether an error says that the other side closed the connection, or the stream of
// HTTP/2, without a response.
func isReset(err error) bool {
	var stream streamError
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNABORTED) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &stream)
}

// streamError is a stream of HTTP/2 that was reset. [net/http] does not export its own type, but
// lets errors.As convert it to one with the same fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "stream reset" }
