package bus

import "strings"

// Outcome is the result of an attempt to deliver.
type Outcome string

// The outcomes. Partial is an acknowledgement of some of the events; Dead is a failure after which
// events were put away as dead letters.
const (
	OutcomeAcknowledged Outcome = "acknowledged"
	OutcomePartial      Outcome = "partial"
	OutcomeFailed       Outcome = "failed"
	OutcomeDead         Outcome = "dead"
)

// Outcomes lists all outcomes.
var Outcomes = []Outcome{OutcomeAcknowledged, OutcomePartial, OutcomeFailed, OutcomeDead}

// The errors of attempts: why there was no answer or, for ErrorReceipt, why an answer could not be
// read.
const (
	// ErrorDNS is a name without an address.
	ErrorDNS = "dns"
	// ErrorDenied is an address that the operator does not let be connected to.
	ErrorDenied = "denied"
	// ErrorRefused is a connection that was refused: no process listens on the port.
	ErrorRefused = "refused"
	// ErrorUnreachable is an address to which there is no way.
	ErrorUnreachable = "unreachable"
	// ErrorConnectTimeout is a connection, or its TLS handshake, that took too long.
	ErrorConnectTimeout = "connect_timeout"
	// ErrorTLS is a TLS handshake that failed, most often for the certificate.
	ErrorTLS = "tls"
	// ErrorTimeout is an answer that did not come in time.
	ErrorTimeout = "timeout"
	// ErrorReset is a connection that was closed before the answer.
	ErrorReset = "reset"
	// ErrorProtocol is an answer that is not HTTP, or a URL that cannot be posted to.
	ErrorProtocol = "protocol"
	// ErrorReceipt is the body of a 207 that cannot be read.
	ErrorReceipt = "receipt"
	// ErrorSecrets are the subscriber's secrets, which could not be opened.
	ErrorSecrets = "secrets"
)

// Faults of an endpoint's certificate. The text of an error begins with one.
const (
	CertificateExpired          = "the certificate has expired, or is not valid yet"
	CertificateWrongHost        = "the certificate is for another host"
	CertificateUnknownAuthority = "the certificate is of an unknown authority"
)

// CertificateFault returns the fault of a certificate in few words, given the text of an error of
// class ErrorTLS; empty if the text names none. The rest of the text may contain the names of
// others.
func CertificateFault(text string) string {
	for _, fault := range []string{CertificateExpired, CertificateWrongHost, CertificateUnknownAuthority} {
		if strings.HasPrefix(text, fault) {
			return fault
		}
	}
	return ""
}

// ShownError is the error of an attempt as its subscriber sees it, given whether the address was a
// public one. Clients choose the addresses that the bus posts to, so of others they do not see in
// which way these could not be reached.
func ShownError(err string, public bool) string {
	switch err {
	case ErrorRefused, ErrorReset, ErrorTimeout, ErrorConnectTimeout:
		if !public {
			return ErrorUnreachable
		}
	}
	return err
}

// HidesDuration reports whether clients must not see how long an attempt took, given the status of
// the answer, 0 for none, and whether the address was a public one: where [ShownError] hides in
// which way it could not be reached, the time would say whether it refused or was silent.
func HidesDuration(status int, public bool) bool { return status == 0 && !public }
