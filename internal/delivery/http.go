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
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/outbound"
	"github.com/parley-dev/parley/internal/text"
)

// ClientOptions configure a Client.
type ClientOptions struct {
	Allow     []string // host, host:port, IP or CIDR to allow although it is not public, also over http
	AllowFlag string   // names the setting of Allow in errors

	Key     ed25519.PrivateKey // signs requests without Sign; nil if all have it
	Version string             // of the program; default "dev"
	Now     func() time.Time   // default time.Now
	Timeout time.Duration      // of a whole request; default 10 s

	Logger *slog.Logger // gets details that owners of subscriptions must not see; default slog.Default()

	Resolver *net.Resolver // default: the system's
	TLS      *tls.Config   // default: the system's roots
}

const (
	defaultTimeout = 10 * time.Second
	maxResponse    = 64 << 10    // bytes of a response body that are read
	keptResponse   = 200         // bytes of them that are kept
	readWithin     = time.Second // the time for it; the status has been read then
)

// Client is the Sender over HTTP. The URLs are untrusted, so connections go through package
// outbound, which blocks private networks. Requests do not wait for each other: the lanes of the
// Service limit how many there are.
//
// Requests follow Standard Webhooks: an id that is the same for every attempt, a timestamp,
// and signatures over both and the body.
type Client struct {
	guard   *outbound.Guard
	key     ed25519.PrivateKey
	agent   string
	now     func() time.Time
	timeout time.Duration
	client  *http.Client
	log     *slog.Logger
}

// NewClient returns a Client.
func NewClient(o ClientOptions) (*Client, error) {
	g, err := outbound.New(outbound.Options{
		Allow: o.Allow, Flag: o.AllowFlag, Resolver: o.Resolver, TLS: o.TLS, NoSharing: true,
	})
	if err != nil {
		return nil, err
	}
	if o.Key != nil && len(o.Key) != ed25519.PrivateKeySize {
		return nil, errors.New("delivery: the signing key has the wrong size")
	}
	timeout := cmp.Or(o.Timeout, defaultTimeout)
	c := &Client{
		guard:   g,
		key:     o.Key,
		agent:   "Parley/" + cmp.Or(o.Version, "dev"),
		now:     o.Now,
		timeout: timeout,
		client:  g.Client(timeout),
		log:     cmp.Or(o.Logger, slog.Default()),
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.client.CloseIdleConnections() }

// CheckURL refuses a URL that requests must not be sent to.
func (c *Client) CheckURL(raw string) error { return c.guard.Check(raw) }

// failure is the error of a failed request. Its text must contain neither the URL nor the
// response body: both may be secret.
type failure struct {
	why       string
	permanent bool
	wait      time.Duration // from the Retry-After header; 0 if there is none
}

func (f *failure) Error() string { return f.why }

// Permanent reports whether a retry cannot succeed.
func (f *failure) Permanent() bool { return f.permanent }

// RetryAfter returns the delay that the receiver asked for.
func (f *failure) RetryAfter() time.Duration { return f.wait }

// Send implements Sender.
func (c *Client) Send(ctx context.Context, r *Request) error {
	if err := c.guard.Check(r.URL); err != nil {
		// The operator may have changed what is allowed, perhaps on this node only so far: not permanent.
		return &failure{why: "the URL " + err.Error()}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := c.request(ctx, r)
	if err != nil {
		return err
	}
	res, err := c.client.Do(req)
	if err != nil {
		return c.explain(err)
	}
	defer res.Body.Close()
	// The status decides. A body that trickles, or is shorter than its length says, is not waited for.
	defer time.AfterFunc(readWithin, cancel).Stop()
	r.Response = Response{Status: res.StatusCode, Text: firstBytes(res.Body)}
	// A connection can be reused only if the body was read to the end.
	_, _ = io.CopyN(io.Discard, res.Body, maxResponse-keptResponse)
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return nil
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return &failure{why: fmt.Sprintf("the receiver responded with %d; redirects are not followed", res.StatusCode)}
	case res.StatusCode == http.StatusGone:
		return &failure{why: "the receiver responded with 410 Gone and gets no more requests", permanent: true}
	}
	return &failure{
		why:  fmt.Sprintf("the receiver responded with %d", res.StatusCode),
		wait: c.retryAfter(res.Header.Get("Retry-After")),
	}
}

// firstBytes returns the beginning of a response as one line that can be stored and shown: a space
// replaces each character that is invisible or changes how others are shown.
func firstBytes(body io.Reader) string {
	first, _ := io.ReadAll(io.LimitReader(body, keptResponse)) // an error ends the text
	s := strings.Map(func(c rune) rune {
		if !text.Name.Allows(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(string(first), ""))
	return strings.TrimSpace(s)
}

// retryAfter parses the header, which is a number of seconds or a date.
func (c *Client) retryAfter(header string) time.Duration {
	const most = 24 * time.Hour
	n, err := strconv.ParseUint(header, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) { // out of range: n is the largest number
		return time.Duration(min(n, uint64(most/time.Second))) * time.Second
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return max(0, min(at.Sub(c.now()), most))
}

func (c *Client) request(ctx context.Context, r *Request) (*http.Request, error) {
	now := c.now()
	signature, err := c.sign(r, now)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, &failure{why: "the URL is malformed", permanent: true}
	}
	h := req.Header
	for name, value := range r.Header {
		h.Set(name, value)
	}
	if r.Trace.Parent != "" {
		h.Set("traceparent", r.Trace.Parent)
		if r.Trace.State != "" {
			h.Set("tracestate", r.Trace.State)
		}
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

// sign returns the signatures of a request.
func (c *Client) sign(r *Request, at time.Time) (string, error) {
	if r.Sign != nil {
		return r.Sign(r.ID, at, r.Body), nil
	}
	if c.key == nil {
		return "", errors.New("delivery: there is no key to sign the request with")
	}
	return sign(c.key, r.Token, r.ID, at, r.Body)
}

// explain turns an error of the HTTP client into one that the owner of the subscription may
// see. An unknown host may exist later, and must look the same as a host in a private network,
// so neither is permanent.
func (c *Client) explain(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // the outer error contains the URL
	}
	c.log.Debug("delivery failed", "error", err)
	var unknown *net.DNSError
	var timeout net.Error
	if !errors.As(err, &unknown) && errors.As(err, &timeout) && timeout.Timeout() {
		return &failure{why: fmt.Sprintf("the receiver did not respond within %s", c.timeout)}
	}
	return &failure{why: "the receiver could not be reached: " + c.guard.Explain(err)}
}
