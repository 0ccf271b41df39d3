package web

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

func newBenchServer(b *testing.B) *Server {
	st := storetest.Open(b, rdbtest.Embedded(b))
	require.NoError(b, st.PutToken(b.Context(), "alice--1", "alice"))
	config := Config{RootKey: "the-root-key", NonceTTL: time.Minute}
	return New(config, st, ingest.New(st, 64, nil, time.Now), http.NotFoundHandler(), slog.New(slog.DiscardHandler), time.Now)
}

// BenchmarkParse reads a publish's body, validates its events, and packs them.
func BenchmarkParse(b *testing.B) {
	const event = `{"type":"update","url":"https://warehouse.example/widgets/1234567890","data":{"stock":3,"colour":"red"}}`
	for _, events := range []int{1, 100} {
		b.Run(fmt.Sprintf("events=%d", events), func(b *testing.B) {
			s := newBenchServer(b)
			text := event
			if events > 1 {
				text = "[" + strings.Repeat(event+",", events-1) + event + "]"
			}
			request, sent := httptest.NewRequest(http.MethodPost, "/topics/widgets", nil), strings.NewReader(text)
			request.Body = io.NopCloser(sent)
			answer := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				sent.Reset(text)
				body, err := s.readBodyUpTo(answer, request, s.maxValue(), maxLongBody)
				if err != nil {
					b.Fatal(err)
				}
				if read, err := s.readEvents(body, bus.TopicName("widgets")); err != nil || len(read) != events {
					b.Fatal(len(read), err)
				}
				body.release()
			}
		})
	}
}
