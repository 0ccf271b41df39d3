package web_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/signature"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
)

type addedSecret struct {
	ID, Type, Secret string
	PublicKey        string `json:"public_key"`
}

// addSecret adds a signing secret of alice.
func (a subscriberAPI) addSecret(body string) (added addedSecret) {
	a.T.Helper()
	got := a.Do(alice, "POST", "/subscriber/secrets", body)
	require.Equal(a.T, 201, got.Status, got.Body)
	require.NoError(a.T, json.Unmarshal([]byte(got.Body), &added))
	return added
}

type listedSecret struct {
	ID, Type  string
	PublicKey string `json:"public_key"`
	CreatedAt int64  `json:"created_at"`
	ExpiresAt *int64 `json:"expires_at"`
}

func (a subscriberAPI) secrets(who, path string) (found []listedSecret) {
	a.T.Helper()
	require.NoError(a.T, json.Unmarshal([]byte(a.Do(who, "GET", path, "").Body), &found))
	return found
}

func TestSecretsAreAddedAndRemoved(t *testing.T) {
	keys, err := signature.ParseKeyring(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))))
	require.NoError(t, err)
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis, func(c *web.Config) { c.Subscriber.Secrets = keys })
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/"}`)
		assert.Equal(t, "[]", a.Do(alice, "GET", "/subscriber/secrets", "").Body)

		first := a.addSecret("")
		assert.Equal(t, "hmac-sha256", first.Type)
		assert.Regexp(t, `^whsec_[A-Za-z0-9+/]{43}=$`, first.Secret)
		own := "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", 24)))
		second := a.addSecret(`{"secret":"` + own + `","expire_others_in":null}`)
		assert.Equal(t, own, second.Secret)
		_, status := a.settings(alice, "/subscriber")
		assert.Equal(t, true, status["signed"])
		third := a.addSecret(`{"type":"ed25519","expire_others_in":2000}`)
		assert.Empty(t, third.Secret)
		assert.Regexp(t, `^whpk_`, third.PublicKey)

		for who, path := range map[string]string{alice: "/subscriber/secrets", rootKey: "/subscribers/alice--1/secrets"} {
			listed := a.secrets(who, path)
			require.Len(t, listed, 3)
			assert.Equal(t, []string{third.ID, second.ID, first.ID}, []string{listed[0].ID, listed[1].ID, listed[2].ID}, "newest first")
			assert.Equal(t, third.PublicKey, listed[0].PublicKey)
			assert.Nil(t, listed[0].ExpiresAt)
			require.NotNil(t, listed[1].ExpiresAt)
			assert.Equal(t, int64(2000), *listed[1].ExpiresAt-listed[0].CreatedAt)
		}
		everything := a.Log.String() + a.Do(rootKey, "GET", "/subscribers/alice--1/secrets", "").Body + fmt.Sprint(rdbtest.Dump(t, redis.Raw))
		assert.NotContains(t, everything, strings.TrimPrefix(first.Secret, "whsec_"))
		assert.NotContains(t, everything, strings.TrimPrefix(own, "whsec_"))
		assert.NotContains(t, a.Log.String(), alice)
		assert.Regexp(t, `msg="added a signing secret" request_id=\w+ client=alice secret=`+third.ID+` type=ed25519`, a.Log.String())

		a.Ahead += 3 * time.Second
		assert.Len(t, a.secrets(alice, "/subscriber/secrets"), 1, "the others have expired")
		a.RequireDone(alice, "DELETE", "/subscriber/secrets/"+third.ID, "")
		assert.Equal(t, 404, a.Problem(alice, "DELETE", "/subscriber/secrets/"+third.ID, "").Status)
		assert.Equal(t, 404, a.Problem(alice, "DELETE", "/subscriber/secrets/"+first.ID, "").Status, "it has expired")
		assert.Empty(t, a.secrets(alice, "/subscriber/secrets"))
		storetest.RequireAllSound(t, a.Bus)
	})
}

// TestASecretWithAKeyIsAddedOnce, however often its request is sent, while it is not expired.
func TestASecretWithAKeyIsAddedOnce(t *testing.T) {
	keys, err := signature.ParseKeyring(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))))
	require.NoError(t, err)
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis, func(c *web.Config) { c.Subscriber.Secrets = keys })
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/"}`)
		add := func(status int, who, path, body string, keys ...string) (added addedSecret) {
			got := a.DoOnce(who, "POST", path, body, keys...)
			require.Equal(t, status, got.Status, got.Body)
			if status == 201 {
				require.NoError(t, json.Unmarshal([]byte(got.Body), &added))
			}
			return added
		}
		const path = "/subscriber/secrets"
		first := add(201, alice, path, "", "key")
		assert.Equal(t, first, add(201, alice, path, "", "key"))
		assert.Equal(t, first, add(201, alice, path, `{"type":"hmac-sha256","expire_others_in":0}`, "key"))
		assert.Len(t, a.secrets(alice, path), 1)
		add(409, alice, path, `{"type":"ed25519"}`, "key")
		own := `{"secret":"whsec_` + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", 24))) + `"}`
		add(409, alice, path, own, "key")
		ids := map[string]bool{first.ID: true}
		for _, other := range []addedSecret{
			add(201, alice, path, own, "another"), add(201, rootKey, "/subscribers/alice--1/secrets", "", "key"), add(201, alice, path, ""),
		} {
			assert.False(t, ids[other.ID])
			ids[other.ID] = true
		}
		assert.Equal(t, add(201, alice, path, own, "another"), add(201, alice, path, own, "another"))
		assert.Len(t, a.secrets(alice, path), 4)
		add(400, alice, path, "", "one", "two")
		add(400, alice, path, "", "not visible")

		a.RequireDone(alice, "DELETE", path+"/"+first.ID, "")
		assert.NotEqual(t, first.Secret, add(201, alice, path, "", "key").Secret, "that one is gone")
		storetest.RequireAllSound(t, a.Bus)
	})
}

func TestSecretsAreRefused(t *testing.T) {
	a := newSubscriberAPI(t, rdbtest.Embedded(t))
	a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/"}`)
	hmac := func(n int) string {
		return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", n)))
	}
	for _, c := range []struct{ body, pointer string }{
		{`{"secret":"` + hmac(23) + `"}`, "/secret"},
		{`{"secret":"` + hmac(65) + `"}`, "/secret"},
		{`{"secret":"whsec_!"}`, "/secret"},
		{`{"secret":"s3cret"}`, "/secret"},
		{`{"secret":"` + strings.Replace(hmac(32), "whsec_", "whpk_", 1) + `"}`, "/secret"},
		{`{"type":"ed25519","secret":"` + hmac(32) + `"}`, "/secret"},
		{`{"type":"rsa"}`, "/type"},
		{`{"type":1}`, "/type"},
		{`{"expire_others_in":-1}`, "/expire_others_in"},
		{`{"expire_others_in":604800001}`, "/expire_others_in"},
		{`{"expire_others_in":"1"}`, "/expire_others_in"},
		{`{"key":"x"}`, "/key"},
	} {
		got := a.Problem(alice, "POST", "/subscriber/secrets", c.body)
		assert.Equal(t, 400, got.Status, c.body)
		assert.Equal(t, c.pointer, got.Pointer, c.body)
		assert.NotContains(t, got.Detail, "s3cret")
	}
	for range 5 {
		a.addSecret(`{}`)
	}
	assert.Equal(t, 409, a.Problem(alice, "POST", "/subscriber/secrets", `{}`).Status)
	a.addSecret(`{"expire_others_in":0}`)
	assert.Len(t, a.secrets(alice, "/subscriber/secrets"), 1)
}
