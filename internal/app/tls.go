package app

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/config"
)

// certCheck is how often a handshake looks whether the certificate was renewed.
const certCheck = 10 * time.Second

// certificate serves a certificate from two files, and takes up a renewed one
// without a restart.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	mu      sync.Mutex
	current *tls.Certificate
	changed time.Time // of the certificate's file
	checked time.Time
}

// newTLS reads the certificate, so that a bad one is noticed before anything is
// touched; nil means plain HTTP.
func newTLS(cfg config.Config, log *slog.Logger, now func() time.Time) (*tls.Config, error) {
	if !cfg.TLS() {
		return nil, nil
	}
	c := &certificate{certFile: cfg.TLSCert, keyFile: cfg.TLSKey, log: log, now: now}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("cannot use --tls-cert and --tls-key: %w", err)
	}
	return &tls.Config{GetCertificate: c.get, GetConfigForClient: noteHello, MinVersion: tls.VersionTLS12}, nil
}

func (c *certificate) load() error {
	st, err := os.Stat(c.certFile)
	if err != nil {
		return err
	}
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.current, c.changed, c.checked = &cert, st.ModTime(), c.now()
	return nil
}

// get returns the certificate for a handshake. A renewal that cannot be read, as
// when only one of the files is written yet, leaves the old one in use.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Sub(c.checked) < certCheck {
		return c.current, nil
	}
	c.checked = now
	if st, err := os.Stat(c.certFile); err != nil || st.ModTime().Equal(c.changed) {
		return c.current, nil
	}
	if err := c.load(); err != nil {
		c.log.Error("the renewed certificate cannot be used; the old one still is", "error", err)
		return c.current, nil
	}
	c.log.Info("took up a renewed certificate")
	return c.current, nil
}
