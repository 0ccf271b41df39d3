package rest

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"routemaster/internal/bus"
)

// BenchmarkAuthentication finds the client of a request's Basic credentials.
func BenchmarkAuthentication(b *testing.B) {
	tokens := &fixedTokens{names: map[bus.Token]bus.ClientName{"alice--1": "alice"}}
	a := New(Config{RootKey: "the-root-key", NonceTTL: time.Minute}, tokens, slog.New(slog.DiscardHandler), time.Now)
	request := httptest.NewRequest(http.MethodPost, "/topics/widgets", nil)
	request.SetBasicAuth("alice--1", "")
	b.ReportAllocs()
	for b.Loop() {
		if client, err := a.Authenticate(request); err != nil || client.Token != "alice--1" {
			b.Fatal(client, err)
		}
	}
}
