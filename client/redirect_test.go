package client_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
)

func TestCredentialsStayWithTheBus(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		other := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) { w.WriteHeader(200) })
		bus := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) {
			w.Header().Set("Location", other.URL+"/topics/widgets")
			w.WriteHeader(status)
		})
		for _, given := range []*http.Client{nil, {Transport: http.DefaultTransport.(*http.Transport).Clone()}} {
			var options []client.Option
			if given != nil {
				options = append(options, client.WithHTTPClient(given))
			}
			err := connect(t, bus.URL, options...).Publish(t.Context(), anEvent)
			var refused *client.Error
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, status, refused.Status)
			assert.Contains(t, err.Error(), "give the bus's own https URL")
			assert.Empty(t, other.all(), "not even without credentials")
		}
	}
}

func TestRedirectsOnTheSameHostAreFollowed(t *testing.T) {
	secure := &fakeBus{respond: func(_ int, w http.ResponseWriter, _ string) { w.WriteHeader(204) }}
	secure.Server = httptest.NewTLSServer(secure)
	t.Cleanup(secure.Close)
	bus := newFakeBus(t, nil)
	bus.respond = func(n int, w http.ResponseWriter, _ string) {
		switch n {
		case 0: // elsewhere on the bus
			w.Header().Set("Location", "/bus/topics/widgets")
			w.WriteHeader(http.StatusTemporaryRedirect)
		case 1: // to https
			w.Header().Set("Location", secure.URL+"/topics/widgets")
			w.WriteHeader(http.StatusPermanentRedirect)
		case 2: // another method
			w.Header().Set("Location", "/")
			w.WriteHeader(http.StatusFound)
		default: // without end
			w.Header().Set("Location", "/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}
	}
	c := connect(t, bus.URL, client.WithHTTPClient(secure.Client()))
	require.NoError(t, c.Publish(t.Context(), anEvent))
	require.Len(t, secure.all(), 1)
	got, sent := secure.all()[0], bus.all()[0]
	assert.Equal(t, []string{"POST", token, sent.body, sent.key}, []string{got.method, got.user, got.body, got.key})

	assert.ErrorContains(t, c.Publish(t.Context(), anEvent), "302 Found")
	assert.ErrorContains(t, c.Publish(t.Context(), anEvent), "307 Temporary Redirect")
	assert.Less(t, len(bus.all()), 20)
}
