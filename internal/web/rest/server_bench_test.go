package rest

import "testing"

// BenchmarkFraming parses the framing of a publish.
func BenchmarkFraming(b *testing.B) {
	request := []byte("POST /topics/widgets HTTP/1.1\r\nHost: bus.example\r\nAuthorization: Basic YWxpY2UtLTE6\r\n" +
		"Content-Type: application/json\r\nContent-Length: 44\r\n\r\n" + `{"type":"noop","url":"https://x.example/12"}`)
	var f framing
	b.ReportAllocs()
	for b.Loop() {
		f.feed(request)
	}
	if f.ambiguous.Load() || f.part != inHead || f.begun {
		b.Fatal("the request was not parsed to its end")
	}
}
