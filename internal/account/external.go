package account

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// The actions of accounts elsewhere that go to the audit log.
const (
	IdentityLink   identity.AuditAction = "identity.link"
	IdentityUnlink identity.AuditAction = "identity.unlink"
)

// Identity is an account elsewhere with which a user signs in here. Issuer and
// subject are what a person is known by; the label is for people to read.
type Identity struct {
	Org, Issuer, Subject string
	User                 string
	Label                string
	CreatedAt            time.Time
}

// Arrival is somebody for whom another identity provider vouches.
type Arrival struct {
	Org             string // whose people the provider's people are
	Issuer, Subject string
	Provider        string // what people call it
	User            string // what the person would be called here; empty: NoUser says why there is no name
	NoUser          string
	Name, Label     string
	Barred          string // why the person may not come in at all; empty: may
	Create          bool   // unknown people become members
	Admin           *bool  // the provider's word on who is an admin; nil: it has none
}

// Proof is what an arrival brings along beside the provider's word; the zero value
// is nothing.
type Proof struct {
	Invitation identity.Hash
	Link       identity.Hash
	User       string // is signed in already, and wants to be connected
}

// ProofOfInvitation is the proof of somebody who opened an invitation.
func ProofOfInvitation(token string) Proof { return Proof{Invitation: identity.HashToken(token)} }

// ProofOfLink is the proof of somebody who opened a link.
func ProofOfLink(token string) Proof { return Proof{Link: hashLink(token)} }

// Scene is what the store knows of an arrival.
type Scene struct {
	Linked     string               // the user whose account elsewhere this is; empty: nobody's
	Account    *Credentials         // of that user, or else of the one whom the arrival is about; nil: there is none
	Identities []Identity           // of that user
	Opened     bool                 // that user is linked with other memberships
	Admins     int                  // enabled admins of the org beside that user; only counted if the provider has a word on it
	Rights     identity.AdminRights // of that user; only read if the provider has a word on it
	Invitation *identity.Invitation
	Link       *Link
}

// Outcome is what becomes of an arrival.
type Outcome struct {
	Member        identity.Member      // as it is then
	Create        bool                 // the member is new
	Update        bool                 // its role changes
	End           identity.AdminRights // credentials that end because the member is no longer an admin
	Connect       bool                 // the account elsewhere becomes the member's
	UseInvitation bool
	UseLink       bool
	Entries       []identity.AuditEntry

	notes []note
}

// note becomes an audit entry; with a code it is one of a refusal.
type note struct {
	action       identity.AuditAction
	detail, code string
	target       string // empty: the member
}

// Federation is the part of the store that knows accounts elsewhere.
type Federation interface {
	// Arrive carries out what decide makes of an arrival, all in one transaction. Of
	// several at once that exclude each other all but one get Conflict.
	Arrive(ctx context.Context, a Arrival, by Proof, at time.Time, decide func(Scene) (Outcome, error)) (Signed, error)
	Identities(ctx context.Context, p identity.Principal) ([]Identity, error)
	// Disconnect deletes the user's account at the issuer if decide lets it; NotFound:
	// there is none.
	Disconnect(ctx context.Context, p identity.Principal, issuer string, decide func(Credentials, []Identity) (identity.AuditEntry, error)) error
}

// Arrive signs somebody in for whom another provider vouches, and connects both
// accounts the first time. Refusals are written to the audit log as well: somebody
// whom the provider knows tried.
func (a *Accounts) Arrive(ctx context.Context, who Arrival, by Proof) (Signed, error) {
	signed, err := a.arrive(ctx, who, by)
	if code := errs.As(err).Code; code == "resource.exists" || code == "identity.principal_exists" {
		// Somebody was quicker, perhaps the same person in another tab: what is there now decides.
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

// Ways are how somebody can sign in.
type Ways struct {
	Password   bool
	Identities []Identity
}

// Ways returns how a user can sign in.
func (a *Accounts) Ways(ctx context.Context, p identity.Principal) (Ways, error) {
	c, err := a.store.Credentials(ctx, p)
	if err != nil {
		return Ways{}, err
	}
	list, err := a.store.Identities(ctx, p)
	return Ways{c.Hash != "", list}, err
}

// Disconnect takes an account elsewhere from a user, who must be able to sign in
// without it.
func (a *Accounts) Disconnect(ctx context.Context, p identity.Principal, issuer, provider string) error {
	err := a.store.Disconnect(ctx, p, issuer, func(c Credentials, list []Identity) (identity.AuditEntry, error) {
		return a.entry(ctx, p, IdentityUnlink, provider), mayDisconnect(c, list, provider)
	})
	if err != nil && errs.KindOf(err) == errs.NotFound {
		err = errs.New(errs.NotFound, "account.not_connected", "your account is not connected with %s", provider)
	}
	return err
}

func mayDisconnect(c Credentials, list []Identity, provider string) error {
	if c.Hash == "" && len(list) < 2 {
		return errs.New(errs.Conflict, "account.last_way",
			"%s is your only way to sign in; ask the operator for a link to set a password first: parley admin link", provider)
	}
	return nil
}
