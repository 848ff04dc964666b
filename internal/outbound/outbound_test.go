package outbound

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func guardFor(t *testing.T, allow ...string) *Guard {
	t.Helper()
	g, err := New(Options{Allow: allow, Flag: "--some-allow"})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestSpecialAddressesAreRefused(t *testing.T) {
	t.Parallel()
	g := guardFor(t)
	for _, c := range []struct{ name, host string }{
		{"private", "10.0.0.1"},
		{"private", "172.16.3.4"},
		{"private", "192.168.1.1"},
		{"private on another port", "192.168.1.1:8443"},
		{"loopback", "127.0.0.1"},
		{"loopback", "127.8.9.10"},
		{"loopback", "[::1]"},
		{"link-local", "169.254.1.1"},
		{"link-local", "[fe80::1]"},
		{"link-local with a zone", "[fe80::1%25eth0]"},
		{"metadata", "169.254.169.254"},
		{"metadata", "[fd00:ec2::254]"},
		{"CGNAT", "100.64.0.1"},
		{"multicast", "224.0.0.1"},
		{"multicast", "[ff02::1]"},
		{"NAT64", "[64:ff9b::7f00:1]"},
		{"local NAT64", "[64:ff9b:1::7f00:1]"},
		{"6to4", "[2002:7f00:1::]"},
		{"IPv4-mapped", "[::ffff:127.0.0.1]"},
		{"IPv4-mapped public", "[::ffff:8.8.8.8]"},
		{"IPv4-compatible", "[::127.0.0.1]"},
		{"unspecified", "0.0.0.0"},
		{"unspecified", "[::]"},
		{"unique local", "[fc00::1]"},
		{"reserved", "240.0.0.1"},
		{"broadcast", "255.255.255.255"},
		{"this machine", "localhost"},
		{"this machine", "LOCALHOST."},
		{"this machine", "x.localhost:444"},
	} {
		raw := "https://" + c.host + "/"
		err := g.Check(raw)
		if err == nil || !strings.Contains(err.Error(), "--some-allow") {
			t.Errorf("%s %s: err = %v, want one with --some-allow", c.name, raw, err)
		}
		// The connection itself is checked too, independently of Check.
		if host, _, ok := strings.Cut(c.host, "%"); !ok && !strings.Contains(strings.ToLower(host), "localhost") {
			at := host
			if !strings.Contains(host, "]:") && (strings.HasSuffix(host, "]") || !strings.Contains(host, ":")) {
				at += ":443"
			}
			network := "tcp4"
			if strings.HasPrefix(at, "[") {
				network = "tcp6"
			}
			var refused *Refused
			if err := g.control(network, at, nil); !errors.As(err, &refused) {
				t.Errorf("%s %s: connected (%v), want Refused", c.name, at, err)
			}
		}
	}
	for _, raw := range []string{"https://1.1.1.1/", "https://[2606:4700::1111]:8443/", "https://receiver.example/"} {
		if err := g.Check(raw); err != nil {
			t.Errorf("%s: err = %v, want nil", raw, err)
		}
	}
	if err := g.Check("http://receiver.example/"); err == nil || !strings.Contains(err.Error(), "--some-allow") {
		t.Errorf("http: err = %v, want one with --some-allow", err)
	}
}

func TestTheOperatorsListLetsThrough(t *testing.T) {
	t.Parallel()
	g := guardFor(t, "Intranet.Example", "hooks.example:8080", "10.1.0.0/16", "10.2.0.1:9000", "::1", "[fd00::1]:444")
	for raw, ok := range map[string]bool{
		"http://intranet.example/":       true,
		"http://INTRANET.example.:99/":   true,
		"https://intranet.example/":      true,
		"http://not.intranet.example/":   false,
		"http://hooks.example:8080/":     true,
		"http://hooks.example/":          false,
		"http://10.1.2.3/":               true,
		"https://10.1.2.3:77/":           true,
		"http://10.2.0.1:9000/":          true,
		"http://10.2.0.1/":               false,
		"https://10.2.0.2:9000/":         false,
		"http://[::1]:5/":                true,
		"http://[fd00::1]:444/":          true,
		"https://[fd00::1]/":             false,
		"https://[::ffff:10.1.2.3]/":     true,
		"https://[::ffff:192.168.0.1]/":  false,
		"https://10.1.2.3.nip.example/x": true, // a name: checked when it is resolved
	} {
		if err := g.Check(raw); (err == nil) != ok {
			t.Errorf("%s: error = %v, want it allowed: %t", raw, err, ok)
		}
	}
	for _, bad := range []string{
		"", "http://a.example", "a b", "10.0.0.0/99", "host:0", "host:x", "a.example/24", "*.example", "fe80::1%eth0",
	} {
		if _, err := New(Options{Allow: []string{"ok.example", bad}}); err == nil ||
			!strings.Contains(err.Error(), `"`+bad+`"`) || CheckAllow([]string{bad}) == nil {
			t.Errorf("%q: err = %v, want one that names the entry", bad, err)
		}
	}
}

// Requests to one host that must not wait for each other have a connection each.
func TestRequestsApartDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	const n = 40
	var arrived atomic.Int64
	all := make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Errorf("protocol = %s, want HTTP/1.1", r.Proto)
		}
		if arrived.Add(1) == n {
			close(all)
		}
		select { // responds when all are here
		case <-all:
		case <-r.Context().Done():
		}
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	g, err := New(Options{
		Allow: []string{"127.0.0.1"}, NoSharing: true, TLS: srv.Client().Transport.(*http.Transport).TLSClientConfig,
	})
	if err != nil {
		t.Fatal(err)
	}
	client := g.Client(30 * time.Second)
	defer client.CloseIdleConnections()
	var done sync.WaitGroup
	for range n {
		done.Go(func() {
			res, err := client.Get(srv.URL)
			if err != nil {
				t.Error(err)
				return
			}
			_ = res.Body.Close()
		})
	}
	done.Wait()
}
