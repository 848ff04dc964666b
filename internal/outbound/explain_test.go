package outbound

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestErrorsTellNothingOfTheNetwork(t *testing.T) {
	t.Parallel()
	g := guardFor(t)
	inside := &net.OpError{
		Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 443}, Err: &Refused{"private"},
	}
	missing := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{
		Err: "no such host", Name: "vault.corp.internal", Server: "10.0.0.2:53", IsNotFound: true,
	}}
	slow := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{
		Err: "i/o timeout", Name: "vault.corp.internal", Server: "10.0.0.2:53", IsTimeout: true,
	}}
	words := map[string]bool{}
	for _, err := range []error{inside, missing, slow} {
		words[g.Explain(&url.Error{Op: "Post", URL: "https://vault.corp.internal/", Err: err})] = true
	}
	if len(words) != 1 {
		t.Errorf("texts = %v, want the same for a private name and one that does not exist", words)
	}
	for _, err := range []error{
		inside, missing, slow, errors.New("proxyconnect tcp: dial 10.9.9.9"),
		io.ErrUnexpectedEOF, context.DeadlineExceeded,
	} {
		if said := g.Explain(err); strings.ContainsAny(said, "0123456789") || strings.Contains(said, "corp") {
			t.Errorf("%v: text = %q, want no names and addresses", err, said)
		}
	}
}

func TestErrorsTellWhatTheReceiverCanMend(t *testing.T) {
	t.Parallel()
	g := guardFor(t, "127.0.0.1")
	client := g.Client(5 * time.Second)
	site := httptest.NewTLSServer(http.NotFoundHandler()) // with an untrusted certificate
	site.Config.ErrorLog = nil
	t.Cleanup(site.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for address, says := range map[string]string{site.URL: "certificate", gone.URL: "refused"} {
		res, err := client.Get(address) // a test
		if err == nil {
			_ = res.Body.Close()
			t.Fatalf("%s: err = nil, want an error", address)
		}
		if said := g.Explain(err); !strings.Contains(said, says) {
			t.Errorf("%s: explanation = %q, want %q", address, said, says)
		}
	}
}
