package client_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/internal/signature"
)

// delivery is the body that the tests sign.
const delivery = `[{"topic":"widgets","type":"update","url":"https://x.example/1","t":1700000000000}]`

// signed returns the header of a delivery that the bus signs with some secrets.
func signed(body string, at time.Time, secrets ...signature.Secret) http.Header {
	signer := signature.NewSigner(secrets, "OFMKv1hQt3zq0Zb5AAAB", at)
	_, _ = signer.Write([]byte(body))
	header := http.Header{}
	signer.SetHeader(header)
	return header
}

func verifier(t *testing.T, secrets ...string) *client.Verifier {
	t.Helper()
	v, err := client.NewVerifier(secrets...)
	require.NoError(t, err)
	return v
}

func TestAVerifierAcceptsWhatTheBusSigns(t *testing.T) {
	now := time.Now()
	shared, private, other := signature.Generate(signature.HMAC, now), signature.Generate(signature.Ed25519, now), signature.Generate(signature.HMAC, now)
	header := signed(delivery, now, private, shared)
	for _, v := range []*client.Verifier{
		verifier(t, shared.Text()), verifier(t, private.PublicKey()), verifier(t, other.Text(), shared.Text()),
		verifier(t, strings.TrimRight(shared.Text(), "=")),
	} {
		require.NoError(t, v.Verify(header, []byte(delivery), now))
		require.NoError(t, v.Verify(header, []byte(delivery), now.Add(4*time.Minute)))
		require.NoError(t, v.Verify(header, []byte(delivery), now.Add(-4*time.Minute)))
	}
	require.ErrorIs(t, verifier(t, other.Text()).Verify(header, []byte(delivery), now), client.ErrSignature)
}

func TestAVerifierAcceptsWhatTheStandardsLibrarySigns(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	sender, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	now := time.Now()
	sum, err := sender.Sign("id", now, []byte(delivery))
	require.NoError(t, err)
	header := http.Header{
		"Webhook-Id": {"id"}, "Webhook-Timestamp": {strconv.FormatInt(now.Unix(), 10)}, "Webhook-Signature": {"v1a,AAAA v2,x " + sum},
	}
	require.NoError(t, verifier(t, secret).Verify(header, []byte(delivery), now))
}

func TestAVerifierRefusesWhatWasChanged(t *testing.T) {
	now := time.Now()
	shared, private := signature.Generate(signature.HMAC, now), signature.Generate(signature.Ed25519, now)
	v := verifier(t, shared.Text(), private.PublicKey())
	later := now.Add(time.Second)
	for name, c := range map[string]struct {
		change func(http.Header)
		body   string
		at     time.Time
		want   error
	}{
		"a byte more":       {nil, delivery + " ", now, client.ErrSignature},
		"another id":        {func(h http.Header) { h.Set("webhook-id", "other") }, delivery, now, client.ErrSignature},
		"another time":      {func(h http.Header) { h.Set("webhook-timestamp", strconv.FormatInt(later.Unix(), 10)) }, delivery, now, client.ErrSignature},
		"no time":           {func(h http.Header) { h.Set("webhook-timestamp", "now") }, delivery, now, client.ErrUnsigned},
		"other versions":    {func(h http.Header) { h.Set("webhook-signature", "v2,AAAA v1 , v1,*") }, delivery, now, client.ErrSignature},
		"versions switched": {func(h http.Header) { h.Set("webhook-signature", switched(h.Get("webhook-signature"))) }, delivery, now, client.ErrSignature},
		"two ids":           {func(h http.Header) { h.Add("webhook-id", "other") }, delivery, now, client.ErrUnsigned},
		"no id":             {func(h http.Header) { h.Del("webhook-id") }, delivery, now, client.ErrUnsigned},
		"no signature":      {func(h http.Header) { h.Del("webhook-signature") }, delivery, now, client.ErrUnsigned},
		"an old delivery":   {nil, delivery, now.Add(client.MaxSignatureAge + time.Second), client.ErrSignatureTime},
		"a future delivery": {nil, delivery, now.Add(-client.MaxSignatureAge - time.Second), client.ErrSignatureTime},
	} {
		header := signed(delivery, now, shared, private)
		if c.change != nil {
			c.change(header)
		}
		assert.ErrorIs(t, v.Verify(header, []byte(c.body), c.at), c.want, name)
	}
}

// switched gives two signatures the version of each other.
func switched(signatures string) string {
	return strings.NewReplacer("v1,", "v1a,", "v1a,", "v1,").Replace(signatures)
}

func TestAVerifierNeedsSecrets(t *testing.T) {
	short := "whpk_" + base64.StdEncoding.EncodeToString(make([]byte, 31))
	for _, secrets := range [][]string{
		{}, {""}, {"whsec_"}, {"whsec_*topsecret"}, {"topsecret"}, {short},
		{signature.Generate(signature.Ed25519, time.Now()).Text()}, {"whsec_AAAA", ""},
	} {
		_, err := client.NewVerifier(secrets...)
		require.Error(t, err, "%q", secrets)
		assert.NotContains(t, err.Error(), "topsecret")
	}
	assert.Panics(t, func() { client.WithVerifier(nil) })
	v := verifier(t, "whsec_BwcHBwcHBwcH") // each of its bytes is a 7
	for _, shown := range []string{"7 7", "0x7, 0x7"} {
		assert.NotContains(t, fmt.Sprintf("%v %v %+v %#v", v, *v, v, v), shown)
	}
}

func TestAHandlerChecksSignatures(t *testing.T) {
	shared, other := signature.Generate(signature.HMAC, time.Now()), signature.Generate(signature.HMAC, time.Now())
	calls := 0
	receive := func(context.Context, []client.Event) error { calls++; return nil }
	for _, uuid := range []string{"a-uuid", ""} {
		calls = 0
		h := client.NewHandler(uuid, receive, client.WithVerifier(verifier(t, shared.Text())))
		deliver := func(user, body string, header http.Header) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
			r.Header = header
			r.SetBasicAuth(user, "x")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		assert.Equal(t, 204, deliver("a-uuid", delivery, signed(delivery, time.Now(), other, shared)))
		assert.Equal(t, 401, deliver("a-uuid", delivery, signed(delivery, time.Now(), other)))
		assert.Equal(t, 401, deliver("a-uuid", delivery, http.Header{}))
		assert.Equal(t, 401, deliver("a-uuid", delivery, signed(delivery, time.Now().Add(-time.Hour), shared)))
		assert.Equal(t, 400, deliver("a-uuid", "{}", signed("{}", time.Now(), shared)))
		assert.Equal(t, 1, calls)
		want := map[string]int{"a-uuid": 401, "": 204}[uuid]
		assert.Equal(t, want, deliver("another", delivery, signed(delivery, time.Now(), shared)), "with uuid %q", uuid)
	}
}
