package delivery

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/outbound"
	"routemaster/internal/signature"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

func packed(t testing.TB, number int) wire.PackedEvent {
	t.Helper()
	return wiretest.Pack(t, "widgets", fmt.Sprintf(`{"type":"noop","url":"https://x.example/%d"}`, number))
}

func TestPayload(t *testing.T) {
	const broken = 7 // every seventh, if any
	for _, c := range []struct {
		events int
		broken bool
	}{{0, false}, {1, false}, {2, false}, {1000, false}, {1, true}, {8, true}, {15, true}, {1000, true}} {
		var events []wire.PackedEvent
		var want []string
		for i := range c.events {
			if c.broken && i%broken == 0 {
				events = append(events, wire.PackedEvent("\x92\xa1e"))
				continue
			}
			events = append(events, packed(t, i))
			want = append(want, fmt.Sprintf("https://x.example/%d", i))
		}
		p, unreadable, _ := newPayload(events, 0, io.Discard)
		assert.Equal(t, len(events)-len(want), unreadable)
		assert.Len(t, p.events, len(want))
		text, err := io.ReadAll(p.reader())
		require.NoError(t, err)
		if len(want) > 0 {
			assert.Len(t, text, int(p.length))
			require.NoError(t, iotest.TestReader(p.reader(), text), "however it is read")
			var got []struct{ URL string }
			require.NoError(t, json.Unmarshal(text, &got))
			for i, event := range got {
				assert.Equal(t, want[i], event.URL)
			}
			assert.Len(t, got, len(want))
		}
	}
}

// TestASmallDeliveryIsOneRecord has a server look at the first record of TLS that it gets.
func TestASmallDeliveryIsOneRecord(t *testing.T) {
	certificate := httptest.NewTLSServer(nil)
	certificate.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: certificate.TLS.Certificates, NextProtos: []string{"http/1.1"},
	})
	require.NoError(t, err)
	defer listener.Close()
	record := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		buffer := make([]byte, 16<<10)
		n, _ := conn.Read(buffer) // of one record
		record <- string(buffer[:n])
		_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
	}()
	client := outbound.New(outbound.Config{ConnectTimeout: time.Minute, Timeout: time.Minute}, time.Now)
	defer client.Close()
	p, _, _ := newPayload([]wire.PackedEvent{packed(t, 1), packed(t, 2)}, 0, io.Discard)
	a := client.Send(t.Context(), outbound.Request{URL: "https://" + listener.Addr().String(), Body: p.reader, Length: p.length})
	require.NoError(t, a.Err)
	assert.Regexp(t, `(?s)^POST / HTTP/1\.1\r\n.*\r\n\r\n\[{.*},{.*}\]$`, <-record)
}

// BenchmarkPayload makes the JSON of 100 events twice, as a delivery does: to count it, and to send
// it. A signer takes the counted JSON.
func BenchmarkPayload(b *testing.B) {
	var events []wire.PackedEvent
	for i := range 100 {
		events = append(events, packed(b, i))
	}
	for name, secrets := range map[string][]signature.Secret{
		"unsigned": nil, "hmac-sha256": {signature.Generate(signature.HMAC, time.Now())}, "ed25519": {signature.Generate(signature.Ed25519, time.Now())},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				signer := signature.NewSigner(secrets, "OFMKv1hQt3zq0Zb5AAAB", time.Now())
				p, _, _ := newPayload(events, 0, signer)
				signer.SetHeader(http.Header{})
				n, err := io.Copy(io.Discard, p.reader())
				if err != nil || n != p.length {
					b.Fatal(n, err)
				}
			}
		})
	}
}

func TestPayloadCountsWhatIsLeftOut(t *testing.T) {
	_, unreadable, err := newPayload([]wire.PackedEvent{packed(t, 0), wire.PackedEvent("x"), wire.PackedEvent("y")}, 0, io.Discard)
	assert.Equal(t, 2, unreadable)
	assert.ErrorContains(t, err, "unpack event")
}
