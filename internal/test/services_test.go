package test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// TestTheExampleServicesDoJobs has each example do a job of the bus that it has in hand already, as
// another attempt: it came before, and the bus has not got the report.
func TestTheExampleServicesDoJobs(t *testing.T) {
	t.Parallel()
	address := rdbtest.FreeAddress(t) // of one service after the other
	b := bustest.Start(t, rdbtest.Embedded(t), func(c *app.Config) { c.DownstreamURL, c.DownstreamAuth = "http://"+address, "s3cret" })
	shop := b.AddClient("shop")
	for number, command := range exampleCommands(t, "../../examples/services/service") {
		name := filepath.Base(command[0])
		t.Run(name, func(t *testing.T) {
			requireNeedsPassword(t, address, command)
			front, reported, release := holdReports(t, b.API)
			lines := startExample(t, address, command, "BUS="+front, "TOKEN="+shop, "DOWNSTREAM_WORKER_AUTH=s3cret")
			waitForListener(t, address)
			path := fmt.Sprintf("/v1/jobs/%s/job_282227eb-3c76-4ef7-af7e-25dff933077%d", name, number)
			body := `{"data":{"n":7},"attempts":2,"id":"` + filepath.Base(path) + `","attempt":2}` // the bus waits for no such attempt
			assert.Equal(t, 401, postJob(t, address, path, "guessed", body))
			assert.Equal(t, 400, postJob(t, address, path, "s3cret", body[:9]), "this is no JSON")
			require.Equal(t, 202, postJob(t, address, path, "s3cret", body))
			<-reported

			b.Call(shop, "POST", "/v1/jobs", `{"name":"`+name+`","delivery_strategy":"at_least_once","attempts":3,"concurrency":1}`, 201)
			b.Call(shop, "PUT", path, `{"data":{"n":7}}`, 202)
			waitForJob := func(is func(bustest.Job) bool) {
				t.Helper()
				require.Eventually(t, func() bool {
					var job bustest.Job
					return assert.NoError(t, json.Unmarshal([]byte(b.Call(shop, "GET", path, "", 200)), &job)) && is(job)
				}, bustest.WaitTimeout, 10*time.Millisecond)
			}
			waitForJob(func(job bustest.Job) bool { return job.Deadline != nil }) // the service has it
			release()
			waitForJob(func(job bustest.Job) bool { return job.Status == "succeeded" })
			assert.Equal(t, name+` {"n":7}`, strings.ReplaceAll(<-lines, `": `, `":`))
			assert.Empty(t, lines, "it was done once")
		})
	}
	b.RequireNothingLeft()
}

// holdReports starts a server that passes requests on to the bus once they are released.
func holdReports(t *testing.T, api string) (url string, reported <-chan struct{}, release func()) {
	target, err := neturl.Parse(api)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	came, released := make(chan struct{}), make(chan struct{})
	once, release := sync.OnceFunc(func() { close(came) }), sync.OnceFunc(func() { close(released) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once()
		<-released
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		release()
		server.Close()
	})
	return server.URL, came, release
}

// requireNeedsPassword starts a service that does not know the password that the bus sends.
func requireNeedsPassword(t *testing.T, address string, command []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bustest.WaitTimeout)
	defer cancel()
	service := exec.CommandContext(ctx, command[0], command[1:]...)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	service.Env = append(os.Environ(), "PORT="+port, "BUS=http://"+address, "TOKEN=shop--1", "DOWNSTREAM_WORKER_AUTH=")
	output, err := service.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "DOWNSTREAM_WORKER_AUTH is not set\n")
	require.Equal(t, 1, service.ProcessState.ExitCode())
}

// postJob gives a job to a service as the bus does, and returns the status.
func postJob(t *testing.T, address, path, password, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+path, strings.NewReader(body))
	require.NoError(t, err)
	r.SetBasicAuth("jobs", password)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	return response.StatusCode
}
