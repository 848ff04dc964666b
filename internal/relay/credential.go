package relay

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/outbound"
	"github.com/parley-dev/parley/internal/secret"
	"github.com/parley-dev/parley/internal/text"
)

// The types of credentials.
const (
	Bearer = "bearer" // a fixed token
	Header = "header" // a header of any name, such as X-API-Key
	OAuth  = "oauth"  // OAuth 2.0 client credentials
)

// CredentialTypes lists the types.
var CredentialTypes = []string{Bearer, Header, OAuth}

// Credential is what the remote demands. It is stored sealed.
type Credential struct {
	Type         string
	Token        string   `json:",omitempty"` // bearer
	Name, Value  string   `json:",omitempty"` // header
	TokenURL     string   `json:",omitempty"` // oauth, as the rest
	ClientID     string   `json:",omitempty"`
	ClientSecret string   `json:",omitempty"`
	Scopes       []string `json:",omitempty"`
}

// Bounds of a credential, in bytes.
const (
	MaxSecret = 8 << 10
	MaxName   = 256
	MaxScopes = 32
)

var (
	headerName  = text.Pattern(`^[A-Za-z0-9!#$%&'*+.^_|~-]{1,256}$`)
	headerValue = text.Pattern(`^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$`)
	// ownHeaders are set by HTTP, by the protocol or by the other types of credentials.
	ownHeaders = text.Pattern(`(?i)^(host|connection|content-.*|transfer-encoding|te|trailer|upgrade|accept.*|` +
		`user-agent|a2a-.*|x-a2a-.*|proxy-.*|expect|keep-alive|traceparent|tracestate|cookie|grpc-.*)$`)
)

// check reports what is wrong with the credential.
func (c *Credential) check(g *outbound.Guard) error {
	var wrong []errs.Field
	add := func(name, msg string) {
		wrong = append(wrong, errs.Field{Path: errs.At("relay", "credential", name), Message: msg})
	}
	value := func(name, s string, most int) {
		if len(s) > most || !headerValue().MatchString(s) {
			add(name, fmt.Sprintf("must have 1 to %d printable ASCII characters, and no space at either end", most))
		}
	}
	switch c.Type {
	case Bearer:
		value("token", c.Token, MaxSecret)
	case Header:
		if !headerName().MatchString(c.Name) || ownHeaders().MatchString(c.Name) {
			add("name", "must be the name of a header that the protocol does not use, such as X-API-Key")
		}
		value("value", c.Value, MaxSecret)
	case OAuth:
		if err := g.Check(c.TokenURL); err != nil {
			add("token_url", err.Error())
		} else if u, err := url.Parse(c.TokenURL); err != nil || u.User != nil || u.Fragment != "" {
			add("token_url", "must be a URL without user name, password and fragment")
		}
		value("client_id", c.ClientID, MaxName)
		value("client_secret", c.ClientSecret, MaxSecret)
		if len(c.Scopes) > MaxScopes {
			add("scopes", fmt.Sprintf("must have at most %d entries", MaxScopes))
		}
		for i, s := range c.Scopes {
			if len(s) > MaxName || !headerValue().MatchString(s) || strings.ContainsAny(s, ` "\`) {
				wrong = append(wrong, errs.Field{
					Path: errs.At("relay", "credential", "scopes", i), Message: "is not an OAuth scope",
				})
			}
		}
	default:
		add("type", fmt.Sprintf("must be one of %v", CredentialTypes))
	}
	if len(wrong) > 0 {
		return errs.InvalidFields(wrong...)
	}
	return nil
}

func purpose(org, agent string) string { return secret.Purpose("relays", org, agent) }

func (c *Credential) seal(keys *secret.Keyring, org, agent string) (string, error) {
	plain, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("encode a credential: %w", err)
	}
	return keys.Seal(purpose(org, agent), plain)
}

func openCredential(keys *secret.Keyring, org, agent, sealed string) (*Credential, error) {
	if sealed == "" {
		return nil, nil
	}
	plain, err := keys.Open(purpose(org, agent), sealed)
	if err != nil {
		return nil, err
	}
	c := &Credential{}
	if err := json.Unmarshal(plain, c); err != nil {
		return nil, fmt.Errorf("decode a credential: %w", err)
	}
	return c, nil
}

// credentialError is why an access token could not be had.
type credentialError struct{ text string }

func (e *credentialError) Error() string { return e.text }

// authenticator sets the credential on requests. A nil authenticator sets none.
type authenticator struct {
	c      *Credential
	client *http.Client // to the token URL
	guard  *outbound.Guard

	asking singleflight.Group // one request for an access token at a time serves all who wait

	mu      sync.Mutex
	source  oauth2.TokenSource
	renewed int    // how often source was replaced
	issued  string // the last access token
}

func newAuthenticator(c *Credential, client *http.Client, g *outbound.Guard) *authenticator {
	if c == nil {
		return nil
	}
	return &authenticator{c: c, client: client, guard: g}
}

// header returns the header that a request needs.
func (a *authenticator) header(ctx context.Context) (name, value string, err error) {
	switch {
	case a == nil:
		return "", "", nil
	case a.c.Type == Bearer:
		return "authorization", "Bearer " + a.c.Token, nil
	case a.c.Type == Header:
		return strings.ToLower(a.c.Name), a.c.Value, nil
	}
	token, err := a.token(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", "", ctx.Err()
	case err != nil:
		why := a.guard.Explain(err)
		if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
			why = fmt.Sprintf("HTTP %d %s", e.Response.StatusCode, a.said(e.ErrorCode+" "+e.ErrorDescription))
		}
		return "", "", &credentialError{"the token URL issued no access token: " + a.hide(why)}
	}
	a.mu.Lock()
	a.issued = token.AccessToken
	a.mu.Unlock()
	return "authorization", "Bearer " + token.AccessToken, nil
}

// token returns an access token, a new one if the last one has expired.
func (a *authenticator) token(ctx context.Context) (*oauth2.Token, error) {
	source, key := a.tokens()
	got := a.asking.DoChan(key, func() (any, error) { return source.Token() })
	select {
	case r := <-got:
		token, _ := r.Val.(*oauth2.Token)
		return token, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// tokens returns the source of tokens, and a name for it.
func (a *authenticator) tokens() (source oauth2.TokenSource, key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.source == nil {
		a.renewed++
		config := clientcredentials.Config{
			ClientID: a.c.ClientID, ClientSecret: a.c.ClientSecret, TokenURL: a.c.TokenURL, Scopes: a.c.Scopes,
		}
		// The source outlives the request that needs it first.
		a.source = config.TokenSource(context.WithValue(context.Background(), oauth2.HTTPClient, a.client))
	}
	return a.source, strconv.Itoa(a.renewed)
}

// said returns what a remote said, as a harmless line without the credential. It hides first: part of
// a credential at the end of a text that was cut would not be recognized.
func (a *authenticator) said(s string) string { return said(a.hide(strings.TrimSpace(s))) }

// hide returns a text without the secrets of the credential. It ends early, after more than the maxSaid
// characters that are shown: a remote may send a very long text, of secrets too.
func (a *authenticator) hide(s string) string {
	if a == nil {
		return s
	}
	forms := a.forms()
	var out strings.Builder
next:
	for s != "" && out.Len() < (maxSaid+1)*utf8.UTFMax {
		for _, form := range forms {
			if rest, ok := strings.CutPrefix(s, form); ok {
				out.WriteString("[credential]")
				s = rest
				continue next
			}
		}
		out.WriteByte(s[0])
		s = s[1:]
	}
	return out.String()
}

// forms returns the secrets of the credential, in the forms in which requests have them and texts
// quote them: the longest first, since one may be the beginning of another.
func (a *authenticator) forms() (forms []string) {
	secrets := []string{a.c.Token, a.c.Value, a.c.ClientSecret}
	if a.c.ClientSecret != "" {
		for _, encode := range []func(string) string{url.QueryEscape, func(s string) string { return s }} {
			pair := encode(a.c.ClientID) + ":" + encode(a.c.ClientSecret)
			secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(pair)))
		}
	}
	a.mu.Lock()
	secrets = append(secrets, a.issued)
	a.mu.Unlock()
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		quoted := strconv.Quote(secret)
		forms = append(forms, secret, quoted[1:len(quoted)-1], url.QueryEscape(secret), url.PathEscape(secret))
		if inJSON, err := json.Marshal(secret); err == nil {
			forms = append(forms, string(inJSON[1:len(inJSON)-1]))
		}
	}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	return forms
}

// refused drops an access token that the remote refused, so that the next request gets a new one.
func (a *authenticator) refused() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.source = nil
}
