package rest

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateCheckInterval is the minimum time between two checks for a renewed certificate.
const certificateCheckInterval = time.Second

// Certificate is a TLS certificate in files. When the files change, it is read again.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	mu        sync.Mutex
	checkedAt time.Time
	version   [2]fileVersion
	current   *tls.Certificate
}

// fileVersion changes when a file does.
type fileVersion struct {
	modified time.Time
	size     int64
}

// LoadCertificate reads a certificate and its key from files, both in PEM.
func LoadCertificate(certFile, keyFile string, log *slog.Logger, now func() time.Time) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log, now: now}
	var err error
	if c.version, err = c.fileVersions(); err == nil {
		err = c.load()
	}
	if err != nil {
		return nil, fmt.Errorf("TLS certificate: %w", err)
	}
	c.checkedAt = now()
	return c, nil
}

// config is the TLS configuration that serves the certificate, with HTTP/2.
func (c *Certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(), nil },
	}
}

// get returns the certificate that is in the files. A certificate that cannot be read, because it
// is broken or just being written, does not replace the current one.
func (c *Certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if age := now.Sub(c.checkedAt); age >= 0 && age < certificateCheckInterval {
		return c.current
	}
	c.checkedAt = now
	version, err := c.fileVersions() // the zero version if a file is missing
	if version == c.version {
		return c.current
	}
	c.version = version // each version is tried, and logged, once
	if err == nil {
		err = c.load()
	}
	if err != nil {
		c.log.Error("cannot read the renewed TLS certificate, serving the old one", "error", err)
	} else {
		c.log.Info("TLS certificate renewed")
	}
	return c.current
}

func (c *Certificate) load() error {
	read, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err == nil {
		c.current = &read
	}
	return err
}

func (c *Certificate) fileVersions() (version [2]fileVersion, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return [2]fileVersion{}, err
		}
		version[i] = fileVersion{info.ModTime(), info.Size()}
	}
	return version, nil
}
