package signature_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/signature"
)

// key is a key of 32 equal bytes, as the operator writes it.
func key(b byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) }

func keyring(t *testing.T, text string) signature.Keyring {
	t.Helper()
	k, err := signature.ParseKeyring(text)
	require.NoError(t, err)
	return k
}

func TestSealedTextsOpenInTheirPlaceOnly(t *testing.T) {
	k := keyring(t, key(1))
	sealed := k.Seal("whsec_abc", "secret/1")
	assert.NotContains(t, sealed, "abc")
	assert.NotEqual(t, sealed, k.Seal("whsec_abc", "secret/1"), "each has a nonce of its own")
	opened, err := k.Open(sealed, "secret/1")
	require.NoError(t, err)
	assert.Equal(t, "whsec_abc", opened)
	_, err = k.Open(sealed, "secret/2")
	assert.ErrorIs(t, err, signature.ErrSealed)
}

func TestChangedTextsDoNotOpen(t *testing.T) {
	k := keyring(t, key(1))
	sealed := k.Seal("whsec_abc", "secret/1")
	for i := len("sealed:"); i < len(sealed); i++ {
		other := byte('A')
		if sealed[i] == other {
			other = 'B'
		}
		changed := sealed[:i] + string(other) + sealed[i+1:]
		_, err := k.Open(changed, "secret/1")
		assert.ErrorIs(t, err, signature.ErrSealed, i)
	}
	for _, text := range []string{"sealed:", "sealed:AAAA", "sealed:***", sealed[:len(sealed)-4]} {
		_, err := k.Open(text, "secret/1")
		assert.ErrorIs(t, err, signature.ErrSealed, text)
	}
}

func TestTheFirstKeySealsAndAnyOpens(t *testing.T) {
	before := keyring(t, key(1)).Seal("a secret", "x")
	both := keyring(t, key(2)+", "+key(1))
	after := both.Seal("a secret", "x")
	for _, sealed := range []string{before, after} {
		opened, err := both.Open(sealed, "x")
		require.NoError(t, err)
		assert.Equal(t, "a secret", opened)
	}
	renewed := keyring(t, key(2))
	_, err := renewed.Open(after, "x")
	require.NoError(t, err, "the first key sealed it")
	_, err = renewed.Open(before, "x")
	assert.ErrorIs(t, err, signature.ErrSealed, "its key is gone")
}

func TestWithoutAKeyTextsStayInTheClear(t *testing.T) {
	none := keyring(t, "")
	assert.Equal(t, "a secret", none.Seal("a secret", "x"))
	for _, k := range []signature.Keyring{none, keyring(t, key(1))} {
		opened, err := k.Open("a secret", "x")
		require.NoError(t, err)
		assert.Equal(t, "a secret", opened)
	}
	_, err := none.Open(keyring(t, key(1)).Seal("a secret", "x"), "x")
	assert.ErrorIs(t, err, signature.ErrSealed)
}

func TestKeysAreNeverShown(t *testing.T) {
	for text, wrong := range map[string]string{
		"topsecret":                    "key 1 ",
		key(1) + "," + key(2)[:40]:     "key 2 ",
		key(1) + ",":                   "key 2 ",
		strings.TrimRight(key(1), "="): "key 1 ",
		base64.StdEncoding.EncodeToString([]byte("topsecret topsecret topsecret ABC")): "key 1 ",
	} {
		_, err := signature.ParseKeyring(text)
		require.ErrorContains(t, err, wrong)
		assert.NotContains(t, err.Error(), "topsecret")
	}
	k := keyring(t, key(7)+","+key(8))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		for _, value := range []any{k, &k, struct{ k signature.Keyring }{k}} {
			printed := fmt.Sprintf(verb, value)
			assert.NotContains(t, printed, "7 7 7", verb)
			assert.NotContains(t, printed, "0x7, 0x7", verb)
			assert.NotContains(t, printed, "07070707", verb)
		}
	}
}
