package signature

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
)

// ID is the webhook-id of a delivery. It stands for the content: it is the batch's UID if the
// delivery is the batch as it was closed. Else it also has the batch's revision, which counts the
// changes of its content, and how many of its events are sent.
func ID(batch bus.BatchID, revision, sent, total int) string {
	if revision == 0 && sent == total {
		return string(batch)
	}
	return fmt.Sprintf("%s-%d-%d", batch, revision, sent)
}

// Signer signs one delivery. The body is written to it, in any pieces.
type Signer struct {
	id, timestamp string
	// keys are the keys of the secrets, newest first. macs are the states of the ones for an HMAC.
	keys []*material
	macs []hash.Hash
	// message is the message that private keys sign; nil if there is none.
	message []byte
}

// NewSigner begins the signatures of a delivery that is sent at a time. Secrets that have expired
// by then do not sign. It returns nil if none signs.
func NewSigner(secrets []Secret, id string, at time.Time) *Signer {
	s := &Signer{id: id, timestamp: strconv.FormatInt(at.Unix(), 10)}
	begin := []byte(s.id + "." + s.timestamp + ".")
	for _, secret := range secrets {
		if secret.expired(at) {
			continue
		}
		s.keys = append(s.keys, secret.material)
		if secret.Type() == Ed25519 {
			s.message = begin
			continue
		}
		mac := hmac.New(sha256.New, secret.material.hmac)
		mac.Write(begin)
		s.macs = append(s.macs, mac)
	}
	if len(s.keys) == 0 {
		return nil
	}
	return s
}

// Write takes the next piece of the body. It never fails. A nil Signer takes nothing.
func (s *Signer) Write(piece []byte) (int, error) {
	if s == nil {
		return len(piece), nil
	}
	for _, mac := range s.macs {
		mac.Write(piece)
	}
	if s.message != nil {
		s.message = append(s.message, piece...)
	}
	return len(piece), nil
}

// SetHeader sets the headers of the standard: webhook-id, webhook-timestamp and webhook-signature.
// The whole body has been written before. A nil Signer sets none.
func (s *Signer) SetHeader(header http.Header) {
	if s == nil {
		return
	}
	header.Set("webhook-id", s.id)
	header.Set("webhook-timestamp", s.timestamp)
	header.Set("webhook-signature", s.signatures())
}

// signatures has one for each secret, newest first.
func (s *Signer) signatures() string {
	all, macs := make([]string, len(s.keys)), s.macs
	for i, key := range s.keys {
		if key.private != nil {
			all[i] = "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(key.private, s.message))
			continue
		}
		all[i], macs = "v1,"+base64.StdEncoding.EncodeToString(macs[0].Sum(nil)), macs[1:]
	}
	return strings.Join(all, " ")
}

// Types are the types of the secrets that sign, newest first, for metrics.
func (s *Signer) Types() (types []Type) {
	if s == nil {
		return nil
	}
	for _, key := range s.keys {
		types = append(types, key.kind())
	}
	return types
}
