package test

import (
	"bufio"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// TestTheExampleReceiversReceive starts each example as its page says, and delivers an event to it.
func TestTheExampleReceiversReceive(t *testing.T) {
	program := filepath.Join(t.TempDir(), "receiver")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../examples/receivers")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	b := bustest.Start(t, rdbtest.Embedded(t))
	publisher := b.AddClient("publisher")
	for number, command := range [][]string{
		{program},
		{"python3", "../../examples/receivers/receiver.py"},
		{"node", "../../examples/receivers/receiver.mjs"},
	} {
		t.Run(filepath.Base(command[0]), func(t *testing.T) {
			if _, err := exec.LookPath(command[0]); err != nil && os.Getenv("CI") == "" {
				t.Skipf("%s is not installed: install it to run this test", command[0])
			}
			address := rdbtest.FreeAddress(t)
			lines := startReceiver(t, address, exec.CommandContext(t.Context(), command[0], command[1:]...))
			topic := fmt.Sprintf("topic_%c", 'a'+number)
			b.Call(b.AddClient("shop-"+topic), "POST", "/subscription", fmt.Sprintf(
				`{"topics":[%q],"callback":"https://%s/events","uuid":"the-uuid","timeout":0}`, topic, address), 204)
			b.Publish(publisher, topic, 7)
			select {
			case line := <-lines:
				assert.Equal(t, topic+" update https://x.example/7", line)
			case <-time.After(bustest.WaitTimeout):
				t.Fatal("it has received nothing")
			}
			requireStrangersAreRefused(t, address)
		})
	}
	b.RequireNothingLeft()
}

// startReceiver runs a receiver until the test ends, and returns the lines that it prints. It may
// still be starting: the bus tries again until somebody listens.
func startReceiver(t *testing.T, address string, command *exec.Cmd) (lines chan string) {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	certificate, key := writeCertificate(t)
	command.Env = append(os.Environ(), "PORT="+port, "CERT="+certificate, "KEY="+key, "UUID=the-uuid")
	command.Stderr = &rdbtest.Buffer{}
	stdout, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	lines = make(chan string, 10)
	ended := make(chan struct{})
	go func() { // until the process ends
		defer close(ended)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		_ = command.Wait()
		if t.Failed() {
			t.Logf("it wrote to stderr: %s", command.Stderr)
		}
	})
	return lines
}

// requireStrangersAreRefused sends a delivery with another uuid.
func requireStrangersAreRefused(t *testing.T, address string) {
	t.Helper()
	stranger := httptest.NewTLSServer(http.NotFoundHandler()) // for a client that trusts the certificate
	defer stranger.Close()
	status, _, err := bustest.Send(stranger.Client(), "https://"+address, "another-uuid", "POST", "/events", "[]")
	require.NoError(t, err)
	assert.Equal(t, http.StatusUnauthorized, status)
}

// writeCertificate leaves the certificate that httptest has for loopback, and its key, in PEM
// files.
func writeCertificate(t *testing.T) (certificate, key string) {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	pair := server.TLS.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	return write("cert.pem", "CERTIFICATE", pair.Certificate[0]), write("key.pem", "PRIVATE KEY", private)
}
