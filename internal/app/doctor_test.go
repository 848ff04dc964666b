package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/doctor"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/idptest"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/webhook"
)

// wantFinding fails unless the doctor found something of this level and text.
func wantFinding(t *testing.T, cfg config.Config, level doctor.Level, check, text string) {
	t.Helper()
	found := Doctor(t.Context(), cfg, func(string) {})
	if !slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return f.Level == level && f.Check == check && strings.Contains(f.Text, text)
	}) {
		t.Errorf("no %s of %s with %q among:\n%s", level, check, text, findings(found))
	}
	for _, f := range found {
		if f.Level == doctor.Problem && f.Do == "" {
			t.Errorf("%s: %s: says not what to do", f.Check, f.Text)
		}
	}
}

func findings(list []doctor.Finding) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "%s %s: %s → %s\n", f.Level, f.Check, f.Text, f.Do)
	}
	return b.String()
}

// doctorConfig has settings with which nothing is wrong.
func doctorConfig(t *testing.T) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Data, cfg.Listen = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0"
	return cfg
}

func TestDoctorFindsNothingWrong(t *testing.T) {
	t.Parallel()
	for _, started := range []bool{false, true} {
		cfg := doctorConfig(t)
		if started {
			s := startServer(t, cfg)
			t.Cleanup(func() { _ = s.Shutdown() })
			cfg.Listen = strings.TrimPrefix(s.URL(), "http://")
			cfg.PublicURL = s.URL()
			wantFinding(t, cfg, doctor.OK, "ports", "a Parley server listens")
			wantFinding(t, cfg, doctor.OK, "public URL", "a Parley server responds")
			wantFinding(t, cfg, doctor.OK, "migrations", "up to date")
		}
		found := Doctor(t.Context(), cfg, func(string) {})
		for _, f := range found {
			if f.Level == doctor.Problem {
				t.Errorf("a problem of a good set-up: %+v", f)
			}
		}
		if _, err := os.Stat(cfg.Data); !started && err == nil {
			t.Error("the doctor made the data folder")
		}
	}
}

func TestDoctorOfSettingsAndFiles(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	for _, c := range []struct {
		name  string
		edit  func(*config.Config)
		level doctor.Level
		check string
		text  string
	}{
		{"a bad setting", func(c *config.Config) { c.RateLimit = -1 }, doctor.Problem, "settings", "--rate-limit"},
		{"a bad list", func(c *config.Config) { c.PushAllow = []string{"a b"} }, doctor.Problem, "settings", "--push-allow"},
		{"no rate limit", func(c *config.Config) { c.RateLimit = 0 }, doctor.Warning, "settings", "--rate-limit"},
		{"open", func(c *config.Config) { c.Listen = "0.0.0.0:0" }, doctor.Warning, "settings", "--public-url"},
		{"open metrics", func(c *config.Config) { c.Listen = "0.0.0.0:0" }, doctor.Warning, "settings", "/metrics"},
		{"any proxy", func(c *config.Config) {
			c.TrustedProxies = []string{"0.0.0.0/0"}
		}, doctor.Problem, "settings", "--trusted-proxies"},
		{"many streams", func(c *config.Config) { c.MaxStreams = 100_000_000 }, doctor.Warning, "limits", "files"},
		{"a file", func(c *config.Config) {
			c.Data = filepath.Join(t.TempDir(), "file")
			_ = os.WriteFile(c.Data, nil, 0o600)
		}, doctor.Problem, "data folder", "not a folder"},
		{"readable by others", func(c *config.Config) {
			_ = os.MkdirAll(c.Data, 0o755)
		}, doctor.Warning, "data folder", "chmod 700"},
		{"not a database", func(c *config.Config) {
			_ = os.MkdirAll(c.Data, 0o700)
			_ = os.WriteFile(filepath.Join(c.Data, "parley.db"), []byte(strings.Repeat("no database", 1000)), 0o600)
		}, doctor.Problem, "database", "damaged"},
		{"a port in use", func(c *config.Config) {
			c.Listen = strings.TrimPrefix(other.URL, "http://")
		}, doctor.Problem, "ports", "cannot listen"},
		{"metrics in use", func(c *config.Config) {
			c.MetricsListen = taken.Addr().String()
		}, doctor.OK, "ports", "in use"},
		{"no database", func(c *config.Config) {
			c.Database = "postgres://nobody@127.0.0.1:1/none?connect_timeout=1"
		}, doctor.Problem, "database", "connect"},
		{"no host", func(c *config.Config) {
			c.PublicURL = "https://parley.invalid"
		}, doctor.Problem, "public URL", "does not resolve"},
		{"nobody there", func(c *config.Config) { c.PublicURL = "http://127.0.0.1:1" }, doctor.Warning, "public URL", "no Parley"},
		{"somebody else", func(c *config.Config) { c.PublicURL = other.URL }, doctor.Warning, "public URL", "404"},
		{"no issuers", func(c *config.Config) { c.Issuers = "/nowhere" }, doctor.Problem, "sign-in", "/nowhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := doctorConfig(t)
			c.edit(&cfg)
			wantFinding(t, cfg, c.level, c.check, c.text)
		})
	}
}

// certFor writes a certificate for a name until a time.
func certFor(t *testing.T, name string, until time.Time) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, b := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestDoctorOfCertificates(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		name, host, public string
		left               time.Duration
		level              doctor.Level
		text               string
	}{
		{"good", "localhost", "https://localhost:1", 90 * day, doctor.OK, "is valid until"},
		{"soon", "localhost", "https://localhost:1", 5 * day, doctor.Warning, "expires on"},
		{"expired", "localhost", "https://localhost:1", -day, doctor.Problem, "has expired"},
		{"other", "other.example", "https://localhost:1", 90 * day, doctor.Problem, "not for the host"},
	} {
		cfg := doctorConfig(t)
		cfg.TLSCert, cfg.TLSKey = certFor(t, c.host, time.Now().Add(c.left))
		cfg.PublicURL = c.public
		wantFinding(t, cfg, c.level, "TLS", c.text)
	}
	cfg := doctorConfig(t)
	cfg.TLSCert, cfg.TLSKey = "/nowhere", "/nowhere"
	wantFinding(t, cfg, doctor.Problem, "TLS", "cannot use --tls-cert")

	// What callers get.
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	cfg = doctorConfig(t)
	cfg.PublicURL = secure.URL
	wantFinding(t, cfg, doctor.Problem, "public URL", "certificate")

	// A server with another public URL than the one that leads to it.
	cfg = doctorConfig(t)
	cfg.PublicURL = "http://localhost:1"
	s := startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	cfg.PublicURL = s.URL()
	wantFinding(t, cfg, doctor.Problem, "public URL", "believes that its address is http://localhost:1")
}

func TestDoctorOfOtherHosts(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(receiver.Close)
	up, down := idptest.New(t), idptest.New(t)
	down.Down(true)
	cfg := doctorConfig(t)
	cfg.OutboundAllow = []string{"127.0.0.1"}
	cfg.Issuers = issuerFile(t, "", map[string]*idptest.Issuer{"good": up, "bad": down})
	wantFinding(t, cfg, doctor.OK, "receivers", "no webhooks")
	s := startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	caller, err := s.auth.Authenticate(t.Context(), s.First().Secret)
	if err != nil {
		t.Fatal(err)
	}
	a, err := identity.Authorize(caller, caller.Org, identity.ManageWebhooks)
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{receiver.URL + "/secret-path", "http://127.0.0.1:1/hook"} {
		if _, _, err := s.webhooks.Create(t.Context(), a, webhook.Creation{URL: url}); err != nil {
			t.Fatal(err)
		}
	}
	wantFinding(t, cfg, doctor.OK, "receivers", "can be reached: 1")
	wantFinding(t, cfg, doctor.Warning, "receivers", "http://127.0.0.1:1 cannot be delivered")
	wantFinding(t, cfg, doctor.OK, "sign-in", "good")
	wantFinding(t, cfg, doctor.Problem, "sign-in", "bad")
	cfg.OutboundAllow = nil
	wantFinding(t, cfg, doctor.Warning, "receivers", "https://")
	cfg.Push = false
	wantFinding(t, cfg, doctor.OK, "receivers", "--no-push")
}

func TestDoctorOfPostgres(t *testing.T) {
	t.Parallel()
	cfg := doctorConfig(t)
	cfg.Database = pgtest.URL(t)
	wantFinding(t, cfg, doctor.OK, "database", "PostgreSQL") // an empty database
	wantFinding(t, cfg, doctor.Problem, "database", "fsync is off")
	cfg.DatabaseConnections = 1000
	wantFinding(t, cfg, doctor.Problem, "database", "connections")
	s := startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	wantFinding(t, cfg, doctor.OK, "migrations", "up to date")
}
