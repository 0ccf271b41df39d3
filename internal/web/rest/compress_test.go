package rest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/web/rest"
)

func TestPagesAreCompressedForThoseWhoAcceptIt(t *testing.T) {
	handler := rest.Compress(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<p>a page"))
	}))
	for accepted, want := range map[string]string{
		"": "", "identity": "", "gzip": "gzip", "br, gzip;q=0.5": "gzip", "gzip;q=0.05": "gzip",
		"gzip;q=0": "", "GZIP;Q=0": "", "gzip; q=0.000 , identity": "", "deflate;q=0,gzip": "gzip", "gzip;q=0, deflate": "deflate",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Encoding", accepted)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		assert.Equal(t, want, w.Header().Get("Content-Encoding"), "%q", accepted)
	}
}
