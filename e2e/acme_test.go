package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// pebbleVersion is that of Pebble, the ACME server that Let's Encrypt has for tests.
const pebbleVersion = "v2.10.1"

// pebblePrograms builds Pebble and its DNS server once.
var pebblePrograms = sync.OnceValues(func() (string, error) {
	const module = "github.com/letsencrypt/pebble/v2/cmd/"
	dir := filepath.Join(filepath.Dir(program), "pebble")
	cmd := exec.Command("go", "install", module+"pebble@"+pebbleVersion, module+"pebble-challtestsrv@"+pebbleVersion)
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build Pebble: %w\n%s", err, out)
	}
	return dir, nil
})

// pebble is a running certificate authority. It resolves every name to 127.0.0.1, and checks challenges on
// the ports of the server under test.
type pebble struct {
	directory string
	ca        string // file with the certificate of the directory
	http, tls int    // ports of the challenges
	roots     *x509.CertPool
}

func startPebble(t *testing.T, lifetime time.Duration) *pebble {
	t.Helper()
	bin, err := pebblePrograms()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := &pebble{ca: filepath.Join(dir, "ca.pem"), http: freePort(t), tls: freePort(t)}
	key := filepath.Join(dir, "key.pem")
	loopbackCertificate(t, p.ca, key)
	dns, listen, manage := freePort(t), freePort(t), freePort(t)
	config, err := json.Marshal(object{"pebble": object{
		"listenAddress": loopback(listen), "managementListenAddress": loopback(manage), "certificate": p.ca,
		"privateKey": key, "httpPort": p.http, "tlsPort": p.tls, "retryAfter": object{"authz": 1, "order": 1},
		"profiles": object{"default": object{"description": "", "validityPeriod": int(lifetime.Seconds())}},
	}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	background(t, filepath.Join(bin, "pebble-challtestsrv"), "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "",
		"-dnsserver", loopback(dns), "-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-management",
		loopback(freePort(t)))
	eventually(t, soon, "the DNS server is ready", func() bool {
		conn, err := net.Dial("tcp", loopback(dns))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	background(t, filepath.Join(bin, "pebble"), "-config", filepath.Join(dir, "config.json"), "-dnsserver", loopback(dns))
	p.directory = "https://" + loopback(listen) + "/dir"
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	eventually(t, soon, "Pebble is ready", func() bool {
		res, err := client.Get("https://" + loopback(manage) + "/roots/0")
		if err != nil {
			return false
		}
		defer func() { _ = res.Body.Close() }()
		root, err := io.ReadAll(res.Body)
		p.roots = x509.NewCertPool()
		return err == nil && res.StatusCode == http.StatusOK && p.roots.AppendCertsFromPEM(root)
	})
	return p
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// background runs a program until the test ends.
func background(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	ownSession(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(name), said.String())
		}
	})
}

// loopbackCertificate writes a certificate for 127.0.0.1, and its key.
func loopbackCertificate(t *testing.T, cert, key string) {
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
	for name, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// flags are those of a server that gets its certificates from Pebble.
func (p *pebble) flags(more ...string) []string {
	return append([]string{
		"--acme", "a.parley.test,b.parley.test", "--acme-email", "admin@parley.test", "--acme-directory", p.directory,
		"--acme-ca", p.ca,
	}, more...)
}

// certificate connects to a server under a name, as a browser does, and returns the certificate.
func (p *pebble) certificate(address, name string) (*x509.Certificate, error) {
	conn, err := (&tls.Dialer{Config: &tls.Config{ServerName: name, RootCAs: p.roots}}).Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// mustHave returns the serial number of the certificate for a name.
func (p *pebble) mustHave(t *testing.T, address, name string) string {
	t.Helper()
	var serial string
	eventually(t, soon, "there is a certificate for "+name, func() bool {
		cert, err := p.certificate(address, name)
		if err != nil {
			return false
		}
		serial = cert.SerialNumber.String()
		return true
	})
	return serial
}

// TestACMEByHTTP: the server gets a certificate for each domain by http-01, keeps them over a restart,
// redirects plain HTTP, and refuses other hosts.
func TestACMEByHTTP(t *testing.T) {
	t.Parallel()
	p := startPebble(t, 24*time.Hour)
	listen, plain := loopback(freePort(t)), loopback(p.http) // nothing listens on the port for tls-alpn-01
	e := engine{"sqlite", []string{"--data", t.TempDir()}}
	s := serve(t, e, p.flags("--listen", listen, "--acme-http-listen", plain)...)
	a, b := p.mustHave(t, listen, "a.parley.test"), p.mustHave(t, listen, "b.parley.test")
	if a == b {
		t.Error("both domains have the same certificate")
	}
	for _, name := range []string{"c.parley.test", "parley.test"} {
		if cert, err := p.certificate(listen, name); err == nil {
			t.Errorf("%s is served with the certificate %s, want a refusal", name, cert.Subject)
		}
	}
	if !strings.Contains(s.Stdout.String(), "Public URL: https://a.parley.test:") {
		t.Errorf("no public URL with the domain:\n%s", s.Stdout.String())
	}
	checkRedirects(t, plain, listen)

	if err := s.Stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	serve(t, e, p.flags("--listen", listen, "--acme-http-listen", plain)...)
	if got := p.mustHave(t, listen, "a.parley.test"); got != a {
		t.Errorf("after a restart the certificate is %s, want the same, %s", got, a)
	}
}

func checkRedirects(t *testing.T, plain, listen string) {
	t.Helper()
	_, port, _ := net.SplitHostPort(listen)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, c := range []struct {
		method, host string
		status       int
		location     string
	}{
		{"GET", "a.parley.test", 308, "https://a.parley.test:" + port + "/x?y=1"},
		{"GET", "B.parley.test:80", 308, "https://b.parley.test:" + port + "/x?y=1"},
		{"POST", "a.parley.test", 400, ""},
		{"GET", "evil.test", 421, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+plain+"/x?y=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != c.status || res.Header.Get("Location") != c.location {
			t.Errorf("%s to %s: %d %q, want %d %q", c.method, c.host, res.StatusCode, res.Header.Get("Location"), c.status, c.location)
		}
	}
}

// TestACMEOnSeveralNodes: the nodes of one database share certificates, which one of them gets by
// tls-alpn-01. HTTP/2 works.
func TestACMEOnSeveralNodes(t *testing.T) {
	t.Parallel()
	p := startPebble(t, 24*time.Hour)
	e := engine{"postgres", []string{"--database", emptyDatabase(t)}}
	first, second := loopback(p.tls), loopback(freePort(t))
	serve(t, e, p.flags("--listen", first, "--acme-http-listen", "off")...)
	want := p.mustHave(t, first, "a.parley.test")
	serve(t, e, p.flags("--listen", second, "--acme-http-listen", "off")...)
	if got := p.mustHave(t, second, "a.parley.test"); got != want {
		t.Errorf("the second node has the certificate %s, want %s, that of the first", got, want)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: p.roots}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, second)
		},
	}}
	res, err := client.Get("https://a.parley.test/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK || res.ProtoMajor != 2 || res.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%s %s %v, want 200 over HTTP/2 with Strict-Transport-Security", res.Proto, res.Status, res.Header)
	}
}

// TestACMERenews: a certificate is replaced before it expires, without a restart.
func TestACMERenews(t *testing.T) {
	t.Parallel()
	p := startPebble(t, 15*time.Second)
	listen := loopback(p.tls)
	e := engine{"sqlite", []string{"--data", t.TempDir()}}
	serve(t, e, p.flags("--listen", listen, "--acme-http-listen", "off")...)
	first := p.mustHave(t, listen, "a.parley.test")
	eventually(t, soon, "the certificate is renewed", func() bool {
		cert, err := p.certificate(listen, "a.parley.test")
		return err == nil && cert.SerialNumber.String() != first
	})
}
