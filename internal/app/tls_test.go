package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/config"
)

// writeCert writes a certificate with the given serial number, and its key.
func writeCert(t *testing.T, cfg config.Config, serial int64, changed time.Time) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*pem.Block{
		cfg.TLSCert: {Type: "CERTIFICATE", Bytes: der}, cfg.TLSKey: {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, changed, changed); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRenewedCertificateIsTakenUpWithoutARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cfg := config.Config{TLSCert: filepath.Join(dir, "cert.pem"), TLSKey: filepath.Join(dir, "key.pem")}
	writeCert(t, cfg, 1, now)
	server := &Server{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	tlsConfig, err := server.newTLS(func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	serial := func() int64 {
		t.Helper()
		c, err := tlsConfig.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.SerialNumber.Int64()
	}
	want := func(n int64, when string) {
		t.Helper()
		if got := serial(); got != n {
			t.Errorf("%s: certificate %d; want %d", when, got, n)
		}
	}
	want(1, "at first")
	writeCert(t, cfg, 2, now.Add(time.Minute))
	want(1, "before the next look")
	now = now.Add(certCheck)
	want(2, "after a renewal")
	if err := os.WriteFile(cfg.TLSCert, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(certCheck)
	want(2, "while the new one is being written")
	writeCert(t, cfg, 3, now)
	now = now.Add(certCheck)
	want(3, "when it is there")
}
