package web_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/ingest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
)

// loggingServer is a server that logs at INFO, as operators have it.
func loggingServer(t *testing.T, redis *rdbtest.Server) (send func(who, method, path, body string) int, logged *bytes.Buffer) {
	all := storetest.OpenAll(t, redis)
	require.NoError(t, all.PutToken(t.Context(), "alice--s3cret", "alice"))
	logged = &bytes.Buffer{}
	log := slog.New(slog.NewTextHandler(logged, nil))
	s := web.New(web.Config{RootKey: "the-root-key", NonceTTL: time.Minute, MaxEventData: 64}, all, ingest.New(all, ingest.Options{}), http.NotFoundHandler(), log, time.Now)
	handler, worker := s.Handler(), storetest.NewWorker(all, time.Now)
	return func(who, method, path, body string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		if who != "" {
			r.SetBasicAuth(who, "")
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		assert.NoError(t, worker.Relay(t.Context(), time.Now())) // or the topic could not be deleted
		return w.Code
	}, logged
}

func TestWhoChangedWhatIsLogged(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		send, logged := loggingServer(t, redis)
		const alice, root = "alice--s3cret", "the-root-key"
		last := func() string {
			lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
			return lines[len(lines)-1]
		}
		for _, change := range []struct{ who, method, path, body, want string }{
			{root, "POST", "/api_tokens", `{"name":"bob","token":"bob--s3cret"}`, `level=INFO msg="token created" request_id=\w+ client=root name=bob$`},
			{alice, "POST", "/subscription", `{"topics":["a","b"],"callback":"https://x.example/s3cret","uuid":"s3cret"}`, `msg="subscription set" request_id=\w+ client=alice topics=2 callback_host=x.example$`},
			{alice, "DELETE", "/subscription/topics/b", "", `msg="unsubscribed from topic" request_id=\w+ client=alice topic=b$`},
			{alice, "DELETE", "/subscription", "", `msg="subscription deleted" request_id=\w+ client=alice$`},
			{alice, "POST", "/topics/a", `{"type":"noop","url":"https://x.example/"}`, `msg="subscription deleted"`},
			{alice, "DELETE", "/topics/a", "", `msg="topic deleted" request_id=\w+ client=alice topic=a$`},
			{root, "DELETE", "/api_tokens/bob--s3cret", "", `msg="token deleted" request_id=\w+ client=root name=bob$`},
		} {
			assert.Less(t, send(change.who, change.method, change.path, change.body), 300, change.path)
			assert.Regexp(t, change.want, last())
		}
		before := logged.Len()
		assert.Equal(t, 204, send(root, "DELETE", "/api_tokens/bob--s3cret", ""))
		assert.Equal(t, 404, send(alice, "DELETE", "/topics/none", ""))
		assert.Equal(t, before, logged.Len(), "nothing has changed")
		assert.NotContains(t, logged.String(), "s3cret")
	})
}
