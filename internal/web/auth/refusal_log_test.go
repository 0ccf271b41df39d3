package auth

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRefusedCredentialsAreLoggedOnceASource(t *testing.T) {
	logged := &bytes.Buffer{}
	log := slog.New(slog.NewTextHandler(logged, nil))
	a := New(Config{RootKey: "the-root-key", NonceTTL: time.Minute}, &fixedTokens{}, log, time.Now)
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/topics", nil)
	_, err := a.Authenticate(r)
	assert.Equal(t, ErrRefused, err)
	a.refused.flush()
	assert.Empty(t, logged.String(), "a request without credentials is not logged")
	r.SetBasicAuth("wrong--s3cret", "")
	for range 5 {
		_, err := a.Authenticate(r)
		assert.Equal(t, ErrRefused, err)
	}
	a.refused.flush()
	assert.Regexp(t, `\A\S+ level=INFO msg="refused credentials" source=192.0.2.1 count=5\n\z`, logged.String())
	logged.Reset()
	for i := range 10_000 {
		a.refused.add(fmt.Sprintf("10.0.%d.%d:1", i/256, i%256))
	}
	a.refused.flush()
	assert.Equal(t, maxSources+1, strings.Count(logged.String(), "\n"))
	assert.Contains(t, logged.String(), fmt.Sprintf("source=others count=%d", 10_000-maxSources))
	logged.Reset()
	a.refused.flush()
	assert.Empty(t, logged.String())
	assert.Equal(t, "2001:db8::/64", sourceOf("[2001:db8::1]:80"))
	assert.Equal(t, "10.1.2.3", sourceOf("[::ffff:10.1.2.3]:80"))
	assert.Equal(t, "unknown", sourceOf("@"))
}

func TestRefusedCredentialsAreLoggedAtEveryIntervalAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := &bytes.Buffer{}
		l := refusalLog{log: slog.New(slog.NewTextHandler(logged, nil))}
		ctx, stop := context.WithCancel(t.Context())
		go l.run(ctx)
		l.add("10.0.0.1:1")
		time.Sleep(refusalLogInterval)
		synctest.Wait()
		assert.Equal(t, 1, strings.Count(logged.String(), "source=10.0.0.1 count=1"), logged)
		l.add("10.0.0.2:1")
		stop()
		synctest.Wait()
		assert.Equal(t, 1, strings.Count(logged.String(), "source=10.0.0.2 count=1"), logged)
	})
}
