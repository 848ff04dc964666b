// Package account is how people sign in: passwords, one-time links to set one, and
// what ends a session.
//
// A person is a user of one org or of several; users of several orgs can be linked to one
// account, so that one password opens them all (see LinkMembership). The package holds rules only: how a
// password is hashed and where a session's cookie lives is the business of package
// web, which gives it a Hasher.
package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// The actions that go to the audit log.
const (
	LoggedIn       identity.AuditAction = "login"
	LoginFailed    identity.AuditAction = "login.failed"
	LoggedOut      identity.AuditAction = "logout"
	SignedOutAll   identity.AuditAction = "logout.everywhere"
	PasswordChange identity.AuditAction = "password.change"
	LinkCreate     identity.AuditAction = "login.link"
)

// Credentials are what an account signs in with.
type Credentials struct {
	Member     identity.Member
	Hash       string // of the password; empty: none was set
	Generation int64  // sessions of another one are over
}

// Link lets whoever has it set the password of an account, once.
type Link struct {
	Org, User string
	CreatedBy string
	CreatedAt time.Time
	ExpiresAt time.Time
}

// How long a link works.
const (
	LinkLifetime    = 24 * time.Hour // unless somebody says otherwise
	MaxLinkLifetime = 7 * 24 * time.Hour
)

// Store keeps passwords, links and what accounts are connected with.
type Store interface {
	// Credentials returns NotFound for an unknown user.
	Credentials(ctx context.Context, p identity.Principal) (Credentials, error)
	// SetPassword writes the hash, ends all sessions of the account with what they opened,
	// and returns the new generation.
	SetPassword(ctx context.Context, p identity.Principal, hash string, at time.Time, e identity.AuditEntry) (int64, error)
	// EndSessions ends all sessions of the account, its links, and all that it allowed
	// clients.
	EndSessions(ctx context.Context, p identity.Principal, at time.Time, e identity.AuditEntry) error

	// CreateLink keeps a link, which replaces the user's earlier ones. An unknown user is
	// NotFound, a disabled one Conflict.
	CreateLink(ctx context.Context, l Link, h identity.Hash, e identity.AuditEntry) (Link, error)
	// Link returns NotFound for one that is unknown, used or expired.
	Link(ctx context.Context, h identity.Hash, now time.Time) (Link, error)
	// UseLink is SetPassword for the account of a link, which is used up by it. The user is
	// linked with no other membership then: an admin of its org may have used the link. Of
	// several at once one succeeds, and the others get NotFound.
	UseLink(ctx context.Context, h identity.Hash, hash string, at time.Time, entry func(Link) identity.AuditEntry) (Link, int64, error)

	Federation
	LinkStore
}

// Audit is the log that logins and logouts are written to.
type Audit interface {
	Append(ctx context.Context, e identity.AuditEntry) error
}

// Hasher turns passwords into what is kept of them. Verify takes as long for a
// wrong password as for a right one. Both wait for their turn as long as the context
// lets them, and are Unavailable if too many wait already.
type Hasher interface {
	Hash(ctx context.Context, password string) (string, error)
	Verify(ctx context.Context, hash, password string) (bool, error)
	// Decoy returns the hash of no password, at no cost.
	Decoy() string
}

// Accounts signs people in.
type Accounts struct {
	store  Store
	audit  Audit
	hasher Hasher
	now    func() time.Time
	decoy  string // what is verified for an account that cannot sign in
}

// New makes the service.
func New(store Store, audit Audit, hasher Hasher, now func() time.Time) *Accounts {
	a := &Accounts{store: store, audit: audit, hasher: hasher, now: now}
	if hasher != nil {
		a.decoy = hasher.Decoy()
	}
	return a
}

// Bounds of a password. The upper one keeps a request from costing much.
const (
	MinPassword = 12
	MaxPassword = 200
)

// CheckPassword refuses a password that is easy to guess.
func CheckPassword(p identity.Principal, password string) error {
	bad := func(msg string) error { return errs.New(errs.Invalid, "account.bad_password", "%s", msg) }
	switch n := utf8.RuneCountInString(password); {
	case n < MinPassword:
		return bad("the password must have at least 12 characters; a few words that do not belong together are easy to remember")
	case n > MaxPassword:
		return bad("the password can have 200 characters at most")
	}
	if strings.TrimSpace(password) == "" {
		return bad("the password must not consist of white space alone")
	}
	first, _ := utf8.DecodeRuneInString(password)
	lower := strings.ToLower(password)
	if common(lower) || strings.Trim(password, string(first)) == "" || p.ID != "" && strings.Trim(strings.ReplaceAll(lower, p.ID, ""), "0123456789!. -_") == "" ||
		strings.HasPrefix(lower, "password") || strings.HasPrefix("123456789012345678901234567890", password) {
		return bad("the password is too easy to guess; a few words that do not belong together are easy to remember")
	}
	return nil
}

// Signed is an account that signed in.
type Signed struct {
	Member     identity.Member
	Generation int64
	By         Way
}

var errBadLogin = errs.New(errs.Unauthenticated, "account.bad_login", "the org, the user or the password is wrong")

// Login checks a password. Whatever is wrong, the answer is the same and takes as long.
func (a *Accounts) Login(ctx context.Context, org, user, password string) (Signed, error) {
	p := identity.Principal{Org: org, Kind: identity.User, ID: user}
	c := Credentials{}
	if identity.ValidOrgID(org) && identity.ValidAgentID(user) {
		found, err := a.store.Credentials(ctx, p)
		if err != nil && errs.KindOf(err) != errs.NotFound {
			return Signed{}, err
		}
		if err == nil {
			c = found
		}
	}
	hash, can := c.Hash, c.Hash != "" && !c.Member.Disabled
	if !can {
		hash = a.decoy
	}
	if len(password) > 4*MaxPassword {
		password = password[:4*MaxPassword]
	}
	right, err := a.hasher.Verify(ctx, hash, password)
	if err != nil {
		return Signed{}, err
	}
	if !right || !can {
		if c.Member.ID != "" { // nobody can fill the log of an org that they do not know a user of
			e := a.entry(ctx, p, LoginFailed, "")
			e.Outcome, e.Code, e.Actor = identity.Refused, errBadLogin.Code, ""
			if err := a.audit.Append(ctx, e); err != nil {
				return Signed{}, err
			}
		}
		return Signed{}, errBadLogin
	}
	return Signed{c.Member, c.Generation, ByPassword}, a.audit.Append(ctx, a.entry(ctx, p, LoggedIn, ""))
}

func (a *Accounts) entry(ctx context.Context, p identity.Principal, action identity.AuditAction, detail string) identity.AuditEntry {
	e := identity.NewEntry(ctx, a.now(), p.Org, action, p.Ref(), detail)
	e.Actor, e.KeyID = p.Ref(), ""
	return e
}

// Resume returns the account of a session, unless it was ended meanwhile.
func (a *Accounts) Resume(ctx context.Context, org, user string, generation int64) (identity.Member, error) {
	c, err := a.store.Credentials(ctx, identity.Principal{Org: org, Kind: identity.User, ID: user})
	if err == nil && (c.Member.Disabled || c.Generation != generation) {
		err = errs.ErrNotFound
	}
	return c.Member, err
}

// Logout writes that a session was ended.
func (a *Accounts) Logout(ctx context.Context, p identity.Principal) error {
	return a.audit.Append(ctx, a.entry(ctx, p, LoggedOut, ""))
}

// LogoutEverywhere ends all sessions of the account, and what it allowed programs.
func (a *Accounts) LogoutEverywhere(ctx context.Context, p identity.Principal) error {
	return a.store.EndSessions(ctx, p, a.now(), a.entry(ctx, p, SignedOutAll, ""))
}

// WrongPassword is the code of the refusal of a wrong old password.
const WrongPassword = "account.wrong_password"

// ChangePassword replaces the password of somebody who knows the old one, and ends
// all sessions.
func (a *Accounts) ChangePassword(ctx context.Context, p identity.Principal, old, password string) (Signed, error) {
	right, err := a.owns(ctx, p, old)
	if err != nil {
		return Signed{}, err
	}
	if !right {
		return Signed{}, errs.New(errs.Invalid, WrongPassword, "the old password is wrong")
	}
	return a.SetPassword(ctx, p, password)
}

// owns reports whether the password is the user's.
func (a *Accounts) owns(ctx context.Context, p identity.Principal, password string) (bool, error) {
	c, err := a.store.Credentials(ctx, p)
	if err != nil || len(password) > 4*MaxPassword || c.Hash == "" {
		return false, err
	}
	return a.hasher.Verify(ctx, c.Hash, password)
}

// HasPassword reports whether the user has a password.
func (a *Accounts) HasPassword(ctx context.Context, p identity.Principal) (bool, error) {
	c, err := a.store.Credentials(ctx, p)
	return c.Hash != "", err
}

// CheckOwnPassword asks for the password of somebody who is signed in once more. A wrong
// one is Invalid with the code WrongPassword, and written to the audit log.
func (a *Accounts) CheckOwnPassword(ctx context.Context, p identity.Principal, password string) error {
	right, err := a.owns(ctx, p, password)
	if err != nil || right {
		return err
	}
	wrong := errs.New(errs.Invalid, WrongPassword, "the password is wrong")
	e := a.entry(ctx, p, LoginFailed, "to confirm what a session asked for")
	e.Outcome, e.Code = identity.Refused, wrong.Code
	if err := a.audit.Append(ctx, e); err != nil {
		return err
	}
	return wrong
}

// HashPassword checks a password that somebody chose, and hashes it.
func (a *Accounts) HashPassword(ctx context.Context, p identity.Principal, password string) (string, error) {
	if err := CheckPassword(p, password); err != nil {
		return "", err
	}
	return a.hasher.Hash(ctx, password)
}

// Joined signs in a member who has just joined with a password.
func (a *Accounts) Joined(ctx context.Context, p identity.Principal) (Signed, error) {
	c, err := a.store.Credentials(ctx, p)
	return Signed{c.Member, c.Generation, ByPassword}, err
}

// SetPassword sets the password of an account, for whoever was proven to own it.
func (a *Accounts) SetPassword(ctx context.Context, p identity.Principal, password string) (Signed, error) {
	hash, err := a.HashPassword(ctx, p, password)
	if err != nil {
		return Signed{}, err
	}
	n, err := a.store.SetPassword(ctx, p, hash, a.now(), a.entry(ctx, p, PasswordChange, ""))
	if err != nil {
		return Signed{}, err
	}
	c, err := a.store.Credentials(ctx, p)
	return Signed{c.Member, n, ByPassword}, err
}

// NewLink makes a link for an account that exists, and returns its token. It is for the
// operator and the server; admins use ResetLink.
func (a *Accounts) NewLink(ctx context.Context, p identity.Principal) (token string, _ Link, _ error) {
	return a.newLink(ctx, p, LinkLifetime)
}

func (a *Accounts) newLink(ctx context.Context, p identity.Principal, lifetime time.Duration) (string, Link, error) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	token := base64.RawURLEncoding.EncodeToString(b[:])
	now := a.now()
	l := Link{Org: p.Org, User: p.ID, CreatedBy: identity.OriginOf(ctx).Actor, CreatedAt: now, ExpiresAt: now.Add(lifetime)}
	e := identity.NewEntry(ctx, now, p.Org, LinkCreate, p.Ref(), "")
	once := idempotency.From(ctx)
	if err := once.Seal(token); err != nil {
		return "", Link{}, err
	}
	l, err := a.store.CreateLink(ctx, l, hashLink(token), e)
	if err == nil {
		token, err = once.Secret(token)
	}
	return token, l, err
}

func hashLink(token string) identity.Hash { return sha256.Sum256([]byte("link:" + token)) }

var errBadLink = errs.New(errs.NotFound, "account.bad_link",
	"the link is unknown, used or expired; ask an admin of the org for a new one, or the operator: parley admin link")

// Link returns a link that can be used, for a page that asks for a password.
func (a *Accounts) Link(ctx context.Context, token string) (Link, error) {
	l, err := a.store.Link(ctx, hashLink(token), a.now())
	if err != nil && errs.KindOf(err) == errs.NotFound {
		err = errBadLink
	}
	return l, err
}

// UseLink sets the password of the link's account.
func (a *Accounts) UseLink(ctx context.Context, token, password string) (Signed, error) {
	l, err := a.Link(ctx, token)
	if err != nil {
		return Signed{}, err
	}
	p := identity.Principal{Org: l.Org, Kind: identity.User, ID: l.User}
	if err := CheckPassword(p, password); err != nil {
		return Signed{}, err
	}
	hash, err := a.hasher.Hash(ctx, password)
	if err != nil {
		return Signed{}, err
	}
	_, n, err := a.store.UseLink(ctx, hashLink(token), hash, a.now(), func(Link) identity.AuditEntry {
		return a.entry(ctx, p, PasswordChange, "by a link that "+l.CreatedBy+" made")
	})
	if err != nil {
		if errs.KindOf(err) == errs.NotFound {
			err = errBadLink
		}
		return Signed{}, err
	}
	c, err := a.store.Credentials(ctx, p)
	if err == nil && c.Member.Disabled {
		err = errBadLogin
	}
	return Signed{c.Member, n, ByPassword}, err
}
