package contract

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/signature"
	"routemaster/internal/test/bustest"
)

// Two keys of ROUTEMASTER_SECRETS_KEY.
const (
	oneKey     = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	anotherKey = "//79/Pv6+fj39vX08/Lx8O/u7ezr6uno5+bl5OPi4eA="
)

func keyring(t *testing.T, keys string) signature.Keyring {
	t.Helper()
	k, err := signature.ParseKeyring(keys)
	require.NoError(t, err)
	return k
}

// received is a delivery.
type received struct {
	header http.Header
	body   []byte
	proto  int
}

// receiveFor subscribes a client, whose endpoint passes on its deliveries and refuses one with 503
// for each value that the client sends to refuse.
func receiveFor(t *testing.T, b *bustest.Bus, token string, max int, http2 bool) (deliveries chan received, refuse chan bool) {
	t.Helper()
	deliveries, refuse = make(chan received, 100), make(chan bool, 100)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		deliveries <- received{r.Header, body, r.ProtoMajor}
		select {
		case <-refuse:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
		}
	}))
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	b.Call(token, "POST", "/subscription",
		fmt.Sprintf(`{"topics":["widgets"],"callback":%q,"uuid":"a","timeout":0,"max":%d}`, server.URL+"/", max), 204)
	return deliveries, refuse
}

// next waits for a delivery.
func next(t *testing.T, deliveries chan received) received {
	t.Helper()
	select {
	case d := <-deliveries:
		return d
	case <-time.After(bustest.WaitTimeout):
		t.Fatal("nothing was delivered")
		return received{}
	}
}

// addSecret has the bus sign, and returns the secret or the public key.
func addSecret(t *testing.T, b *bustest.Bus, token, body string) string {
	t.Helper()
	var added struct {
		Secret    string
		PublicKey string `json:"public_key"`
	}
	require.NoError(t, json.Unmarshal([]byte(b.Call(token, "POST", "/subscriber/secrets", body, 201)), &added))
	return added.Secret + added.PublicKey
}

// requireSigned checks a delivery with the standard's library and with ours.
func requireSigned(t *testing.T, d received, secret, publicKey string) {
	t.Helper()
	library, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	require.NoError(t, library.Verify(d.body, d.header))
	for _, key := range []string{secret, publicKey} {
		require.NoError(t, verify(d, key))
		require.ErrorIs(t, verify(received{header: d.header, body: append(d.body, ' ')}, key), client.ErrSignature)
	}
}

func TestDeliveriesAreSigned(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			b := bustest.Start(t, rdbtest.Embedded(t))
			publisher, shop := b.AddClient("publisher"), b.AddClient("shop")
			deliveries, refuse := receiveFor(t, b, shop, 1000, http2)
			b.Publish(publisher, "widgets", 1)
			unsigned := next(t, deliveries)
			assert.Equal(t, http2, unsigned.proto == 2)
			for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature", "Routemaster-Delivery"} {
				assert.NotContains(t, unsigned.header, http.CanonicalHeaderKey(name))
			}

			secret := addSecret(t, b, shop, `{}`)
			publicKey := addSecret(t, b, shop, `{"type":"ed25519"}`)
			refuse <- true
			const events = 1000
			b.Call(publisher, "POST", "/topics/widgets",
				"["+strings.Repeat(`{"type":"noop","url":"https://x.example/2","data":"é<"},`, events-1)+`{"type":"noop","url":"https://x.example/1"}]`, 200)
			first, second := next(t, deliveries), next(t, deliveries)
			for _, d := range []received{first, second} {
				requireSigned(t, d, secret, publicKey)
				assert.Equal(t, events, strings.Count(string(d.body), "noop"))
				assert.Regexp(t, `^v1a,\S+ v1,\S+$`, d.header.Get("webhook-signature"), "the newest is first")
			}
			id := first.header.Get("webhook-id")
			assert.Len(t, id, 20)
			assert.Equal(t, id, second.header.Get("webhook-id"), "the same content")
			assert.Equal(t, first.body, second.body)
			assert.Equal(t, `batch="`+id+`", attempt=1`, first.header.Get("Routemaster-Delivery"))
			assert.Equal(t, `batch="`+id+`", attempt=2`, second.header.Get("Routemaster-Delivery"))

			var all []struct{ ID string }
			require.NoError(t, json.Unmarshal([]byte(b.Call(shop, "GET", "/subscriber/secrets", "", 200)), &all))
			for _, added := range all {
				b.Call(shop, "DELETE", "/subscriber/secrets/"+added.ID, "", 204)
			}
			b.Publish(publisher, "widgets", 2)
			assert.Empty(t, next(t, deliveries).header.Values("webhook-signature"), "the last secret is gone")
			b.RequireNothingLeft()
		})
	}
}

// TestNothingUnsignedTakesThePlaceOfWhatIsSigned has a worker that lacks the key.
func TestNothingUnsignedTakesThePlaceOfWhatIsSigned(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		b := bustest.Start(t, redis)
		b.StopWeb()
		b.StopWorker()
		b.Log = slog.NewTextHandler(b.Logged, &slog.HandlerOptions{Level: slog.LevelDebug})
		b.Config.Secrets = keyring(t, oneKey)
		b.StartWeb()
		b.Config.Secrets = keyring(t, anotherKey)
		b.StartWorker()
		publisher, shop := b.AddClient("publisher"), b.AddClient("shop")
		deliveries, _ := receiveFor(t, b, shop, 100, false)
		secret := addSecret(t, b, shop, `{}`)
		b.Publish(publisher, "widgets", 1)
		require.Eventually(t, func() bool {
			return strings.Count(b.Call(shop, "GET", "/subscriber/attempts", "", 200), `"error":"secrets"`) >= 2
		}, bustest.WaitTimeout, 10*time.Millisecond, "it is tried again")
		assert.Contains(t, b.Logged.String(), "secrets cannot be opened")
		assert.Empty(t, deliveries)

		b.StopWorker()
		b.Config.Secrets = keyring(t, anotherKey+","+oneKey)
		b.StartWorker()
		require.NoError(t, verify(next(t, deliveries), secret))
		everything := fmt.Sprint(rdbtest.Dump(t, redis.Raw)) + b.Logged.String() + b.Call(bustest.RootKey, "GET", "/metrics", "", 200) +
			b.Call(bustest.RootKey, "GET", "/subscribers/"+shop+"/attempts", "", 200) +
			b.Call(bustest.RootKey, "GET", "/subscribers/"+shop, "", 200) + b.Call(bustest.RootKey, "GET", "/subscribers", "", 200)
		_, encoded, _ := strings.Cut(secret, "_")
		assert.NotContains(t, everything, encoded)
	})
}

// verify checks a delivery with a secret.
func verify(d received, secret string) error {
	verifier, err := client.NewVerifier(secret)
	if err != nil {
		return err
	}
	return verifier.Verify(d.header, d.body, time.Now())
}
