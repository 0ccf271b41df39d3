package web_test

import (
	"cmp"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
)

// digest makes Authorization headers like a client (RFC 7616).
type digest struct {
	algorithm, nonce, username, password string
	// uri, qop and realm replace the right values in the header unless they are empty.
	uri, qop, realm string
}

var nonces = regexp.MustCompile(`nonce="([^"]+)"`)

// newDigest requests a nonce, to use with a token or the root key.
func (a *api) newDigest(who string) digest {
	a.T.Helper()
	r := httptest.NewRequestWithContext(a.T.Context(), "GET", "/topics", nil)
	w := httptest.NewRecorder()
	a.Handler.ServeHTTP(w, r)
	challenge := w.Result().Header.Values("WWW-Authenticate")[0]
	d := digest{algorithm: a.scheme, nonce: nonces.FindStringSubmatch(challenge)[1], password: who}
	d.username, _, _ = strings.Cut(who, "--")
	if who == rootKey {
		d.username = "root"
	}
	return d
}

func (d digest) header(method, uri string, count int) string {
	sum := func(parts ...string) string {
		text := []byte(strings.Join(parts, ":"))
		if d.algorithm == "MD5" {
			s := md5.Sum(text)
			return hex.EncodeToString(s[:])
		}
		s := sha256.Sum256(text)
		return hex.EncodeToString(s[:])
	}
	uri, qop, realm := cmp.Or(d.uri, uri), cmp.Or(d.qop, "auth"), cmp.Or(d.realm, "routemaster")
	nc := fmt.Sprintf("%08x", count)
	response := sum(sum(d.username, realm, d.password), d.nonce, nc, "c", qop, sum(method, uri))
	return fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="%s", algorithm=%s, qop=%s, nc=%s, cnonce="c", response="%s"`,
		d.username, realm, d.nonce, uri, d.algorithm, qop, nc, response)
}

// with sends a request with an Authorization header, and returns the status and whether the
// challenge says that the nonce is stale.
func (a *api) with(authorization, method, path string) (status int, stale bool) {
	a.T.Helper()
	r := httptest.NewRequestWithContext(a.T.Context(), method, path, nil)
	r.Header.Set("Authorization", authorization)
	w := httptest.NewRecorder()
	a.Handler.ServeHTTP(w, r)
	return w.Code, strings.Contains(w.Header().Get("WWW-Authenticate"), "stale=true")
}

// tampered returns a nonce with one bit of its seal flipped.
func tampered(nonce string) string {
	raw, _ := base64.RawURLEncoding.DecodeString(nonce)
	raw[len(raw)-1] ^= 1
	return base64.RawURLEncoding.EncodeToString(raw)
}

func TestDigest(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	a.scheme = "SHA-256"
	ok := func(d digest, count int) {
		t.Helper()
		status, _ := a.with(d.header("GET", "/topics", count), "GET", "/topics")
		assert.Equal(t, 200, status)
	}
	refused := func(authorization string, wantStale bool) {
		t.Helper()
		status, stale := a.with(authorization, "GET", "/topics")
		assert.Equal(t, 401, status, authorization)
		assert.Equal(t, wantStale, stale, authorization)
	}
	d := a.newDigest(alice)
	ok(d, 0) // Ruby's net-http-digest_auth begins with it
	refused(d.header("GET", "/topics", 0), true)
	ok(d, 1)
	ok(d, 2)
	ok(d, 9)
	refused(d.header("GET", "/topics", 9), true)
	refused(d.header("GET", "/topics", 3), true)
	ok(d, 10)

	a.Do(rootKey, "POST", "/api_tokens", `{"name":"alice","token":"alice--2"}`)
	rotated := a.newDigest("alice--2")
	ok(rotated, 1) // at once, although its name was known without it

	fresh := func(change func(*digest)) string {
		d := a.newDigest(alice)
		change(&d)
		return d.header("GET", "/topics", 1)
	}
	for _, authorization := range []string{
		fresh(func(d *digest) { d.password = "wrong" }),
		fresh(func(d *digest) { d.username = "nobody" }),
		fresh(func(d *digest) { d.username = "bob" }),
		fresh(func(d *digest) { d.username = "root" }),
		fresh(func(d *digest) { d.nonce = "AAAA" }),
		fresh(func(d *digest) { d.nonce = tampered(d.nonce) }),
		fresh(func(d *digest) { d.uri = "/topics?x" }),
		fresh(func(d *digest) { d.uri = "http://example.com/topics" }),
		fresh(func(d *digest) { d.qop = "auth-int" }),
		fresh(func(d *digest) { d.realm = "other" }),
		fresh(func(d *digest) { d.algorithm = "SHA-512" }),
		strings.Replace(fresh(func(*digest) {}), "nc=00000001", "nc=1", 1),
		strings.Replace(fresh(func(*digest) {}), `cnonce="c"`, `cnonce=""`, 1),
		"Digest", "Digest ", "Digest realm=", `Digest username="`, "Bearer x", "Basic", "Basic !", "nonsense",
	} {
		refused(authorization, false)
	}
	lower := "digest  " + strings.TrimPrefix(fresh(func(*digest) {}), "Digest")
	status, _ := a.with(lower, "GET", "/topics")
	assert.Equal(t, 200, status)
}

// TestDigestTakesATokenAsTheUserName sends tokens with an empty password, and with another.
func TestDigestTakesATokenAsTheUserName(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	a.scheme = "MD5"
	send := func(user, password, path string) int {
		d := a.newDigest(alice)
		d.username, d.password = user, password
		status, _ := a.with(d.header("GET", path, 1), "GET", path)
		return status
	}
	assert.Equal(t, 200, send(alice, "", "/subscriptions"))
	assert.Equal(t, 403, send(alice, "", "/api_tokens"))
	assert.Contains(t, []int{200, 204}, send(rootKey, "", "/api_tokens"))
	a.Do(rootKey, "POST", "/api_tokens", `{"name":"alice","token":"alice--2"}`)
	a.Ahead += time.Second
	assert.Equal(t, 200, send("alice--2", "", "/topics"))
	for user, password := range map[string]string{alice: "x", rootKey: "x", "alice": "", "root": "", "nobody": ""} {
		a.Ahead += time.Second // tokens are due to be read: refusals do not wait for that
		assert.Equal(t, 401, send(user, password, "/topics"), user)
	}
}

// TestDigestTakesCredentialsThatAreCutAtAColon sends names and tokens with colons as curl cuts
// them. A user name and password that match uncut take precedence.
func TestDigestTakesCredentialsThatAreCutAtAColon(t *testing.T) {
	const root = "key:x:1"
	a := newAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.RootKey = root })
	a.scheme = "MD5"
	send := func(user, password string) (status int, caller string) {
		d := a.newDigest(alice)
		d.username, d.password = user, password
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/whoami", nil)
		r.Header.Set("Authorization", d.header("GET", "/whoami", 1))
		w := httptest.NewRecorder()
		a.Handler.ServeHTTP(w, r)
		var who struct{ Client string }
		_ = json.Unmarshal(w.Body.Bytes(), &who)
		return w.Code, who.Client
	}
	for token, name := range map[bus.Token]bus.ClientName{
		"tok:en": "n1", "q": "x:y", "r": "x:y:z", "a:b": "c:d", "z:r": "x:y", "v:w": "u", "w": "u:v",
	} {
		require.NoError(t, a.PutToken(t.Context(), token, name))
	}
	a.Ahead += time.Second // the tokens are read again: refusals do not wait for that
	for _, c := range []struct{ user, password, want string }{
		{"tok", "en:", "n1"}, {"tok:en", "", "n1"}, {"n1", "tok:en", "n1"}, {"x", "y:q", "x:y"}, {"x:y", "q", "x:y"},
		{"c", "d:a:b", "c:d"}, {"a", "b:", "c:d"}, {"x", "y:z:r", "x:y:z"}, {"x:y", "z:r", "x:y"},
		{"u", "v:w", "u"}, {"u:v", "w", "u:v"}, {"root", root, "root"}, {"key", "x:1:", "root"}, {root, "", "root"},
	} {
		status, caller := send(c.user, c.password)
		assert.Equal(t, 200, status, c)
		assert.Equal(t, c.want, caller, c)
	}
	for _, c := range [][2]string{
		{"tok", "en"}, {"tok", "en:x"}, {"tok", ""}, {"to", "k:en:"}, {"x", "q"}, {"x", "y"}, {"x", "y:"}, {"x", "y:tok:en"},
		{"y", "q"}, {"c", "d:a"}, {"other", "x:1:"}, {"key", "x:1"}, {"ke", "y:x:1:"}, {"root", "x:1:"}, {"", "tok:en:"},
	} {
		status, caller := send(c[0], c[1])
		assert.Equal(t, 401, status, c)
		assert.Empty(t, caller)
		a.Ahead += time.Second
	}
}

func TestDigestNonces(t *testing.T) {
	redis := rdbtest.Embedded(t)
	now := time.Now().Truncate(time.Millisecond) // the precision of a nonce
	clock := func() time.Time { return now }
	process := func(rootKey string) *api {
		a := newAPI(t, redis, func(c *web.Config) { c.RootKey = rootKey })
		a.scheme, a.Clock = "MD5", clock
		return a
	}
	one, two, stranger := process(rootKey), process(rootKey), process("another root key")
	d := one.newDigest(alice)
	for i, a := range []*api{one, two, one, two} {
		status, _ := a.with(d.header("GET", "/topics", i+1), "GET", "/topics")
		assert.Equal(t, 200, status, "a nonce is good on every process with the same root key")
	}
	status, stale := stranger.with(d.header("GET", "/topics", 9), "GET", "/topics")
	assert.Equal(t, []any{401, false}, []any{status, stale})

	now = now.Add(time.Minute)
	status, _ = one.with(d.header("GET", "/topics", 10), "GET", "/topics")
	assert.Equal(t, 200, status)
	now = now.Add(time.Millisecond)
	status, stale = one.with(d.header("GET", "/topics", 11), "GET", "/topics")
	assert.Equal(t, []any{401, true}, []any{status, stale}, "expired")
	d.password = "wrong"
	status, stale = one.with(d.header("GET", "/topics", 12), "GET", "/topics")
	assert.Equal(t, []any{401, false}, []any{status, stale}, "expired, and the password is wrong")

	d = one.newDigest(alice)
	status, _ = one.with(d.header("GET", "/topics", 5), "GET", "/topics")
	assert.Equal(t, 200, status)
	now = now.Add(59 * time.Second)
	other := one.newDigest(alice)
	status, _ = one.with(other.header("GET", "/topics", 1), "GET", "/topics")
	assert.Equal(t, 200, status)
	status, stale = one.with(d.header("GET", "/topics", 5), "GET", "/topics")
	assert.Equal(t, []any{401, true}, []any{status, stale}, "a count is remembered for a nonce's whole life")
}

// newBalancer has two web processes take turns, and returns its URL.
func newBalancer(t *testing.T) string {
	redis := rdbtest.Embedded(t)
	one, two := newAPI(t, redis), newAPI(t, redis)
	var turn atomic.Int64
	balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		[]*api{one, two}[turn.Add(1)%2].Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(balancer.Close)
	return balancer.URL
}

// TestCurl authenticates with curl, also against two web processes that take turns, and with colons
// in names and tokens: curl ends the user name at the first.
func TestCurl(t *testing.T) {
	rdbtest.NeedCommand(t, "curl")
	t.Setenv("no_proxy", "*")
	balancer := newBalancer(t)
	for _, added := range []string{`{"name":"n1","token":"tok:en"}`, `{"name":"x:y","token":"q"}`} {
		output, err := exec.CommandContext(t.Context(), "curl", "-s", "-u", rootKey+":", "-d", added, balancer+"/api_tokens").Output()
		require.NoError(t, err)
		assert.JSONEq(t, added, string(output))
	}
	for _, args := range [][]string{
		{"-u", alice + ":"},
		{"-u", alice + ":x"},
		{"-u", rootKey + ":"},
		{"-u", "alice:" + alice},
		{"-u", "root:" + rootKey},
		{"--digest", "-u", "alice:" + alice},
		{"--digest", "-u", "root:" + rootKey},
		{"--digest", "-u", alice + ":"},
		{"--digest", "-u", rootKey + ":"},
		{"--anyauth", "-u", "alice:" + alice},
		{"--anyauth", "-u", alice + ":"},
		{"--anyauth", "-u", "root:" + rootKey},
		{"--anyauth", "-u", rootKey + ":"},
		{"--anyauth", "-u", "tok:en:"},
		{"--anyauth", "-u", "n1:tok:en"},
		{"--anyauth", "-u", "x:y:q"},
		{"--digest", "-u", "x:y:q"},
		{"-u", "tok:en:"},
		{"-u", "x:y:q"},
	} {
		args = append(args, "-s", "-o", os.DevNull, "-w", "%{http_code}", balancer+"/subscriptions")
		output, err := exec.CommandContext(t.Context(), "curl", args...).Output()
		require.NoError(t, err)
		assert.Equal(t, "200", string(output), args)
	}
	output, err := exec.CommandContext(t.Context(), "curl", "--digest", "-u", "alice:"+alice, "-s", "-i",
		"-d", `{"type":"noop","url":"https://x.example/"}`, balancer+"/topics/widgets").Output()
	require.NoError(t, err)
	assert.Contains(t, string(output), " 200 OK")
}

// urllibRequests asks for a path several times, as Python's urllib does that was given a password
// manager: with both schemes, it takes Digest.
const urllibRequests = `
import sys, urllib.request
base, user, password = sys.argv[1:]
manager = urllib.request.HTTPPasswordMgrWithDefaultRealm()
manager.add_password(None, base, user, password)
schemes = [urllib.request.HTTPDigestAuthHandler(manager)]
for schemes in [schemes, [urllib.request.HTTPBasicAuthHandler(manager)] + schemes]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), *schemes)
    for i in range(3):
        print(opener.open(base + "/subscriptions").status)
`

// TestUrllib authenticates with Python's standard library, against two web processes.
func TestUrllib(t *testing.T) {
	rdbtest.NeedCommand(t, "python3")
	balancer := newBalancer(t)
	for user, password := range map[string]string{"alice": alice, alice: "", "root": rootKey, rootKey: ""} {
		output, err := exec.CommandContext(t.Context(), "python3", "-c", urllibRequests, balancer, user, password).CombinedOutput()
		require.NoError(t, err, "%s: %s", user, output)
		assert.Equal(t, strings.Repeat("200\n", 6), string(output), user)
	}
}

// TestWget authenticates with wget, which picks a scheme once it is asked to.
func TestWget(t *testing.T) {
	rdbtest.NeedCommand(t, "wget")
	balancer := newBalancer(t)
	for user, password := range map[string]string{"alice": alice, alice: "", "root": rootKey} {
		output, err := exec.CommandContext(t.Context(), "wget", "--no-config", "--no-proxy", "-q", "-O", "-",
			"--user="+user, "--password="+password, balancer+"/subscriptions").Output()
		require.NoError(t, err, user)
		assert.Equal(t, "[]\n", string(output), user)
	}
}
