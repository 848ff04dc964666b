package delivery

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-dev/parley/internal/trace"
)

func newClient(t *testing.T, edit func(*ClientOptions)) *Client {
	t.Helper()
	text, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	o := ClientOptions{Key: key, Version: "1.2.3", Allow: []string{"127.0.0.1"}, AllowFlag: "--push-allow"}
	if edit != nil {
		edit(&o)
	}
	s, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// received is a request that the receiver got.
type received struct {
	header http.Header
	body   []byte
}

// receive starts a receiver that responds with a status.
func receive(t *testing.T, status int) (*httptest.Server, chan received) {
	t.Helper()
	got := make(chan received, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost {
			t.Errorf("method %s", r.Method)
		}
		got <- received{r.Header, body}
		if status >= 300 && status < 400 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "the receiver's secret")
	}))
	t.Cleanup(srv.Close)
	return srv, got
}

func request(url string) *Request {
	return &Request{
		Subscription: Subscription{Key: Key{Topic: "01k", ID: "h"}, URL: url}, Seq: 3, ID: "01k-h-3", Attempt: 1,
		Header: map[string]string{"Content-Type": "application/json", "X-More": "more"}, Body: []byte(`{"a":1}`),
	}
}

func TestARequestIsSignedForAnybodyAndForTheToken(t *testing.T) {
	t.Parallel()
	s := newClient(t, nil)
	srv, got := receive(t, 204)
	d := request(srv.URL + "/hook?x=1")
	d.Token, d.Scheme, d.Credentials = "a token", "Bearer", "cred"
	d.Trace = trace.Context{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "a=1"}
	if err := s.Send(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	r := <-got
	for name, want := range map[string]string{
		"Content-Type": "application/json", "X-More": "more", "Authorization": "Bearer cred",
		"User-Agent": "Parley/1.2.3", "webhook-id": "01k-h-3", "traceparent": d.Trace.Parent, "tracestate": "a=1",
	} {
		if v := r.header.Get(name); v != want {
			t.Errorf("%s is %q; want %q", name, v, want)
		}
	}
	if string(r.body) != `{"a":1}` {
		t.Errorf("the body is %s", r.body)
	}
	// Verify the symmetric signature with the library that receivers use.
	wh, err := standard.NewWebhookRaw([]byte("a token"))
	if err != nil {
		t.Fatal(err)
	}
	if err := wh.Verify(r.body, r.header); err != nil {
		t.Error(err)
	}
	if err := wh.Verify(append(r.body, ' '), r.header); err == nil {
		t.Error("another body has the same signature")
	}
	// Verify the asymmetric signature with the published key.
	if !verify(publishedKey(t, s), r.header, r.body) {
		t.Error("the published key does not verify it")
	}
	if verify(publishedKey(t, s), r.header, append(r.body, ' ')) {
		t.Error("the published key verifies another body")
	}
}

// A token in the notation of Standard Webhooks is decoded like in their libraries.
func TestATokenMayBeASecretOfStandardWebhooks(t *testing.T) {
	t.Parallel()
	s := newClient(t, nil)
	srv, got := receive(t, 204)
	for token, open := range map[string]func(string) (*standard.Webhook, error){
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": standard.NewWebhook,
		"whsec_no base64":                        func(s string) (*standard.Webhook, error) { return standard.NewWebhookRaw([]byte(s)) },
		"whsec_":                                 func(s string) (*standard.Webhook, error) { return standard.NewWebhookRaw([]byte(s)) },
		"bWFrZSBubyBtaXN0YWtl":                   func(s string) (*standard.Webhook, error) { return standard.NewWebhookRaw([]byte(s)) },
	} {
		d := request(srv.URL)
		d.Token = token
		if err := s.Send(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		r := <-got
		wh, err := open(token)
		if err == nil {
			err = wh.Verify(r.body, r.header)
		}
		if err != nil {
			t.Errorf("%s: %v", token, err)
		}
	}
}

// verify verifies the asymmetric signature.
func verify(key ed25519.PublicKey, h http.Header, body []byte) bool {
	content := h.Get("webhook-id") + "." + h.Get("webhook-timestamp") + "." + string(body)
	for _, s := range strings.Fields(h.Get("webhook-signature")) {
		if text, ok := strings.CutPrefix(s, "v1a,"); ok {
			sig, err := base64.StdEncoding.DecodeString(text)
			return err == nil && ed25519.Verify(key, []byte(content), sig)
		}
	}
	return false
}

func publishedKey(t *testing.T, s *Client) ed25519.PublicKey {
	t.Helper()
	var k struct{ Kty, Crv, Alg, Use, Kid, X string }
	if err := json.Unmarshal([]byte(s.JWK()), &k); err != nil {
		t.Fatalf("%v in %s", err, s.JWK())
	}
	x, err := base64.RawURLEncoding.DecodeString(k.X)
	if err != nil || len(x) != ed25519.PublicKeySize {
		t.Fatal(k, err)
	}
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + k.X + `"}`))
	if k.Kty != "OKP" || k.Crv != "Ed25519" || k.Alg != "EdDSA" || k.Use != "sig" || k.Kid != base64.RawURLEncoding.EncodeToString(sum[:]) {
		t.Errorf("%+v", k)
	}
	return x
}

// Without a token there is one signature; without credentials there is no Authorization header.
func TestARequestWithoutATokenIsSignedForAnybody(t *testing.T) {
	t.Parallel()
	s := newClient(t, nil)
	srv, got := receive(t, 200)
	if err := s.Send(t.Context(), request(srv.URL)); err != nil {
		t.Fatal(err)
	}
	r := <-got
	if v, ok := r.header["Authorization"]; ok {
		t.Errorf("Authorization is %q", v)
	}
	if sig := r.header.Get("webhook-signature"); strings.Contains(sig, "v1,") || !verify(publishedKey(t, s), r.header, r.body) {
		t.Errorf("signed %q", sig)
	}
}

func isPermanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}

func TestOnlySuccessIsSuccess(t *testing.T) {
	t.Parallel()
	s := newClient(t, nil)
	for _, c := range []struct {
		status    int
		says      string
		permanent bool
	}{
		{301, "redirects are not followed", false},
		{307, "redirects are not followed", false},
		{400, "responded with 400", false},
		{410, "responded with 410", true},
		{429, "responded with 429", false},
		{500, "responded with 500", false},
	} {
		srv, got := receive(t, c.status)
		err := s.Send(t.Context(), request(srv.URL+"/secret-path"))
		if err == nil || !strings.Contains(err.Error(), c.says) || isPermanent(err) != c.permanent {
			t.Errorf("%d: %v, permanent %v", c.status, err, isPermanent(err))
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: %v contains a secret", c.status, err)
		}
		if len(got) != 1 {
			t.Errorf("%d: %d requests", c.status, len(got))
		}
	}
	srv, _ := receive(t, 200)
	srv.Close()
	err := s.Send(t.Context(), request(srv.URL+"/secret-path"))
	if err == nil || isPermanent(err) || strings.Contains(err.Error(), "secret") {
		t.Errorf("nobody there: %v", err)
	}
}

// A node that was started with other flags than the rest must not end subscriptions for good.
func TestASpecialAddressIsRefusedButTriedAgain(t *testing.T) {
	t.Parallel()
	s := newClient(t, func(o *ClientOptions) { o.Allow = nil })
	for _, raw := range []string{"https://10.0.0.1/", "https://[::1]:8443/", "https://localhost/", "http://receiver.example/"} {
		if err := s.CheckURL(raw); err == nil || !strings.Contains(err.Error(), "--push-allow") {
			t.Errorf("%s: %v", raw, err)
		}
		if err := s.Send(t.Context(), request(raw)); err == nil || isPermanent(err) {
			t.Errorf("%s: %v, want a failure that is not permanent", raw, err)
		}
	}
}

// nameServer resolves every name to the given IPv4 address.
func nameServer(t *testing.T, ip [4]byte) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			end := bytes.IndexByte(b[12:n], 0) + 12 + 5 // name, type, class
			out := append([]byte{b[0], b[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, b[12:end]...)
			if binary.BigEndian.Uint16(b[end-4:]) == 1 {
				out[7] = 1
				out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ip[0], ip[1], ip[2], ip[3])
			}
			_, _ = conn.WriteTo(out, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func TestPrivateNamesCannotBeToldFromUnknownOnes(t *testing.T) {
	t.Parallel()
	push := func(r *net.Resolver) error {
		s := newClient(t, func(o *ClientOptions) { o.Allow, o.Resolver = nil, r })
		return s.Send(t.Context(), request("https://vault.corp.example/"))
	}
	// Its address must not be in the error.
	broken := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:1")
	}}
	inside, unknown := push(nameServer(t, [4]byte{10, 1, 2, 3})), push(broken)
	if inside == nil || unknown == nil || inside.Error() != unknown.Error() || isPermanent(inside) != isPermanent(unknown) {
		t.Errorf("a private name: %v\nan unknown one: %v", inside, unknown)
	}
	for _, secret := range []string{"127.0.0.1", "10.1.2.3", "vault", "dial"} {
		if strings.Contains(inside.Error()+unknown.Error(), secret) {
			t.Errorf("%v, %v: contains %q", inside, unknown, secret)
		}
	}
}

func TestANameThatLeadsInsideIsRefusedAtTheConnection(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(srv.Close)
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	try := func(allow ...string) error {
		s := newClient(t, func(o *ClientOptions) {
			o.Allow, o.Resolver, o.TLS = allow, nameServer(t, [4]byte{127, 0, 0, 1}), &tls.Config{RootCAs: roots}
		})
		raw := "https://example.com:" + port + "/" // a name that httptest's certificate has
		if err := s.CheckURL(raw); err != nil {
			t.Errorf("the name alone is refused: %v", err)
		}
		return s.Send(t.Context(), request(raw))
	}
	if err := try(); err == nil || isPermanent(err) || !strings.Contains(err.Error(), "--push-allow") || hits.Load() != 0 {
		t.Errorf("pushed to a private address: %v, %d requests", err, hits.Load())
	}
	for i, allow := range []string{"example.com", "127.0.0.0/8"} {
		if err := try(allow); err != nil || int(hits.Load()) != i+1 {
			t.Errorf("%s is allowed: %v, %d requests", allow, err, hits.Load())
		}
	}
}

func TestAReceiverThatDoesNotAnswerIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(release) })
	quick, got := receive(t, 200)
	s := newClient(t, func(o *ClientOptions) { o.Timeout = 3 * time.Second })
	slow := make(chan error, 1)
	go func() { slow <- s.Send(t.Context(), request(srv.URL)) }()
	if err := s.Send(t.Context(), request(quick.URL)); err != nil || len(got) != 1 {
		t.Error(err)
	}
	if err := <-slow; err == nil || isPermanent(err) || !strings.Contains(err.Error(), "3s") {
		t.Error(err)
	}
}

// What is kept of a response is one line that shows its characters in their order.
func TestTheKeptResponseIsPlain(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"ok":                           "ok",
		" a\r\n\tb\x00c\x1b[31m ":      "a   b c [31m",
		"evil\u202Etxt.exe":            "evil txt.exe",
		"a\u2066b\u2069c\u2028d":       "a b c d",
		"zero\u200Bwidth\uFEFF":        "zero width",
		"tag\U000E0041 soft\u00AD-":    "tag  soft -",
		"grün 日本 😀":                    "grün 日本 😀",
		"bad\xff\xfebytes":             "badbytes",
		strings.Repeat("ä", 101):       strings.Repeat("ä", 100),
		strings.Repeat("a", 199) + "ä": strings.Repeat("a", 199),
	} {
		if got := firstBytes(strings.NewReader(body)); got != want {
			t.Errorf("%q: kept %q, want %q", body, got, want)
		}
	}
}

// A response without end does not block the sender.
func TestAnAnswerIsReadToABound(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	over := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(over)
		chunk := make([]byte, 32<<10)
		for sent.Load() < 1<<30 {
			n, err := w.Write(chunk)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(srv.Close)
	s := newClient(t, func(o *ClientOptions) { o.Timeout = time.Minute })
	if err := s.Send(t.Context(), request(srv.URL)); err != nil {
		t.Fatal(err)
	}
	<-over
	if n := sent.Load(); n >= 1<<28 {
		t.Errorf("%d bytes were taken", n)
	}
}

func TestAReceiverSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	s := newClient(t, nil)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.now = func() time.Time { return now }
	for header, want := range map[string]time.Duration{
		"120":                           2 * time.Minute,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute,
		"Fri, 02 Jan 2026 03:00:00 GMT": 0, // it was
		"99999999":                      24 * time.Hour,
		"99999999999":                   24 * time.Hour,
		"99999999999999999999999":       24 * time.Hour,
		"Fri, 31 Dec 9999 23:59:59 GMT": 24 * time.Hour,
		"-99999999999999999999999":      0,
		"-5":                            0,
		"soon":                          0,
		"":                              0,
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusTooManyRequests)
		}))
		err := s.Send(t.Context(), request(srv.URL))
		srv.Close()
		var asks interface{ RetryAfter() time.Duration }
		if !errors.As(err, &asks) || asks.RetryAfter() != want {
			t.Errorf("Retry-After: %s: %v; want %s", header, err, want)
		}
	}
}
