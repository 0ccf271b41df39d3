package signature

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// ErrSealed means that no key of a keyring opens a text: it was sealed with another key, or for
// another place, or it was changed.
var ErrSealed = errors.New("secrets cannot be opened: ROUTEMASTER_SECRETS_KEY lacks the key that sealed them")

// keySize is the length of a key in bytes.
const keySize = 32

// prefix begins every sealed text; encoding encodes the rest.
const prefix = "sealed:"

var encoding = base64.RawURLEncoding.Strict()

// Keyring seals with its first key, and opens with any of its keys. The zero Keyring has no key,
// and leaves texts in the clear. A Keyring is safe for concurrent use, and never prints its keys.
type Keyring struct{ keys []cipher.AEAD }

// ParseKeyring reads comma-separated keys of 32 bytes in base64. An empty text is the zero Keyring.
// The error says which key is wrong, and never shows it.
func ParseKeyring(text string) (k Keyring, err error) {
	if text == "" {
		return k, nil
	}
	for i, encoded := range strings.Split(text, ",") {
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		if err != nil || len(key) != keySize {
			return Keyring{}, fmt.Errorf("key %d is not the base64 of %d bytes", i+1, keySize)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return Keyring{}, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return Keyring{}, err
		}
		k.keys = append(k.keys, aead)
	}
	return k, nil
}

// Seal encrypts a text for one place, for example "secret/" and an ID. It opens in no other place.
// The text must not begin with "sealed:". Without a key it is returned as it is.
func (k Keyring) Seal(text, place string) string {
	if len(k.keys) == 0 {
		return text
	}
	sealed := k.keys[0].Seal(nil, nil, []byte(text), []byte(place))
	return prefix + encoding.EncodeToString(sealed)
}

// Open decrypts a text that [Keyring.Seal] made for a place. A text that was stored before there
// was a key is returned as it is. The error is [ErrSealed].
func (k Keyring) Open(text, place string) (string, error) {
	encoded, sealed := strings.CutPrefix(text, prefix)
	if !sealed {
		return text, nil
	}
	ciphertext, err := encoding.DecodeString(encoded)
	if err != nil {
		return "", ErrSealed
	}
	for _, key := range k.keys {
		if opened, err := key.Open(nil, nil, ciphertext, []byte(place)); err == nil {
			return string(opened), nil
		}
	}
	return "", ErrSealed
}

// String keeps keys out of logs and errors.
func (k Keyring) String() string { return fmt.Sprintf("%d keys", len(k.keys)) }

// GoString is like String.
func (k Keyring) GoString() string { return "seal.Keyring{" + k.String() + "}" }
