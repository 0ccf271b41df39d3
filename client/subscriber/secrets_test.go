package subscriber_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client/subscriber"
)

func TestSecretsAreAddedListedAndDeleted(t *testing.T) {
	var sent []string
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, r.Method+" "+r.URL.Path+" "+string(body))
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `[{"id":"B","type":"ed25519","public_key":"whpk_x","created_at":2,"expires_at":null},
				{"id":"A","type":"hmac-sha256","created_at":1,"expires_at":3}]`)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":"A","type":"hmac-sha256","secret":"whsec_x"}`)
	})
	for prefix, s := range map[string]*subscriber.Subscriber{
		"/subscriber/secrets": subscriber.New(c), "/subscribers/shop:1/secrets": subscriber.Of(c, "shop:1"),
	} {
		sent = nil
		day, none := 24*time.Hour, time.Duration(0)
		for _, secret := range []subscriber.NewSecret{
			{}, {Type: "ed25519", OthersExpireIn: &day}, {Secret: "whsec_x", OthersExpireIn: &none}, {OthersExpireIn: &day, KeepOthers: true},
		} {
			added, err := s.AddSecret(t.Context(), secret)
			require.NoError(t, err)
			assert.Equal(t, subscriber.Added{ID: "A", Type: "hmac-sha256", Secret: "whsec_x"}, added)
		}
		all, err := s.Secrets(t.Context())
		require.NoError(t, err)
		ms := func(n int64) subscriber.Time { return subscriber.Time{Time: time.UnixMilli(n)} }
		assert.Equal(t, []subscriber.Secret{
			{ID: "B", Type: "ed25519", PublicKey: "whpk_x", CreatedAt: ms(2)},
			{ID: "A", Type: "hmac-sha256", CreatedAt: ms(1), ExpiresAt: ms(3)},
		}, all)
		require.NoError(t, s.DeleteSecret(t.Context(), "A"))
		assert.Equal(t, []string{
			"POST " + prefix + " {}", "POST " + prefix + ` {"expire_others_in":86400000,"type":"ed25519"}`,
			"POST " + prefix + ` {"expire_others_in":0,"secret":"whsec_x"}`, "POST " + prefix + ` {"expire_others_in":null}`,
			"GET " + prefix + " ", "DELETE " + prefix + "/A ",
		}, sent)
	}
}

// TestNothingIsMadeTwice has all tries of a call bear one key, and the next call another.
func TestNothingIsMadeTwice(t *testing.T) {
	for name, request := range map[string]func(*subscriber.Subscriber) error{
		"a secret": func(s *subscriber.Subscriber) error {
			_, err := s.AddSecret(t.Context(), subscriber.NewSecret{})
			return err
		},
		"a replay": func(s *subscriber.Subscriber) error {
			_, err := s.StartReplay(t.Context(), "widgets", subscriber.ReplayRange{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var keys []string
			s := subscriber.New(connect(t, func(w http.ResponseWriter, r *http.Request) {
				keys = append(keys, r.Header.Get("Idempotency-Key"))
				if len(keys) == 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, `{"id":"A"}`)
			}))
			for range 2 {
				require.NoError(t, request(s))
			}
			require.Len(t, keys, 3)
			assert.NotEmpty(t, keys[0])
			assert.Equal(t, keys[0], keys[1])
			assert.NotEqual(t, keys[0], keys[2])
		})
	}
}
