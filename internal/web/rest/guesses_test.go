package rest

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
	"routemaster/internal/telemetry"
)

// TestGuessesAreSlowedDown has one address send many wrong credentials at once, and right ones
// between them.
func TestGuessesAreSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := &fixedTokens{names: map[bus.Token]bus.ClientName{"alice--1": "alice"}}
		a := New(Config{RootKey: "the-root-key", NonceTTL: time.Minute}, tokens, slog.New(slog.DiscardHandler), time.Now)
		request := func(secret, remote string) error {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/pulse", nil)
			r.RemoteAddr = remote
			if secret != "" {
				r.SetBasicAuth(secret, "")
			}
			_, err := a.Authenticate(r)
			return err
		}
		const guesses = 100
		answers := make(chan error, guesses)
		for i := range guesses {
			go func() { answers <- request(fmt.Sprintf("guess-%d", i), "192.0.2.1:1") }()
		}
		synctest.Wait() // all are answered, or wait for their turn
		began := time.Now()
		for _, secret := range []string{"alice--1", "the-root-key"} {
			assert.NoError(t, request(secret, "192.0.2.1:2"))
		}
		assert.Equal(t, ErrRefused, request("", "192.0.2.1:3"), "it asks for a challenge")
		assert.Equal(t, ErrRefused, request("wrong", "192.0.2.2:1"), "from elsewhere")
		assert.Equal(t, began, time.Now(), "nothing of that waits")
		count := map[error]int{}
		for range guesses {
			count[<-answers]++
		}
		perWait := guessesPerSecond * int(guessWait/time.Second)
		assert.Equal(t, guesses, count[ErrRefused]+count[ErrGuesses])
		assert.InDelta(t, guessBurst+perWait, count[ErrRefused], 1, "the last may be just too late")
		time.Sleep(time.Minute)
		assert.Equal(t, ErrRefused, request("wrong", "192.0.2.1:1"))
	})
}

func TestSourcesOfGuessesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGuesses()
		busy := g.of("busy")
		busy.AllowN(time.Now(), guessBurst)
		for i := range maxGuessers + 10 {
			g.of(fmt.Sprint(i)).Allow()
			assert.LessOrEqual(t, len(g.sources), maxGuessers)
		}
		assert.Same(t, g.others, g.of("one more"))
		time.Sleep(time.Second)
		busy.AllowN(time.Now(), guessesPerSecond)
		assert.NotSame(t, g.others, g.of("one more"), "idle ones made room")
		assert.Same(t, busy, g.of("busy"))
	})
}

func TestRefusedCredentialsAreALineIn10SecondsForEachSource(t *testing.T) {
	logged := &bytes.Buffer{}
	log := telemetry.NewLogger(logged, slog.LevelInfo, false)
	a := New(Config{RootKey: "the-root-key", NonceTTL: time.Minute}, &fixedTokens{}, log, time.Now)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/topics", nil)
	_, err := a.Authenticate(r)
	assert.Equal(t, ErrRefused, err)
	assert.Empty(t, logged.String(), "a request without credentials is not logged")
	r.SetBasicAuth("wrong--s3cret", "")
	for range 5 {
		_, err := a.Authenticate(r)
		assert.Equal(t, ErrRefused, err)
	}
	telemetry.Flush(log)
	assert.Regexp(t, `\A\S+ level=INFO msg="refused credentials" source=192.0.2.1\n`+
		`\S+ level=INFO msg="refused credentials" source=192.0.2.1 times=4\n\z`, logged.String())
}

func TestSourceOf(t *testing.T) {
	assert.Equal(t, "2001:db8::/64", sourceOf("[2001:db8::1]:80"))
	assert.Equal(t, "10.1.2.3", sourceOf("[::ffff:10.1.2.3]:80"))
	assert.Equal(t, "unknown", sourceOf("@"))
}
