package console

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnAnswerThatIsTooLongIsNotRead(t *testing.T) {
	part := make([]byte, 1<<20)
	written := 0
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 2 * maxAnswer / len(part) {
			if n, err := w.Write(part); err == nil {
				written += n
			}
		}
	})
	transport := inProcess{api: api, of: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/", nil)}
	resp, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/jobs", nil))
	if resp != nil {
		require.NoError(t, resp.Body.Close())
	}
	require.ErrorContains(t, err, "the bus has more to show here than the 16 MiB that a page reads")
	assert.Equal(t, maxAnswer, written)
}
