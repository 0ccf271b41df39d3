package rdb

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
)

// pemFiles are the files that a URL names for TLS; empty where it names none.
type pemFiles struct {
	// authorities sign the certificates of servers, instead of the system's authorities.
	authorities string
	// certificate is shown to servers, and key is its private key.
	certificate, key string
}

// takePEMFiles takes the parameters out of a query that name files. They are called as redis-cli
// calls its options.
func takePEMFiles(query url.Values) pemFiles {
	take := func(name string) string {
		defer query.Del(name)
		return query.Get(name)
	}
	return pemFiles{authorities: take("cacert"), certificate: take("cert"), key: take("key")}
}

// configure reads the files. The certificate is read anew for each connection, so that it can be
// renewed.
func (f pemFiles) configure(config *tls.Config) error {
	switch {
	case f == pemFiles{}:
		return nil
	case config == nil:
		return errors.New("cacert, cert and key are for TLS: the URL must begin with rediss")
	case (f.certificate == "") != (f.key == ""):
		return errors.New("cert and key must both be there")
	}
	if f.authorities != "" {
		pem, err := os.ReadFile(f.authorities)
		if err != nil {
			return fmt.Errorf("cacert: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("cacert: no certificate is in %s", f.authorities)
		}
	}
	if f.certificate == "" {
		return nil
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(f.certificate, f.key)
		return &pair, err
	}
	if _, err := config.GetClientCertificate(nil); err != nil {
		return fmt.Errorf("cert: %w", err)
	}
	return nil
}
