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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/signature"
	"routemaster/internal/test/bustest"
)

// TestTheExampleReceiversReceive starts each example as its page says, and delivers an event to it.
func TestTheExampleReceiversReceive(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, rdbtest.Embedded(t))
	publisher := b.AddClient("publisher")
	for number, command := range receivers(t) {
		t.Run(filepath.Base(command[0]), func(t *testing.T) {
			address := rdbtest.FreeAddress(t)
			lines := startReceiver(t, address, command)
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
			b.Drain() // it prints before it answers, and is killed when the subtest ends
		})
	}
	b.RequireNothingLeft()
}

// TestTheExampleReceiversCheckSignatures sends signed deliveries to each example.
func TestTheExampleReceiversCheckSignatures(t *testing.T) {
	t.Parallel()
	const body = `[{"topic":"widgets","type":"update","url":"https://x.example/é","t":1700000000000}]`
	secret := signature.Generate(signature.HMAC, time.Now())
	other := signature.Generate(signature.HMAC, time.Now())
	for _, command := range receivers(t) {
		t.Run(filepath.Base(command[0]), func(t *testing.T) {
			address := rdbtest.FreeAddress(t)
			lines := startReceiver(t, address, command, "SECRET="+secret.Text())
			waitForListener(t, address)
			now := time.Now()
			for _, c := range []struct {
				secrets []signature.Secret
				at      time.Time
				body    string
				want    int
			}{
				{nil, now, body, 401},
				{[]signature.Secret{other}, now, body, 401},
				{[]signature.Secret{secret}, now, body + " ", 401},
				{[]signature.Secret{secret}, now.Add(-6 * time.Minute), body, 401},
				{[]signature.Secret{secret}, now.Add(6 * time.Minute), body, 401},
				{[]signature.Secret{other, secret}, now, body, 204},
			} {
				signer := signature.NewSigner(c.secrets, "OFMKv1hQt3zq0Zb5AAAB", c.at)
				_, _ = signer.Write([]byte(body))
				assert.Equal(t, c.want, postDelivery(t, address, "the-uuid", c.body, signer), "%v", c)
			}
			assert.Equal(t, "widgets update https://x.example/é", <-lines)
			assert.Empty(t, lines)
		})
	}
}

// postDelivery sends a body to a receiver, with the headers of a signer, and returns the status.
func postDelivery(t *testing.T, address, uuid, body string, signer *signature.Signer) int {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler()) // for a client that trusts the certificate
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+"/events", strings.NewReader(body))
	require.NoError(t, err)
	r.SetBasicAuth(uuid, "x")
	signer.SetHeader(r.Header)
	response, err := server.Client().Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	return response.StatusCode
}

// receivers are the commands of the examples that can run here.
func receivers(t *testing.T) (commands [][]string) {
	t.Helper()
	return exampleCommands(t, "../../examples/receivers/receiver")
}

// buildProgram builds the program whose code is in a folder.
func buildProgram(t *testing.T, program, code string) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, code)
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as all else that is built without the race detector
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
}

// exampleCommands are the commands that run an example in Go, and in Python and Node if these are
// installed; with the race detector in Go alone. Path is the path of its source files without the
// extension.
func exampleCommands(t *testing.T, path string) (commands [][]string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), filepath.Base(path))
	buildProgram(t, program, filepath.Dir(path))
	commands = [][]string{{program}}
	for _, command := range [][]string{{"python3", path + ".py"}, {"node", path + ".mjs"}} {
		if _, err := exec.LookPath(command[0]); err != nil && os.Getenv("CI") == "" {
			t.Logf("%s is not installed: install it to test the example", command[0])
			continue
		}
		commands = append(commands, command)
	}
	return commands[:rdbtest.Fewer(len(commands))]
}

// startReceiver runs a receiver until the test ends, and returns its lines of output. It may still
// be starting: the bus tries again until the receiver listens.
func startReceiver(t *testing.T, address string, args []string, env ...string) (lines chan string) {
	t.Helper()
	certificate, key := writeCertificate(t)
	return startExample(t, address, args, append(env, "CERT="+certificate, "KEY="+key, "UUID=the-uuid")...)
}

// startExample runs an example, told to listen on an address, until the test ends, and returns the
// lines that it prints.
func startExample(t *testing.T, address string, args []string, env ...string) (lines chan string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), args[0], args[1:]...)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	command.Env = append(append(os.Environ(), "PORT="+port), env...)
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

// waitForListener waits until an address accepts connections.
func waitForListener(t *testing.T, address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	}, bustest.WaitTimeout, 10*time.Millisecond)
}

// requireStrangersAreRefused sends a delivery with another uuid.
func requireStrangersAreRefused(t *testing.T, address string) {
	t.Helper()
	assert.Equal(t, http.StatusUnauthorized, postDelivery(t, address, "another-uuid", "[]", nil))
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
