package signature_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/signature"
)

var never time.Time

// add adds a generated secret to a list, whose others expire at a time.
func add(t *testing.T, l signature.List, othersExpire, at time.Time) signature.List {
	t.Helper()
	l, err := l.Add(signature.Generate(signature.HMAC, at).Seal(signature.Keyring{}), othersExpire, at)
	require.NoError(t, err)
	return l
}

// ids are the ids of a list's secrets.
func ids(l signature.List) (ids []string) {
	for _, stored := range l {
		ids = append(ids, stored.ID)
	}
	return ids
}

func TestTheNewestSecretIsFirstAndTheOthersExpire(t *testing.T) {
	first := add(t, nil, now.Add(time.Hour), now)
	assert.Zero(t, first[0].ExpiresAt, "there was no other")
	second := add(t, first, now.Add(time.Hour), now)
	assert.Equal(t, first[0].ID, second[1].ID)
	assert.Equal(t, now.Add(time.Hour).UnixMilli(), second[1].ExpiresAt)
	assert.Zero(t, first[0].ExpiresAt, "a list is not changed")

	third := add(t, second, now.Add(2*time.Hour), now)
	assert.Equal(t, []int64{0, now.Add(2 * time.Hour).UnixMilli(), now.Add(time.Hour).UnixMilli()},
		[]int64{third[0].ExpiresAt, third[1].ExpiresAt, third[2].ExpiresAt}, "none expires later than before")
	assert.Equal(t, third[2].ExpiresAt, add(t, third, never, now)[3].ExpiresAt)

	later := now.Add(time.Hour)
	assert.Len(t, third.Current(later.Add(-time.Millisecond)), 3)
	assert.Equal(t, ids(third[:2]), ids(third.Current(later)))
	assert.Len(t, add(t, third, never, later), 3, "what has expired goes")
	assert.Len(t, add(t, third, now, now), 1, "at once")
}

func TestASixthSecretIsRefused(t *testing.T) {
	var l signature.List
	for range signature.MaxSecrets {
		l = add(t, l, never, now)
	}
	_, err := l.Add(signature.Generate(signature.HMAC, now).Seal(signature.Keyring{}), now.Add(time.Hour), now)
	assert.ErrorIs(t, err, bus.ErrTooManySecrets)
	l[4].ExpiresAt = now.UnixMilli()
	assert.Len(t, add(t, l, now.Add(time.Hour), now), signature.MaxSecrets)
}

func TestRemove(t *testing.T) {
	l := add(t, add(t, nil, never, now), now.Add(time.Hour), now)
	rest, err := l.Remove(l[0].ID, now)
	require.NoError(t, err)
	assert.Equal(t, ids(l[1:]), ids(rest))
	_, err = l.Remove("unknown", now)
	require.ErrorIs(t, err, bus.ErrSecretUnknown)
	_, err = l.Remove(l[1].ID, now.Add(time.Hour))
	require.ErrorIs(t, err, bus.ErrSecretUnknown, "it has expired")
	rest, err = l.Remove(l[0].ID, now.Add(time.Hour))
	require.NoError(t, err)
	assert.Empty(t, rest.JSON(), "nothing is stored for those that have expired")
}

func TestAListIsStoredSealed(t *testing.T) {
	key := func(b byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) }
	keys, err := signature.ParseKeyring(key(1))
	require.NoError(t, err)
	var l signature.List
	var texts []string
	for _, kind := range []signature.Type{signature.HMAC, signature.Ed25519} {
		secret := signature.Generate(kind, now)
		texts = append([]string{secret.Text()}, texts...)
		l, err = l.Add(secret.Seal(keys), now.Add(time.Hour), now)
		require.NoError(t, err)
	}
	text := l.JSON()
	for _, secret := range texts {
		_, encoded, _ := strings.Cut(secret, "_")
		assert.NotContains(t, text, encoded)
	}
	read, err := signature.ParseList(text)
	require.NoError(t, err)
	assert.Equal(t, l, read)

	secrets, err := read.Open(keys)
	require.NoError(t, err)
	require.Len(t, secrets, 2)
	for i, secret := range secrets {
		assert.Equal(t, []string{texts[i], l[i].ID, l[i].PublicKey}, []string{secret.Text(), secret.ID, secret.PublicKey()})
		assert.Equal(t, now, secret.CreatedAt)
	}
	assert.Zero(t, secrets[0].ExpiresAt)
	assert.Equal(t, now.Add(time.Hour), secrets[1].ExpiresAt)

	other, err := signature.ParseKeyring(key(2))
	require.NoError(t, err)
	for _, keys := range []signature.Keyring{{}, other} {
		_, err = read.Open(keys)
		assert.ErrorIs(t, err, signature.ErrSealed)
	}
	read[0].ID, read[1].ID = read[1].ID, read[0].ID
	_, err = read.Open(keys)
	assert.ErrorIs(t, err, signature.ErrSealed, "a secret opens under its own ID only")
}

func TestADamagedListIsNotShown(t *testing.T) {
	for _, text := range []string{`[{"text":"whsec_topsecret"`, `{"topsecret":1}`, `["topsecret"]`} {
		_, err := signature.ParseList(text)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "topsecret")
	}
	l, err := signature.ParseList(`[{"id":"x","text":"topsecret"}]`)
	require.NoError(t, err)
	_, err = l.Open(signature.Keyring{})
	assert.EqualError(t, err, "stored secrets are damaged")
	l, err = signature.ParseList("")
	require.NoError(t, err)
	assert.Empty(t, l)
}
