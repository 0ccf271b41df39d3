package signature

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"routemaster/internal/bus"
)

// MaxSecrets is how many unexpired secrets a subscriber may have.
const MaxSecrets = 5

// Stored is a secret as it is stored. Its fields other than the secret can be read without a key.
type Stored struct {
	ID   string `json:"id"`
	Type Type   `json:"type"`
	// PublicKey is empty for an HMAC.
	PublicKey string `json:"public_key,omitempty"`
	// CreatedAt and ExpiresAt are in ms since the Unix epoch; an ExpiresAt of 0 is never.
	CreatedAt int64 `json:"created_at"`
	ExpiresAt int64 `json:"expires_at,omitempty"`
	// Text is the secret, sealed if the bus has a key to seal with.
	Text hidden `json:"text"`
}

// hidden is a text that is not printed.
type hidden string

// Format implements [fmt.Formatter].
func (hidden) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(not shown)") }

// place is where a secret's text opens. It does not name the token, because rotating one moves
// secrets that the bus cannot open in that step.
func place(id string) string { return "secret/" + id }

// Seal makes the stored form of a secret.
func (s Secret) Seal(keys Keyring) Stored {
	return Stored{
		ID: s.ID, Type: s.Type(), PublicKey: s.PublicKey(), CreatedAt: millis(s.CreatedAt), ExpiresAt: millis(s.ExpiresAt),
		Text: hidden(keys.Seal(s.Text(), place(s.ID))),
	}
}

// Open returns the secret. It fails with [ErrSealed].
func (s Stored) Open(keys Keyring) (Secret, error) {
	text, err := keys.Open(string(s.Text), place(s.ID))
	if err != nil {
		return Secret{}, err
	}
	m, err := parseMaterial(text)
	if err != nil {
		return Secret{}, errDamaged
	}
	return Secret{ID: s.ID, CreatedAt: fromMillis(s.CreatedAt), ExpiresAt: fromMillis(s.ExpiresAt), material: m}, nil
}

// errDamaged means that Redis has something else than secrets.
var errDamaged = errors.New("stored secrets are damaged")

// List is a subscriber's secrets, newest first.
type List []Stored

// ParseList reads the result of [List.JSON].
func ParseList(text string) (l List, err error) {
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return nil, errDamaged // the cause could show a secret
	}
	return l, nil
}

// JSON is how the list is stored; empty if nothing is in it.
func (l List) JSON() string {
	if len(l) == 0 {
		return ""
	}
	text, err := json.Marshal(l)
	if err != nil { // there is nothing in it that could fail
		panic(fmt.Sprintf("signature: %v", err))
	}
	return string(text)
}

// Open returns the secrets, including expiring ones. If one cannot be opened, none is returned: a
// delivery without the signature that its receiver checks would only be refused. It fails with
// [ErrSealed].
func (l List) Open(keys Keyring) (secrets []Secret, err error) {
	for _, stored := range l {
		secret, err := stored.Open(keys)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}

// Current returns the list without the secrets that have expired.
func (l List) Current(now time.Time) List {
	return slices.DeleteFunc(slices.Clone(l), func(s Stored) bool {
		return s.ExpiresAt != 0 && s.ExpiresAt <= millis(now)
	})
}

// Add puts a secret first, and has the others expire at a time, unless it is zero or they expire
// before. It fails with [bus.ErrTooManySecrets].
func (l List) Add(secret Stored, othersExpire, now time.Time) (List, error) {
	added := slices.Insert(slices.Clone(l), 0, secret)
	for i := range added[1:] {
		if other := &added[i+1]; !othersExpire.IsZero() && (other.ExpiresAt == 0 || other.ExpiresAt > millis(othersExpire)) {
			other.ExpiresAt = millis(othersExpire)
		}
	}
	if added = added.Current(now); len(added) > MaxSecrets {
		return nil, bus.ErrTooManySecrets
	}
	return added, nil
}

// Remove takes a secret out. It fails with [bus.ErrSecretUnknown] if there is none, or it has
// expired.
func (l List) Remove(id string, now time.Time) (List, error) {
	current := l.Current(now)
	rest := slices.DeleteFunc(slices.Clone(current), func(s Stored) bool { return s.ID == id })
	if len(rest) == len(current) {
		return nil, bus.ErrSecretUnknown
	}
	return rest, nil
}

// millis is a time in ms since the Unix epoch; 0 stands for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
