package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/web/rest"
)

// TestAClientHasAShareOfTheWaits waits for as many labels as a client may.
func TestAClientHasAShareOfTheWaits(t *testing.T) {
	h := &machineHandlers{waiting: rest.NewPlaces(4, "labels")}
	read := func(query string) (wait time.Duration, leave func(), err error) {
		r := httptest.NewRequest("POST", "/"+query, nil)
		rest.Identify(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			q := rest.ReadQuery(r)
			wait, leave = h.readWait(r, q)
			err = q.Err()
		})).ServeHTTP(httptest.NewRecorder(), r)
		return wait, leave, err
	}
	wait, leave, err := read("?wait=1000")
	assert.NoError(t, err)
	assert.Equal(t, time.Second, wait)
	_, _, err = read("?wait=1000")
	assert.ErrorContains(t, err, "requests of yours wait for labels", "nothing is changed before")
	wait, _, err = read("")
	assert.NoError(t, err, "it has not asked to wait")
	assert.Zero(t, wait)
	_, _, err = read("?wait=0")
	assert.NoError(t, err)
	leave()
	wait, leave, err = read("")
	assert.NoError(t, err)
	assert.Equal(t, defaultWait, wait)
	leave()
}
