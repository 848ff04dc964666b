package account

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Audit actions of federated identities.
const (
	IdentityLink   identity.AuditAction = "identity.link"
	IdentityUnlink identity.AuditAction = "identity.unlink"
)

// Identity is an account at an identity provider that a user signs in with. Issuer and
// subject identify it; the label is for display.
type Identity struct {
	Org, Issuer, Subject string
	User                 string
	Label                string
	CreatedAt            time.Time
}

// Arrival is a federated login: a person whom an identity provider has authenticated.
type Arrival struct {
	Org             string // the org that the provider belongs to
	Issuer, Subject string
	Provider        string // display name of the provider
	User            string // user id from the provider's claims; empty: see NoUser
	NoUser          string // why there is no user id
	Name, Label     string
	Barred          string // why the person may not sign in; empty: allowed
	Create          bool   // create a member for an unknown person
	Admin           *bool  // whether the person is an admin; nil: the provider does not decide
}

// Proof is what a federated login comes with besides the provider's claims. The zero value
// is no proof.
type Proof struct {
	Invitation identity.Hash
	Link       identity.Hash
	User       string // the signed-in user who connects the provider
}

// ProofOfInvitation returns the proof of a person who opened an invitation.
func ProofOfInvitation(token string) Proof { return Proof{Invitation: identity.HashToken(token)} }

// ProofOfLink returns the proof of a person who opened a link.
func ProofOfLink(token string) Proof { return Proof{Link: hashLink(token)} }

// Scene is the state that a federated login depends on.
type Scene struct {
	Linked     string               // the user that has this identity; empty: none
	Account    *Credentials         // of that user, or else of the user that the login names; nil: none
	Identities []Identity           // of the user of Account
	Opened     bool                 // the user is linked with other memberships
	Admins     int                  // other enabled admins of the org; only set if Arrival.Admin is
	Rights     identity.AdminRights // of the user; only set if Arrival.Admin is
	Invitation *identity.Invitation
	Link       *Link
}

// Outcome is the result of a federated login.
type Outcome struct {
	Member        identity.Member      // after the login
	Create        bool                 // the member is new
	Update        bool                 // the role of the member changes
	End           identity.AdminRights // credentials that end because the member is no longer an admin
	Connect       bool                 // the identity is connected with the member
	UseInvitation bool
	UseLink       bool
	Entries       []identity.AuditEntry

	notes []note
}

// note becomes an audit entry. With a code, the entry is a refusal.
type note struct {
	action       identity.AuditAction
	detail, code string
	target       string // empty: the member
}

// Federation is the part of the store that keeps federated identities.
type Federation interface {
	// Arrive calls decide and writes its outcome, in one transaction. Of several
	// concurrent logins that exclude each other, all but one get Conflict.
	Arrive(ctx context.Context, a Arrival, by Proof, at time.Time, decide func(Scene) (Outcome, error)) (Signed, error)
	Identities(ctx context.Context, p identity.Principal) ([]Identity, error)
	// Disconnect deletes the user's identity at the issuer unless decide returns an error.
	// It returns NotFound if there is none.
	Disconnect(
		ctx context.Context, p identity.Principal, issuer string,
		decide func(Credentials, []Identity) (identity.AuditEntry, error),
	) error
}

// Arrive signs in a person whom an identity provider has authenticated. The first time, it
// connects the identity with a member. Refusals are recorded in the audit log, too.
func (a *Accounts) Arrive(ctx context.Context, who Arrival, by Proof) (Signed, error) {
	signed, err := a.arrive(ctx, who, by)
	if code := errs.As(err).Code; code == "resource.exists" || code == "identity.principal_exists" {
		// Another login was faster, perhaps of the same person in another tab: decide again.
		signed, err = a.arrive(ctx, who, by)
	}
	switch errs.KindOf(err) {
	case errs.Forbidden, errs.Conflict, errs.NotFound, errs.Unauthenticated:
	default:
		return signed, err
	}
	target := ""
	if who.User != "" {
		target = identity.Principal{Kind: identity.User, ID: who.User}.Ref()
	}
	e := identity.NewEntry(ctx, a.now(), who.Org, LoginFailed, target, "with "+who.Provider+", as "+who.says())
	e.Outcome, e.Code, e.Actor, e.KeyID = identity.Refused, errs.As(err).Code, "", ""
	if aerr := a.audit.Append(ctx, e); aerr != nil {
		return Signed{}, aerr
	}
	return Signed{}, err
}

func (a *Accounts) arrive(ctx context.Context, who Arrival, by Proof) (Signed, error) {
	now := a.now()
	signed, err := a.store.Arrive(ctx, who, by, now, func(s Scene) (Outcome, error) {
		out, err := welcome(who, by, s, now)
		if err != nil {
			return Outcome{}, err
		}
		for _, n := range out.notes {
			e := a.entry(ctx, out.Member.Principal, n.action, n.detail)
			if n.code != "" {
				e.Outcome, e.Code = identity.Refused, n.code
			}
			if n.target != "" {
				e.Target = n.target
			}
			out.Entries = append(out.Entries, e)
		}
		for _, e := range out.End.End(ctx, out.Member.Principal, now) {
			e.Actor, e.KeyID = out.Member.Ref(), ""
			e.Detail += ", by " + who.Provider
			out.Entries = append(out.Entries, e)
		}
		return out, nil
	})
	signed.By = ByProvider
	return signed, err
}

func (who *Arrival) says() string {
	if who.Label == "" {
		return who.Subject
	}
	return who.Label + " (" + who.Subject + ")"
}

// Ways are the ways in which a user can sign in.
type Ways struct {
	Password   bool
	Identities []Identity
}

// Ways returns the ways in which a user can sign in.
func (a *Accounts) Ways(ctx context.Context, p identity.Principal) (Ways, error) {
	c, err := a.store.Credentials(ctx, p)
	if err != nil {
		return Ways{}, err
	}
	list, err := a.store.Identities(ctx, p)
	return Ways{c.Hash != "", list}, err
}

// Disconnect removes an identity from a user, who must have another way to sign in.
func (a *Accounts) Disconnect(ctx context.Context, p identity.Principal, issuer, provider string) error {
	decide := func(c Credentials, list []Identity) (identity.AuditEntry, error) {
		return a.entry(ctx, p, IdentityUnlink, provider), mayDisconnect(c, list, provider)
	}
	err := a.store.Disconnect(ctx, p, issuer, decide)
	if err != nil && errs.KindOf(err) == errs.NotFound {
		err = errs.New(errs.NotFound, "account.not_connected", "your account is not connected with %s", provider)
	}
	return err
}

func mayDisconnect(c Credentials, list []Identity, provider string) error {
	if c.Hash == "" && len(list) < 2 {
		return errs.New(errs.Conflict, "account.last_way",
			"%s is your only way to sign in; "+
				"ask the operator for a link to set a password first: parley admin link", provider)
	}
	return nil
}
