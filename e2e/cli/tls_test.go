package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// selfSigned writes a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := selfSigned(t)
	s := start(t, "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(s.URL, "https://127.0.0.1:") {
		t.Fatalf("URL = %s, want https://127.0.0.1:...", s.URL)
	}
	list := exec.Command(filepath.Join(binDir, "parley"), "proposal", "list", "--server", s.URL)
	list.Env = cleanEnv(t.TempDir(), "PARLEY_KEY="+s.Key, "SSL_CERT_FILE="+cert)
	if out, err := list.CombinedOutput(); err != nil || string(out) != "no proposals\n" {
		t.Errorf("list over TLS = %q, %v; want no proposals", out, err)
	}
	list = exec.Command(filepath.Join(binDir, "parley"), "proposal", "list", "--server", s.URL)
	list.Env = cleanEnv(t.TempDir(), "PARLEY_KEY="+s.Key)
	out, err := list.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "certificate") || strings.Contains(string(out), "again") {
		t.Errorf("list with an unknown certificate = %q, %v; want one error and no retry", out, err)
	}
	old := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	if conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL, "https://"), old); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 was accepted, want it refused")
	}
}
