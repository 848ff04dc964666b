package app

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certCheck is the minimum time between two checks for a renewed certificate.
const certCheck = 10 * time.Second

// certificate serves a certificate from two files and reloads it when it is renewed.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	mu      sync.Mutex
	current *tls.Certificate
	changed time.Time // modification time of the certificate file
	checked time.Time
}

// newTLS loads the certificate, so that a bad one is found before the store is opened. It
// returns nil for plain HTTP.
func (s *Server) newTLS(now func() time.Time) (*tls.Config, error) {
	switch {
	case s.cfg.UsesACME():
		return s.newACME()
	case !s.cfg.TLS():
		return nil, nil
	}
	c := &certificate{certFile: s.cfg.TLSCert, keyFile: s.cfg.TLSKey, log: s.log, now: now}
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

// get returns the certificate for a handshake. If the renewed files cannot be loaded, for
// example because only one of them is written yet, the old certificate stays in use.
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
		c.log.Error("cannot load the renewed certificate; the old one stays in use", "error", err)
		return c.current, nil
	}
	c.log.Info("loaded a renewed certificate")
	return c.current, nil
}
