package delivery

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/parley-dev/parley/internal/outbound"
)

// ClientOptions are what a Client needs.
type ClientOptions struct {
	Allow   []string // host, host:port, IP or CIDR that is used although it is not public, also over http
	Key     ed25519.PrivateKey
	Version string           // of the program; empty: "dev"
	Now     func() time.Time // nil: time.Now
	Timeout time.Duration    // of a request, all in all; 0: 10 s

	Logger *slog.Logger // of details that receivers must not see; nil: slog.Default()

	Resolver *net.Resolver // nil: the system's
	TLS      *tls.Config   // nil: the system's roots
}

const (
	defaultTimeout = 10 * time.Second
	maxAnswer      = 64 << 10 // bytes that are read of an answer; they are thrown away
)

// Client is the Sender over HTTP. The URLs come from strangers, so connections are made by
// package outbound, which keeps them away from what only the server can reach.
//
// What is sent follows Standard Webhooks: an id that is the same for every attempt, a
// time, and signatures over both and the body.
type Client struct {
	guard   *outbound.Guard
	key     ed25519.PrivateKey
	agent   string
	now     func() time.Time
	timeout time.Duration
	client  *http.Client
	log     *slog.Logger
}

// NewClient makes a Client.
func NewClient(o ClientOptions) (*Client, error) {
	g, err := outbound.New(outbound.Options{Allow: o.Allow, Flag: "--push-allow", Resolver: o.Resolver, TLS: o.TLS})
	if err != nil {
		return nil, err
	}
	if len(o.Key) != ed25519.PrivateKeySize {
		return nil, errors.New("a signing key is needed")
	}
	timeout := cmp.Or(o.Timeout, defaultTimeout)
	c := &Client{
		guard: g, key: o.Key, agent: "Parley/" + cmp.Or(o.Version, "dev"), now: o.Now, timeout: timeout, client: g.Client(timeout),
		log: cmp.Or(o.Logger, slog.Default()),
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c, nil
}

// Close closes connections that are kept for the next request.
func (c *Client) Close() { c.client.CloseIdleConnections() }

// CheckURL refuses an address that nothing is sent to.
func (c *Client) CheckURL(raw string) error { return c.guard.Check(raw) }

// failure says why a request did not succeed. It never repeats the address or what
// the receiver answered: both may hold what others must not see.
type failure struct {
	why       string
	permanent bool
	wait      time.Duration // that the receiver asks for; 0: it does not say
}

func (f *failure) Error() string { return f.why }

// Permanent reports whether trying again is of no use.
func (f *failure) Permanent() bool { return f.permanent }

// RetryAfter is how long the receiver wants to be left alone.
func (f *failure) RetryAfter() time.Duration { return f.wait }

// Send implements Sender.
func (c *Client) Send(ctx context.Context, r *Request) error {
	if err := c.guard.Check(r.URL); err != nil {
		return &failure{why: "the address " + err.Error(), permanent: true} // the operator's list may have changed
	}
	req, err := c.request(ctx, r)
	if err != nil {
		return err
	}
	res, err := c.client.Do(req)
	if err != nil {
		return c.explain(err)
	}
	defer res.Body.Close()
	// What is read to the end leaves the connection for the next request.
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer)
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return nil
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return &failure{why: fmt.Sprintf("the receiver answered %d; redirects are not followed", res.StatusCode)}
	case res.StatusCode == http.StatusGone:
		return &failure{why: "the receiver answered 410: it wants no more", permanent: true}
	}
	return &failure{why: fmt.Sprintf("the receiver answered %d", res.StatusCode), wait: c.retryAfter(res.Header.Get("Retry-After"))}
}

// retryAfter reads the header, which is a number of seconds or a date.
func (c *Client) retryAfter(header string) time.Duration {
	const most = 24 * time.Hour
	if n, err := strconv.ParseUint(header, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, most)
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return max(0, min(at.Sub(c.now()), most))
}

func (c *Client) request(ctx context.Context, r *Request) (*http.Request, error) {
	now := c.now()
	signature, err := sign(c.key, r.Token, r.ID, now, r.Body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, &failure{why: "the address cannot be used", permanent: true}
	}
	h := req.Header
	for name, value := range r.Header {
		h.Set(name, value)
	}
	h.Set("User-Agent", c.agent)
	h.Set("webhook-id", r.ID)
	h.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	h.Set("webhook-signature", signature)
	if r.Scheme != "" {
		authorization := r.Scheme
		if r.Credentials != "" {
			authorization += " " + r.Credentials
		}
		h.Set("Authorization", authorization)
	}
	return req, nil
}

// explain turns an error of the client into one that can be shown to the owner of
// the subscription. A name that leads nowhere may lead somewhere later, and one that leads inside
// must not be told from it; so neither is permanent.
func (c *Client) explain(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // the outer one has the whole address
	}
	c.log.Debug("a delivery failed", "error", err)
	var unknown *net.DNSError
	var timeout net.Error
	if !errors.As(err, &unknown) && errors.As(err, &timeout) && timeout.Timeout() {
		return &failure{why: fmt.Sprintf("the receiver did not answer within %s", c.timeout)}
	}
	return &failure{why: "the receiver could not be reached: " + c.guard.Explain(err)}
}
