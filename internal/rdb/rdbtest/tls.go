package rdbtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// certificate is the certificate of servers, also towards each other, and of clients. It is for
// 127.0.0.1, and its own authority. A zero certificate disables TLS.
type certificate struct {
	file, keyFile string
	// config is for clients.
	config *tls.Config
}

// newCertificate makes a certificate. Where redis-server is built without TLS, the test is skipped.
func newCertificate(t testing.TB) certificate {
	t.Helper()
	requireTLS(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	made, err := x509.ParseCertificate(der)
	require.NoError(t, err)

	directory, authorities := t.TempDir(), x509.NewCertPool()
	authorities.AddCert(made)
	return certificate{
		file:    writePEM(t, filepath.Join(directory, "cert.pem"), "CERTIFICATE", der),
		keyFile: writePEM(t, filepath.Join(directory, "key.pem"), "PRIVATE KEY", keyDER),
		config: &tls.Config{
			RootCAs: authorities, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		},
	}
}

func writePEM(t testing.TB, file, kind string, der []byte) string {
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return file
}

// requireTLS asks the engine for a port that is none: one that is built without TLS does not know
// the setting at all.
func requireTLS(t testing.TB) {
	path, err := exec.LookPath(Engine())
	if err != nil {
		return // nothing can be started
	}
	if said, _ := exec.Command(path, "--tls-port", "none").CombinedOutput(); strings.Contains(string(said), "Bad directive") {
		skip(t, Engine()+" is built without TLS: install another one to run this test")
	}
}

// arguments have a server listen with the certificate, and with no other port.
func (c certificate) arguments(port string) []string {
	if c.config == nil {
		return []string{"--port", port}
	}
	return []string{
		"--port", "0", "--tls-port", port, "--tls-cluster", "yes", "--tls-replication", "yes",
		"--tls-cert-file", c.file, "--tls-key-file", c.keyFile, "--tls-ca-cert-file", c.file,
	}
}

// scheme returns the scheme of URLs.
func (c certificate) scheme() string {
	if c.config == nil {
		return "redis"
	}
	return "rediss"
}

// parameters are the part of a URL that names the files.
func (c certificate) parameters() string {
	if c.config == nil {
		return ""
	}
	return "&" + url.Values{"cacert": {c.file}, "cert": {c.file}, "key": {c.keyFile}}.Encode()
}
