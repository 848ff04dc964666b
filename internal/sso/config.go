// Package sso is the client of external identity providers: people sign in with them (OpenID
// Connect), and programs use access tokens (JWT) that they issued.
//
// One file lists the trusted issuers; it is parsed strictly at the start. A provider is
// contacted when it is first needed, so that the server starts without it. Its responses are
// bounded in size and time, and its keys are fetched again when they change. Package account
// decides who may sign in as which user. The package must not know pages or SQL.
package sso

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

// Issuer is a provider as it is configured by the operator.
type Issuer struct {
	Name   string  `json:"name"`   // used in URLs and in the audit log
	Title  string  `json:"title"`  // display name
	Issuer string  `json:"issuer"` // issuer URL
	Org    string  `json:"org"`    // the org of its people and programs
	SignIn *SignIn `json:"sign_in"`
	Tokens *Tokens `json:"tokens"`
}

// SignIn configures sign-in with the provider.
type SignIn struct {
	ClientID    string   `json:"client_id"`
	SecretFile  string   `json:"client_secret_file"`
	Scopes      []string `json:"scopes"`
	UserClaim   string   `json:"user_claim"`
	Domain      string   `json:"domain"` // of user claims that are email addresses
	CreateUsers bool     `json:"create_users"`
	Require     *Match   `json:"require"` // who may sign in
	Admin       *Match   `json:"admin"`   // who is an admin; nil: the provider does not decide

	secret string
}

// Tokens configures which access tokens of the issuer are accepted.
type Tokens struct {
	Audience   string          `json:"audience"`
	Users      bool            `json:"users"`
	Principals []PrincipalRule `json:"principals"`
	Scopes     []ScopeRule     `json:"scopes"`
}

// Match is a claim with a value.
type Match struct {
	Claim string `json:"claim"`
	Value string `json:"value"`
}

// PrincipalRule maps tokens with a claim to a principal.
type PrincipalRule struct {
	Claim     string `json:"claim"`
	Value     string `json:"value"`
	Principal string `json:"principal"`

	who identity.Principal
}

// ScopeRule maps tokens with a claim to scopes.
type ScopeRule struct {
	Claim  string   `json:"claim"`
	Value  string   `json:"value"`
	Grants []string `json:"grants"`

	grants identity.Scopes
}

// Bounds of the file.
const (
	maxFile    = 256 << 10
	maxIssuers = 32
	maxRules   = 500
	maxText    = 500
	maxSecret  = 4 << 10
)

var (
	namePattern  = text.Pattern(`^[a-z0-9][a-z0-9-]{0,31}$`)
	scopePattern = text.Pattern(`^[\x21\x23-\x5b\x5d-\x7e]{1,200}$`) // RFC 6749, 3.3
)

// Load reads the file with the issuers, and the secret files that it names. The error names
// the wrong setting.
func Load(name string) ([]Issuer, error) {
	data, err := readBounded(name, maxFile)
	if err != nil {
		return nil, err
	}
	list, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i := range list {
		if err := list[i].readSecret(filepath.Dir(name)); err != nil {
			return nil, fmt.Errorf("%s: issuers[%d].sign_in.client_secret_file: %w", name, i, err)
		}
	}
	return list, nil
}

func readBounded(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return data, err
}

func (is *Issuer) readSecret(dir string) error {
	if is.SignIn == nil || is.SignIn.SecretFile == "" {
		return nil
	}
	name := is.SignIn.SecretFile
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	data, err := readBounded(name, maxSecret)
	if err != nil {
		return err
	}
	if is.SignIn.secret = strings.TrimRight(string(data), "\r\n"); strings.TrimSpace(is.SignIn.secret) == "" {
		return errors.New("the file is empty")
	}
	return nil
}

// parse parses and validates everything except the secrets.
func parse(data []byte) ([]Issuer, error) {
	if err := refuseNull(data); err != nil {
		return nil, err
	}
	var file struct {
		Issuers []Issuer `json:"issuers"`
	}
	if err := json.Unmarshal(data, &file, json.RejectUnknownMembers(true)); err != nil {
		return nil, readable(err)
	}
	if n := len(file.Issuers); n == 0 || n > maxIssuers {
		return nil, fmt.Errorf("issuers must list 1 to %d issuers; it has %d", maxIssuers, n)
	}
	for i := range file.Issuers {
		if err := file.Issuers[i].check(); err != nil {
			return nil, fmt.Errorf("issuers[%d].%w", i, err)
		}
	}
	return file.Issuers, unambiguous(file.Issuers)
}

// refuseNull returns an error if a setting is null.
func refuseNull(data []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		t, err := dec.ReadToken()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return readable(err)
		case t.Kind() == 'n':
			return fmt.Errorf("%s must not be null; leave it out instead", dec.StackPointer())
		}
	}
}

// readable rewords an error of the JSON library for a person who edits the file.
func readable(err error) error {
	var syn *jsontext.SyntacticError
	var sem *json.SemanticError
	switch {
	case errors.As(err, &syn) && errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("%s is set twice", syn.JSONPointer)
	case errors.As(err, &syn):
		return fmt.Errorf("is not valid JSON at byte %d (%s): %w", syn.ByteOffset, syn.JSONPointer, syn.Err)
	case errors.As(err, &sem) && errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("there is no setting %s", sem.JSONPointer)
	case errors.As(err, &sem):
		return fmt.Errorf("%s is a JSON %s where another type belongs", sem.JSONPointer, kindName(sem.JSONKind))
	}
	return fmt.Errorf("is not valid JSON: %w", err)
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '"':
		return "string"
	case '0':
		return "number"
	case 't', 'f':
		return "boolean"
	case '{':
		return "object"
	case '[':
		return "array"
	}
	return "value"
}

// check sets defaults and validates the issuer. Errors start with the name of the setting.
func (is *Issuer) check() error {
	if is.Title == "" {
		is.Title = is.Name
	}
	switch {
	case !namePattern().MatchString(is.Name):
		return errors.New("name must have 1 to 32 of a-z, 0-9 and '-', and start with a letter or digit")
	case !plainText(is.Title, 60):
		return errors.New("title must be one line of at most 60 characters")
	case !identity.ValidOrgID(is.Org):
		return errors.New("org must be the id of an org")
	case is.SignIn == nil && is.Tokens == nil:
		return errors.New("sign_in or tokens must be there, or both")
	}
	if err := checkAddress(is.Issuer); err != nil {
		return fmt.Errorf("issuer %w", err)
	}
	if is.SignIn != nil {
		if err := is.SignIn.check(); err != nil {
			return fmt.Errorf("sign_in.%w", err)
		}
	}
	if is.Tokens == nil {
		return nil
	}
	if err := is.Tokens.check(is.Org); err != nil {
		return fmt.Errorf("tokens.%w", err)
	}
	switch {
	case is.SignIn != nil && is.SignIn.ClientID == is.Tokens.Audience:
		return errors.New("tokens.audience must differ from sign_in.client_id, " +
			"which is the audience of ID tokens: they are no access tokens")
	case is.Tokens.Users && is.SignIn == nil:
		return errors.New("tokens.users needs sign_in: it is by signing in that a subject becomes a user")
	}
	return nil
}

// checkAddress checks an issuer URL: https, or http on this machine.
func checkAddress(s string) error {
	u, err := url.Parse(s)
	if err != nil || len(s) > maxText || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return errors.New("must be a URL such as https://login.example.com, without query and fragment")
	}
	return checkEndpoint(s)
}

// checkEndpoint checks the URL of an endpoint: https, or http on this machine.
func checkEndpoint(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return errors.New("must be a URL such as https://login.example.com")
	case u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()):
		return nil
	}
	return errors.New("must start with https://; http:// is for this machine only")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s *SignIn) check() error {
	for i, scope := range s.Scopes {
		if !scopePattern().MatchString(scope) {
			return fmt.Errorf("scopes[%d] must be one scope without spaces", i)
		}
	}
	if len(s.Scopes) == 0 {
		s.Scopes = []string{"profile", "email"}
	}
	if !slices.Contains(s.Scopes, "openid") {
		s.Scopes = append([]string{"openid"}, s.Scopes...)
	}
	if s.UserClaim == "" {
		s.UserClaim = "preferred_username"
	}
	switch {
	case !plainText(s.ClientID, maxText):
		return errors.New("client_id is required: the id of this server at the provider")
	case len(s.Scopes) > 50:
		return errors.New("scopes can have 50 entries at most")
	case !plainText(s.UserClaim, maxText):
		return errors.New("user_claim must name a claim")
	case s.Domain != "" && (!plainText(s.Domain, 255) || strings.ContainsAny(s.Domain, "@/: ") ||
		s.Domain != strings.ToLower(s.Domain)):
		return errors.New("domain must be a domain such as acme.example, in lower case and without '@'")
	case s.Domain == "" && s.UserClaim == "email":
		return errors.New("domain is required if user_claim is email: " +
			"the part before the '@' does not identify a user without it")
	}
	for what, m := range map[string]*Match{"require": s.Require, "admin": s.Admin} {
		if m != nil && (!plainText(m.Claim, maxText) || !plainText(m.Value, maxText)) {
			return fmt.Errorf("%s must have a claim and a value", what)
		}
	}
	return nil
}

func (t *Tokens) check(org string) error {
	switch {
	case !plainText(t.Audience, maxText):
		return errors.New("audience is required: the audience of tokens that are meant for this server")
	case !t.Users && len(t.Principals) == 0:
		return errors.New("users must be true, or principals must list the principals of tokens")
	case len(t.Principals) > maxRules:
		return fmt.Errorf("principals can have %d entries at most", maxRules)
	case len(t.Scopes) == 0 || len(t.Scopes) > maxRules:
		return fmt.Errorf("scopes must have 1 to %d entries: a token without scopes can do nothing", maxRules)
	}
	for i := range t.Principals {
		r := &t.Principals[i]
		if !plainText(r.Claim, maxText) || !plainText(r.Value, maxText) {
			return fmt.Errorf("principals[%d] must have a claim and a value", i)
		}
		who, err := identity.ParseRef(org, r.Principal)
		if err != nil {
			return fmt.Errorf("principals[%d].principal: %w", i, err)
		}
		if who.Kind == identity.User {
			return fmt.Errorf("principals[%d].principal cannot be a user: people are identified by signing in (tokens.users)", i)
		}
		r.who = who
	}
	for i := range t.Scopes {
		r := &t.Scopes[i]
		if !plainText(r.Claim, maxText) || !plainText(r.Value, maxText) ||
			len(r.Grants) == 0 || len(r.Grants) > identity.MaxScopes {
			return fmt.Errorf("scopes[%d] must have a claim, a value and 1 to %d grants", i, identity.MaxScopes)
		}
		for _, g := range r.Grants {
			scope, err := identity.ParseScope(g)
			if err != nil {
				return fmt.Errorf("scopes[%d].grants: %w", i, err)
			}
			r.grants = append(r.grants, scope)
		}
	}
	return nil
}

// unambiguous returns an error if a callback, a subject or a token could belong to two
// issuers.
func unambiguous(list []Issuer) error {
	names, subjects, audiences := map[string]int{}, map[[2]string]int{}, map[[2]string]int{}
	for i, is := range list {
		if j, dup := names[is.Name]; dup {
			return fmt.Errorf("issuers[%d].name is that of issuers[%d]", i, j)
		}
		names[is.Name] = i
		who := [2]string{is.Org, is.Issuer}
		if j, dup := subjects[who]; dup {
			return fmt.Errorf("issuers[%d] has the issuer and the org of issuers[%d]; write both into one", i, j)
		}
		subjects[who] = i
		if is.Tokens == nil {
			continue
		}
		what := [2]string{is.Issuer, is.Tokens.Audience}
		if j, dup := audiences[what]; dup {
			return fmt.Errorf(
				"issuers[%d].tokens has the issuer and the audience of issuers[%d]: a token would be of either org", i, j)
		}
		audiences[what] = i
	}
	return nil
}

// plainText reports whether s is one line of text that is not empty.
func plainText(s string, most int) bool {
	return s != "" && text.Rule{Form: text.Plain, Max: most}.Check(s) == ""
}
