package clilogin

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/parley-dev/parley/internal/oauth"
)

const (
	metadataPath = "/.well-known/oauth-authorization-server"
	maxDocument  = 256 << 10
	maxPasted    = 64 << 10
	// askWithin is how long the person may take. The request expires earlier on the server.
	askWithin = 15 * time.Minute
)

// Ask holds the options of SignIn.
type Ask struct {
	Server string
	Scopes []string // empty: all that the person may grant
	HTTP   *http.Client
	// Show shows the person the URL to open.
	Show func(address string)
	// Pasted is read for the URL that the browser was redirected to; nil: SignIn listens on a
	// local port for the redirect.
	Pasted io.Reader
}

// metadata is the metadata of the authorization server (RFC 8414).
type metadata struct {
	Issuer    string `json:"issuer"`
	Authorize string `json:"authorization_endpoint"`
	Token     string `json:"token_endpoint"`
	Revoke    string `json:"revocation_endpoint"`
	SendsIss  bool   `json:"authorization_response_iss_parameter_supported"`
}

// SignIn asks the person for consent in the browser and returns the tokens. It does not set
// the org and the principal, which only the server knows.
func SignIn(ctx context.Context, a Ask) (_ Login, err error) {
	m, err := discover(ctx, a)
	if err != nil {
		return Login{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askWithin,
		fmt.Errorf("no decision in the browser within %d minutes; run parley login again", askWithin/time.Minute))
	defer cancel()
	answers, redirect := pasted(a.Pasted), oauth.CommandLine.RedirectURIs[0]
	q := &question{metadata: m, state: rand.Text()}
	if a.Pasted == nil {
		l, failed := q.listen(redirect)
		if failed != nil {
			return Login{}, failed
		}
		defer func() { l.end(err) }()
		answers, redirect = l.answer, l.redirect
	}
	conf := config(m.Token, redirect)
	conf.Endpoint.AuthURL, conf.Scopes = m.Authorize, a.Scopes
	verifier := oauth2.GenerateVerifier()
	a.Show(conf.AuthCodeURL(q.state, oauth2.S256ChallengeOption(verifier)))
	given, err := answers(ctx)
	if err != nil {
		return Login{}, err
	}
	code, err := q.code(given)
	if err != nil {
		return Login{}, err
	}
	tok, err := conf.Exchange(with(ctx, a.HTTP), code, oauth2.VerifierOption(verifier))
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) {
			return Login{}, fmt.Errorf("%s refused the code (%s); run parley login again", m.Issuer, refused.ErrorCode)
		}
		return Login{}, fmt.Errorf("cannot exchange the code at %s: %w", m.Issuer, bare(err))
	}
	if tok.RefreshToken == "" {
		return Login{}, fmt.Errorf("%s returned no refresh token; is it a Parley server?", m.Issuer)
	}
	l := Login{Scopes: a.Scopes, Since: time.Now().UTC().Truncate(time.Second), TokenURL: m.Token, RevokeURL: m.Revoke}
	l.take(tok)
	return l, nil
}

func discover(ctx context.Context, a Ask) (metadata, error) {
	var m metadata
	server := Address(a.Server)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server+metadataPath, nil)
	if err != nil {
		return m, err
	}
	res, err := a.HTTP.Do(r)
	if err != nil {
		return m, fmt.Errorf("cannot reach %s: %w; is the server running, and is --server right?", server, bare(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return m, fmt.Errorf("%s%s returned %s; is it a Parley server?", server, metadataPath, res.Status)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxDocument)).Decode(&m); err != nil {
		return m, fmt.Errorf("cannot read %s%s: %w; is it a Parley server?", server, metadataPath, err)
	}
	// The issuer must be the server itself (RFC 8414, 3.3). Otherwise a server could send
	// people to another one.
	if Address(m.Issuer) != server {
		return m, fmt.Errorf("the server at %s has the public URL %s; use that: parley login --server %s",
			server, m.Issuer, m.Issuer)
	}
	for _, endpoint := range []string{m.Authorize, m.Token, m.Revoke} {
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" || u.Scheme != "https" &&
			(u.Scheme != "http" || strings.HasPrefix(server, "https:")) {
			return m, fmt.Errorf("%s has an endpoint with a URL that cannot be used: %q", server, endpoint)
		}
	}
	return m, nil
}

// question is an authorization request that a redirect must match.
type question struct {
	metadata
	state string
}

// matches reports whether the redirect belongs to this request.
func (q *question) matches(v url.Values) bool {
	return subtle.ConstantTimeCompare([]byte(v.Get("state")), []byte(q.state)) == 1
}

// code returns the code in a redirect. A code that was pasted alone has no state, but PKCE
// binds it to this request.
func (q *question) code(v url.Values) (string, error) {
	_, bare := v[pastedCode]
	switch {
	case bare:
		return v.Get(pastedCode), nil
	case !q.matches(v):
		return "", errors.New("this URL belongs to another login; run parley login again and use the URL that it prints")
	case v.Get("iss") != q.Issuer && (q.SendsIss || v.Has("iss")):
		return "", fmt.Errorf("the response does not come from %s; run parley login again", q.Issuer)
	case v.Get("error") == "access_denied":
		return "", errors.New("it was refused in the browser")
	case v.Get("error") != "":
		return "", fmt.Errorf("%s refused: %s %s", q.Issuer, v.Get("error"), v.Get("error_description"))
	case v.Get("code") == "":
		return "", errors.New("the response has no code; run parley login again")
	}
	return v.Get("code"), nil
}

// pastedCode is the key of a code that was pasted alone.
const pastedCode = " "

// pasted reads a line with the URL that the browser was redirected to, or with the code alone.
func pasted(in io.Reader) func(context.Context) (url.Values, error) {
	return func(ctx context.Context) (url.Values, error) {
		type read struct {
			line string
			err  error
		}
		lines := make(chan read, 1)
		go func() {
			line, err := bufio.NewReader(io.LimitReader(in, maxPasted)).ReadString('\n')
			lines <- read{strings.TrimSpace(line), err}
		}()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case r := <-lines:
			if r.err != nil && !errors.Is(r.err, io.EOF) {
				return nil, r.err
			}
			return parsePasted(r.line)
		}
	}
}

func parsePasted(s string) (url.Values, error) {
	if s == "" {
		return nil, errors.New("nothing was pasted; run parley login again")
	}
	if !strings.ContainsAny(s, ":/?=&") {
		return url.Values{pastedCode: {s}}, nil
	}
	query := s
	if _, after, ok := strings.Cut(s, "?"); ok {
		query, _, _ = strings.Cut(after, "#")
	}
	v, err := url.ParseQuery(query)
	if err != nil || !v.Has("code") && !v.Has("error") {
		return nil, errors.New("that is not the URL of the browser's last page: it has no code; run parley login again")
	}
	return v, nil
}
