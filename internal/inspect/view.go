package inspect

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"routemaster/internal/bus"
	"routemaster/internal/wire"
)

// View returns the form in which a reader sees an attempt.
type View func(wire.AttemptRecord) wire.AttemptRecord

// ForRoot shows all of an attempt. Its texts are fit to be printed: see [Printable].
func ForRoot(r wire.AttemptRecord) wire.AttemptRecord {
	r.Excerpt, r.Detail = Printable(r.Excerpt), Printable(r.Detail)
	return r
}

// ForClient returns the parts of an attempt that the subscriber may see. Clients choose the
// addresses that the bus posts to, so for an address that is not public it hides the answer, how
// the connection failed, and how long there was no answer. The text of an error is for operators,
// except what is wrong with the subscriber's own receipt or, in few words, certificate.
func ForClient(r wire.AttemptRecord) wire.AttemptRecord {
	r = ForRoot(r)
	switch {
	case r.Error == bus.ErrorTLS && r.Public:
		r.Detail = bus.CertificateFault(r.Detail)
	case r.Error != bus.ErrorReceipt:
		r.Detail = ""
	}
	if r.Public {
		return r
	}
	r.Excerpt, r.Error = "", bus.ShownError(r.Error, false)
	if bus.HidesDuration(r.Status, r.Public) {
		r.Duration = 0
	}
	return r
}

// Printable makes text of foreign bytes: it replaces bytes that are not UTF-8, and escapes
// characters that are not graphic, such as control characters, as in Go.
func Printable(text string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, string(utf8.RuneError)) {
		if unicode.IsGraphic(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}
