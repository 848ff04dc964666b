// Package account holds the rules of sign-in for people: passwords, one-time links to set a
// password, federated login, and what ends a session.
//
// A person is a user of one or more orgs. Memberships in several orgs can be linked to one
// account, so that one password opens them all (see LinkMembership). The package must not
// know how passwords are hashed or sessions are stored; package web provides both.
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

// Audit actions.
const (
	LoggedIn       identity.AuditAction = "login"
	LoginFailed    identity.AuditAction = "login.failed"
	LoggedOut      identity.AuditAction = "logout"
	SignedOutAll   identity.AuditAction = "logout.everywhere"
	PasswordChange identity.AuditAction = "password.change"
	LinkCreate     identity.AuditAction = "login.link"
)

// Credentials are the member and password of an account.
type Credentials struct {
	Member     identity.Member
	Hash       string // of the password; empty: no password is set
	Generation int64  // sessions of another generation have ended
}

// Link is a one-time link to set the password of an account. Its token is the only proof.
type Link struct {
	Org, User string
	CreatedBy string
	CreatedAt time.Time
	ExpiresAt time.Time
}

// Lifetimes of a link.
const (
	LinkLifetime    = 24 * time.Hour // default
	MaxLinkLifetime = 7 * 24 * time.Hour
)

// Store keeps passwords, links and the connections of accounts.
type Store interface {
	// Credentials returns NotFound for an unknown user.
	Credentials(ctx context.Context, p identity.Principal) (Credentials, error)
	// SetPassword writes the hash, ends all sessions of the account and the memberships
	// that they opened, and returns the new generation.
	SetPassword(
		ctx context.Context, p identity.Principal, hash string, at time.Time, e identity.AuditEntry,
	) (int64, error)
	// EndSessions ends all sessions, links and OAuth grants of the account.
	EndSessions(ctx context.Context, p identity.Principal, at time.Time, e identity.AuditEntry) error

	LinkCreator
	// Link returns NotFound for a link that is unknown, used or expired.
	Link(ctx context.Context, h identity.Hash, now time.Time) (Link, error)
	// UseLink sets the password of the link's user and consumes the link. It unlinks the
	// user from other memberships, because an admin of the org may have used the link. Of
	// several concurrent uses one succeeds; the others are NotFound.
	UseLink(
		ctx context.Context, h identity.Hash, hash string, at time.Time, entry func(Link) identity.AuditEntry,
	) (Link, int64, error)

	Federation
	LinkStore
}

// LinkCreator is the part of the store that makes links.
type LinkCreator interface {
	// CreateLink keeps a link, which replaces the earlier ones of the user. It returns
	// NotFound for an unknown user and Conflict for a disabled one.
	CreateLink(ctx context.Context, l Link, h identity.Hash, e identity.AuditEntry) (Link, error)
}

// Audit is the log that logins and logouts are written to.
type Audit interface {
	Append(ctx context.Context, e identity.AuditEntry) error
}

// Hasher hashes passwords. Verify takes as long for a wrong password as for a right one.
// Hash and Verify wait for their turn until the context ends. They return Unavailable if too
// many callers wait already.
type Hasher interface {
	Hash(ctx context.Context, password string) (string, error)
	Verify(ctx context.Context, hash, password string) (bool, error)
	// Decoy returns a hash that matches no password. It does not hash.
	Decoy() string
}

// Accounts signs people in and manages their own accounts. What the operator does is
// Operator.
type Accounts struct {
	store  Store
	audit  Audit
	hasher Hasher
	now    func() time.Time
	decoy  string // the hash to verify for an account that cannot sign in
}

// New returns the service.
func New(store Store, audit Audit, hasher Hasher, now func() time.Time) *Accounts {
	a := &Accounts{store: store, audit: audit, hasher: hasher, now: now}
	if hasher != nil {
		a.decoy = hasher.Decoy()
	}
	return a
}

// Bounds of the length of a password. The upper one bounds the cost of hashing.
const (
	MinPassword = 12
	MaxPassword = 200
)

// CheckPassword returns an error if a password is too short, too long or easy to guess.
func CheckPassword(p identity.Principal, password string) error {
	bad := func(msg string) error { return errs.New(errs.Invalid, "account.bad_password", "%s", msg) }
	switch n := utf8.RuneCountInString(password); {
	case n < MinPassword:
		return bad("the password must have at least 12 characters; " +
			"a few words that do not belong together are easy to remember")
	case n > MaxPassword:
		return bad("the password can have 200 characters at most")
	}
	if strings.TrimSpace(password) == "" {
		return bad("the password must not consist of white space alone")
	}
	first, _ := utf8.DecodeRuneInString(password)
	lower := strings.ToLower(password)
	if common(lower) || strings.Trim(password, string(first)) == "" ||
		p.ID != "" && strings.Trim(strings.ReplaceAll(lower, p.ID, ""), "0123456789!. -_") == "" ||
		strings.HasPrefix(lower, "password") || strings.HasPrefix("123456789012345678901234567890", password) {
		return bad("the password is too easy to guess; a few words that do not belong together are easy to remember")
	}
	return nil
}

// Signed is the result of a sign-in.
type Signed struct {
	Member     identity.Member
	Generation int64
	By         Way
}

var errBadLogin = errs.New(errs.Unauthenticated, "account.bad_login", "the org, the user or the password is wrong")

// Login checks a password. The error and the time that it takes do not depend on which part
// is wrong.
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
		// Attempts with an unknown user are not logged: they could fill the log of any org.
		if c.Member.ID != "" {
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

func (a *Accounts) entry(
	ctx context.Context, p identity.Principal, action identity.AuditAction, detail string,
) identity.AuditEntry {
	e := identity.NewEntry(ctx, a.now(), p.Org, action, p.Ref(), detail)
	e.Actor, e.KeyID = p.Ref(), ""
	return e
}

// Resume returns the member of a session. It returns NotFound if the session has ended.
func (a *Accounts) Resume(ctx context.Context, org, user string, generation int64) (identity.Member, error) {
	c, err := a.store.Credentials(ctx, identity.Principal{Org: org, Kind: identity.User, ID: user})
	if err == nil && (c.Member.Disabled || c.Generation != generation) {
		err = errs.ErrNotFound
	}
	return c.Member, err
}

// Logout records the end of a session.
func (a *Accounts) Logout(ctx context.Context, p identity.Principal) error {
	return a.audit.Append(ctx, a.entry(ctx, p, LoggedOut, ""))
}

// LogoutEverywhere ends all sessions, links and OAuth grants of the account.
func (a *Accounts) LogoutEverywhere(ctx context.Context, p identity.Principal) error {
	return a.store.EndSessions(ctx, p, a.now(), a.entry(ctx, p, SignedOutAll, ""))
}

// WrongPassword is the code of the error for a wrong old password.
const WrongPassword = "account.wrong_password"

// ChangePassword replaces a password and ends all sessions. It requires the old password.
func (a *Accounts) ChangePassword(ctx context.Context, p identity.Principal, old, password string) (Signed, error) {
	right, err := a.owns(ctx, p, old)
	if err != nil {
		return Signed{}, err
	}
	if !right {
		return Signed{}, errs.New(errs.Invalid, WrongPassword, "the old password is wrong")
	}
	return a.setPassword(ctx, p, password)
}

// owns reports whether the password is that of the user.
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

// CheckOwnPassword checks the password of a signed-in user again. A wrong password is Invalid
// with the code WrongPassword and is recorded in the audit log.
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

// HashPassword validates a new password and returns its hash.
func (a *Accounts) HashPassword(ctx context.Context, p identity.Principal, password string) (string, error) {
	if err := CheckPassword(p, password); err != nil {
		return "", err
	}
	return a.hasher.Hash(ctx, password)
}

// Joined signs in a member who has just accepted an invitation with a password.
func (a *Accounts) Joined(ctx context.Context, p identity.Principal) (Signed, error) {
	c, err := a.store.Credentials(ctx, p)
	return Signed{c.Member, c.Generation, ByPassword}, err
}

// setPassword sets the password of an account. The caller has proved to own it.
func (a *Accounts) setPassword(ctx context.Context, p identity.Principal, password string) (Signed, error) {
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

// newLink makes a link that works from now on for the lifetime, and returns its token.
func newLink(
	ctx context.Context, store LinkCreator, p identity.Principal, now time.Time, lifetime time.Duration,
) (string, Link, error) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	token := base64.RawURLEncoding.EncodeToString(b[:])
	l := Link{
		Org: p.Org, User: p.ID, CreatedBy: identity.OriginOf(ctx).Actor, CreatedAt: now, ExpiresAt: now.Add(lifetime),
	}
	e := identity.NewEntry(ctx, now, p.Org, LinkCreate, p.Ref(), "")
	once := idempotency.From(ctx)
	if err := once.Seal(token); err != nil {
		return "", Link{}, err
	}
	l, err := store.CreateLink(ctx, l, hashLink(token), e)
	if err == nil {
		token, err = once.Secret(token)
	}
	return token, l, err
}

func hashLink(token string) identity.Hash { return sha256.Sum256([]byte("link:" + token)) }

var errBadLink = errs.New(errs.NotFound, "account.bad_link",
	"the link is unknown, used or expired; ask an admin of the org for a new one, or the operator: parley admin link")

// Link returns a link that can be used, for the page that asks for a password.
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
	entry := func(Link) identity.AuditEntry {
		return a.entry(ctx, p, PasswordChange, "by a link that "+l.CreatedBy+" made")
	}
	_, n, err := a.store.UseLink(ctx, hashLink(token), hash, a.now(), entry)
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
