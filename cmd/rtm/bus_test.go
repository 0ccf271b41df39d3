package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/selfsigned"
)

// rootKey is the root key of every bus in these tests.
const rootKey = "the-root-key"

// soon bounds how long a test waits for an expected event. Only a failing test waits that long.
const soon = 2 * time.Minute

// testBus is a whole bus, web and worker, in this process, on a real Redis.
type testBus struct {
	redis *rdbtest.Server
	// url is the API in the clear, secureURL over TLS with a self-signed certificate, which is in the
	// file ca. strictURL is a bus that requires TLS but does not speak it itself.
	url, secureURL, strictURL, ca string
	config                        app.Config
}

// startBus starts a bus. It is stopped with the test.
func startBus(t testing.TB, adjust ...func(*app.Config)) *testBus {
	t.Helper()
	b := &testBus{redis: rdbtest.Real(t)}
	certificate, key := selfSigned(t)
	b.ca = certificate
	config, err := app.LoadConfig(func(name string) string {
		return map[string]string{
			"ROUTEMASTER_ROOT_KEY": rootKey, "ROUTEMASTER_REDIS_URL": b.redis.URL, "FORCE_SSL": "no",
			"ROUTEMASTER_SSL_VERIFY": "no", "ROUTEMASTER_CALLBACK_DENY": "none", "ROUTEMASTER_ACQUIRE_TIMEOUT": "1", "ROUTEMASTER_WORKER_THREADS": "4",
		}[name]
	})
	require.NoError(t, err)
	config.ConnectTimeout = time.Minute // as the host may stall
	for _, f := range adjust {
		f(&config)
	}
	b.config = config
	b.url = "http://" + serveWeb(t, config)
	strict := config
	strict.ForceTLS = true
	b.strictURL = "http://" + serveWeb(t, strict)
	secure := config
	secure.TLSCert, secure.TLSKey = certificate, key
	b.secureURL = "https://" + serveWeb(t, secure)
	runDaemon(t, func(ctx context.Context, log *slog.Logger) error { return app.RunWorker(ctx, config, log) })
	return b
}

// serveWeb starts a web, and returns its address.
func serveWeb(t testing.TB, config app.Config) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	runDaemon(t, func(ctx context.Context, log *slog.Logger) error { return app.ServeWeb(ctx, config, log, listener) })
	return listener.Addr().String()
}

// runDaemon runs a daemon until the test ends, or the function that it returns is called.
func runDaemon(t testing.TB, daemon func(context.Context, *slog.Logger) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := daemon(ctx, slog.New(slog.NewTextHandler(io.Discard, nil))); err != nil {
			t.Error(err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// selfSigned writes a certificate for 127.0.0.1 and its key, as PEM files.
func selfSigned(t testing.TB) (certificate, key string) {
	t.Helper()
	signed, err := selfsigned.Certificate("127.0.0.1:0")
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(signed.PrivateKey)
	require.NoError(t, err)
	directory := t.TempDir()
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(directory, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
		return path
	}
	return write("ca.pem", "CERTIFICATE", signed.Certificate[0]), write("key.pem", "PRIVATE KEY", private)
}

// connect returns a client of the bus, for a token or the root key.
func (b *testBus) connect(t testing.TB, token string) *client.Client {
	t.Helper()
	c, err := client.New(b.url, token)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// addClient registers a client and returns its token.
func (b *testBus) addClient(t testing.TB, name string) string {
	t.Helper()
	added, err := b.connect(t, rootKey).AddToken(t.Context(), name, name+"--1")
	require.NoError(t, err)
	return added.Token
}

// installRtm makes a directory with a program rtm: this test binary, which TestMain runs as such.
func installRtm(t testing.TB) (directory string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	directory = t.TempDir()
	require.NoError(t, os.Symlink(self, filepath.Join(directory, "rtm")))
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each takes a second longer under the race detector
	return directory
}
