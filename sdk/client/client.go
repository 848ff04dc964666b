package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Config configures a Client.
type Config struct {
	// URL is the URL of the server, such as https://parley.example.
	URL string
	// Key is an API key. Without a key and Tokens, requests have no credentials.
	Key string
	// Tokens replaces Key by access tokens that expire.
	Tokens TokenSource
	// Org is the org to work in; if empty, that of the key.
	Org string
	// HTTPClient sends the requests. Its Timeout should be zero, because streams are long; Timeout
	// below bounds the other requests. Redirects are never followed, so that the key cannot leave
	// the server.
	HTTPClient *http.Client
	// UserAgent names the calling program, such as "crm/1.4".
	UserAgent string
	// Timeout bounds one attempt of a request, in addition to the time that the request
	// itself asks the server to wait; 30 seconds if zero.
	Timeout time.Duration
	// MaxResponse bounds a response, or an event of a stream, in bytes; 128 MiB if zero.
	MaxResponse int64
	// Retry bounds repetitions; the zero value has useful defaults.
	Retry Retry
}

// TokenSource returns access tokens and renews them.
type TokenSource interface {
	// Token returns a token that should work.
	Token(ctx context.Context) (string, error)
	// Renew returns a token other than the one that the server refused.
	Renew(ctx context.Context, refused string) (string, error)
}

const (
	defaultTimeout     = 30 * time.Second
	defaultMaxResponse = 128 << 20
	defaultUserAgent   = "parley-go"
)

// Client calls a server. Its fields group the operations by resource.
type Client struct {
	Proposals    *ProposalsService
	Notes        *NotesService
	Followups    *FollowupsService
	Friction     *FrictionService
	Agents       *AgentsService
	OrgTasks     *OrgTasksService
	Members      *MembersService
	Invitations  *InvitationsService
	Keys         *KeysService
	OwnKeys      *OwnKeysService
	OAuthClients *OAuthClientsService
	Webhooks     *WebhooksService
	Audit        *AuditService

	base        string // without a trailing slash
	key         string
	tokens      TokenSource
	http        *http.Client
	userAgent   string
	timeout     time.Duration
	maxResponse int64
	retry       Retry
	sleep       func(context.Context, time.Duration) error

	asking chan struct{} // held while the org is being fetched
	org    atomic.Pointer[string]
}

// service is embedded by all groups of operations.
type service struct{ c *Client }

// New returns a client. It sends no request.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("client: URL must start with http:// or https:// and name a host; it is %q", cfg.URL)
	case cfg.Key != "" && cfg.Tokens != nil:
		return nil, errors.New("client: set Key or Tokens, not both")
	case strings.ContainsAny(cfg.Key, "\r\n"):
		return nil, errors.New("client: Key has a line break")
	}
	c := &Client{
		base: strings.TrimRight(cfg.URL, "/"), key: cfg.Key, tokens: cfg.Tokens, asking: make(chan struct{}, 1),
		http: bare(cfg.HTTPClient), userAgent: defaultUserAgent, timeout: cfg.Timeout, maxResponse: cfg.MaxResponse,
		retry: cfg.Retry.withDefaults(), sleep: sleep,
	}
	if cfg.UserAgent != "" {
		c.userAgent = cfg.UserAgent + " " + defaultUserAgent
	}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	if c.maxResponse <= 0 {
		c.maxResponse = defaultMaxResponse
	}
	if cfg.Org != "" {
		c.org.Store(&cfg.Org)
	}
	s := service{c}
	c.Proposals, c.Notes, c.Followups = &ProposalsService{s}, &NotesService{s}, &FollowupsService{s}
	c.Friction, c.Agents, c.OrgTasks = &FrictionService{s}, &AgentsService{s}, &OrgTasksService{s}
	c.Members, c.Invitations = &MembersService{s}, &InvitationsService{s}
	c.Keys, c.OwnKeys, c.OAuthClients = &KeysService{s}, &OwnKeysService{s}, &OAuthClientsService{s}
	c.Webhooks, c.Audit = &WebhooksService{s}, &AuditService{s}
	return c, nil
}

// bare returns the HTTP client to use, which follows no redirects.
func bare(given *http.Client) *http.Client {
	out := &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 64,
		ForceAttemptHTTP2:   true,
	}}
	if given != nil {
		*out = *given
	}
	out.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return out
}

// URL returns the URL of the server, without a trailing slash.
func (c *Client) URL() string { return c.base }

// Me is the principal of a credential, and its permissions.
type Me struct {
	Org        string    `json:"org"`
	Principal  string    `json:"principal"` // such as user:ada
	Name       string    `json:"name"`
	Admin      bool      `json:"admin"`
	Scopes     []string  `json:"scopes"`
	Credential string    `json:"credential"` // id of the key or token, not its secret
	ExpiresAt  time.Time `json:"expires_at"` // zero: never
}

// Me returns the principal of the client's key. It works with any key.
func (c *Client) Me(ctx context.Context, opts ...Option) (*Me, error) {
	return fetch[Me](ctx, c, call{method: http.MethodGet, path: "/api/v1/me"}, opts)
}

// Org returns the org that the client works in. If Config.Org is empty, the first call
// asks the server.
func (c *Client) Org(ctx context.Context) (string, error) {
	if org := c.org.Load(); org != nil {
		return *org, nil
	}
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if org := c.org.Load(); org != nil {
		return *org, nil
	}
	me, err := c.Me(ctx)
	if err != nil {
		return "", fmt.Errorf("find the org of the key: %w", err)
	}
	c.org.Store(&me.Org)
	return me.Org, nil
}

// ServerStatus is the status of the server.
type ServerStatus struct {
	Status string `json:"status"` // ok
	// SearchWaiting is how many proposals wait to be added to the text index; 0 if they are few.
	SearchWaiting int64 `json:"search_waiting,omitempty"`
}

// Health reports whether the server runs. It needs no key.
func (c *Client) Health(ctx context.Context, opts ...Option) (*ServerStatus, error) {
	return fetch[ServerStatus](ctx, c, call{method: http.MethodGet, path: "/healthz"}, opts)
}

// Ready reports whether the server can serve requests. It needs no key.
func (c *Client) Ready(ctx context.Context, opts ...Option) (*ServerStatus, error) {
	return fetch[ServerStatus](ctx, c, call{method: http.MethodGet, path: "/readyz"}, opts)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
