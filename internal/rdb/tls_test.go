package rdb

import (
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/selfsigned"
)

func TestFilesForTLS(t *testing.T) {
	directory := t.TempDir()
	cert, key, text := filepath.Join(directory, "cert & more.pem"), filepath.Join(directory, "key.pem"), filepath.Join(directory, "text")
	require.NoError(t, os.WriteFile(text, []byte("no PEM"), 0o600))
	writePair(t, cert, key)
	query := func(pairs ...string) string {
		values := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			values.Set(pairs[i], pairs[i+1])
		}
		return "?" + values.Encode()
	}
	for _, where := range []string{"rediss://:secret@a/3", "rediss+sentinel://a,b/bus", "rediss+cluster://a,b"} {
		s, err := openSource(where+query("cacert", cert, "cert", cert, "key", key, "read_timeout", "9"), 1)
		require.NoError(t, err, where)
		assert.Equal(t, 9.0, s.options.ReadTimeout.Seconds(), where)
		assert.NotNil(t, s.options.TLSConfig.RootCAs, where)
		before, err := s.options.TLSConfig.GetClientCertificate(nil)
		require.NoError(t, err, where)
		writePair(t, cert, key)
		renewed, err := s.options.TLSConfig.GetClientCertificate(nil)
		require.NoError(t, err, where)
		assert.NotEqual(t, before.Certificate, renewed.Certificate, where)

		s, err = openSource(where, 1)
		require.NoError(t, err, where)
		assert.Nil(t, s.options.TLSConfig.RootCAs, "those of the system")
		assert.Nil(t, s.options.TLSConfig.GetClientCertificate)
	}
	for wrong, why := range map[string]string{
		"redis://a" + query("cacert", cert):                    "must begin with rediss",
		"unix:///socket" + query("cert", cert, "key", key):     "must begin with rediss",
		"rediss://a" + query("cert", cert):                     "cert and key must both be there",
		"rediss://a" + query("key", key):                       "cert and key must both be there",
		"rediss://a" + query("cacert", directory+"/none"):      "cacert: open " + directory + "/none: no such file",
		"rediss://a" + query("cacert", text):                   "cacert: no certificate is in " + text,
		"rediss+cluster://a" + query("cert", text, "key", key): "cert: tls: failed to find any PEM data",
		"rediss://a" + query("cert", cert, "key", cert):        "cert: tls: found a certificate rather than a key",
	} {
		_, err := parseSource(wrong)
		require.NoError(t, err, "%s: no file is read yet", wrong)
		_, err = openSource(wrong, 1)
		assert.ErrorContains(t, err, why, wrong)
	}
}

// writePair writes a new certificate.
func writePair(t *testing.T, cert, key string) {
	made, err := selfsigned.Certificate("127.0.0.1:6379")
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: made.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: der},
	} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
}
