package account

import (
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

// welcome maps a federated login to a member. A known identity, by issuer and subject, signs
// in. An unknown one needs a proof, or a user id that no one else can claim.
func welcome(who Arrival, by Proof, s Scene, now time.Time) (Outcome, error) {
	var out Outcome
	var err error
	switch none := (identity.Hash{}); {
	case who.Barred != "":
		err = errs.New(errs.Forbidden, "account.barred", "%s", who.Barred)
	case by.User != "":
		out, err = connect(who, by.User, s)
	case by.Invitation != none:
		out, err = join(who, s, now)
	case by.Link != none:
		out, err = useLink(who, s)
	default:
		out, err = byName(who, s, now)
	}
	if err != nil {
		return Outcome{}, err
	}
	if out.Member.Disabled {
		return Outcome{}, errDisabled
	}
	if out.Connect {
		out.notes = append(out.notes, note{action: IdentityLink, detail: who.Provider + ": " + who.says()})
	}
	if by.User != "" {
		return out, nil // signed in already; the role does not change
	}
	role(who, s, &out)
	out.notes = append(out.notes, note{action: LoggedIn, detail: "with " + who.Provider})
	return out, nil
}

var errDisabled = errs.New(errs.Forbidden, "account.disabled", "your account is disabled; ask an admin of the org")

func conflict(code, format string, args ...any) error {
	return errs.New(errs.Conflict, code, format, args...)
}

func connect(who Arrival, user string, s Scene) (Outcome, error) {
	switch {
	case s.Account == nil:
		return Outcome{}, errBadLogin
	case s.Linked == user:
		return Outcome{Member: s.Account.Member}, nil
	case s.Linked != "":
		return Outcome{}, conflict("account.identity_taken",
			"this account of %s signs in here as user:%s already", who.Provider, s.Linked)
	case s.has(who.Issuer):
		return Outcome{}, conflict("account.other_identity",
			"you are connected with another account of %s; disconnect that one first", who.Provider)
	}
	return Outcome{Member: s.Account.Member, Connect: true}, nil
}

func join(who Arrival, s Scene, now time.Time) (Outcome, error) {
	i := s.Invitation
	switch {
	case i == nil || i.Org != who.Org || i.State(now) != identity.InvitationOpen:
		return Outcome{}, errs.New(errs.NotFound, "identity.bad_invitation",
			"the invitation is unknown, used, expired or revoked; ask an admin of the org for a new one")
	case s.Linked != "":
		return Outcome{}, conflict("account.identity_taken",
			"this account of %s signs in here as user:%s already; another person can still accept the invitation",
			who.Provider, s.Linked)
	case s.Account != nil:
		return Outcome{}, conflict("identity.principal_exists", "the org has a user:%s already", i.User)
	}
	m, err := identity.NewMember(userOf(i.Org, i.User), text.CleanName(i.Name), i.Admin, now)
	detail := m.Ref()
	if m.Admin {
		detail += ", admin"
	}
	return Outcome{
		Member: m, Create: true, Connect: true, UseInvitation: true,
		notes: []note{{action: identity.InvitationAccept, detail: detail + ", with " + who.Provider, target: i.ID}},
	}, err
}

func useLink(who Arrival, s Scene) (Outcome, error) {
	switch {
	case s.Link == nil || s.Link.Org != who.Org || s.Account == nil:
		return Outcome{}, errBadLink
	case s.Linked == s.Link.User:
		return Outcome{Member: s.Account.Member, UseLink: true}, nil
	case s.Linked != "":
		return Outcome{}, conflict("account.identity_taken",
			"this account of %s signs in here as user:%s already", who.Provider, s.Linked)
	case s.has(who.Issuer):
		return Outcome{}, conflict("account.other_identity",
			"user:%s is connected with another account of %s; "+
				"choose a password, and disconnect that one on the account page", s.Link.User, who.Provider)
	}
	return Outcome{Member: s.Account.Member, Connect: true, UseLink: true}, nil
}

// byName decides on the provider's claims alone. A user who has another way to sign in must
// use it first. A matching user id alone does not make an admin.
func byName(who Arrival, s Scene, now time.Time) (Outcome, error) {
	switch {
	case s.Linked != "" && s.Account != nil:
		return Outcome{Member: s.Account.Member}, nil
	case who.User == "":
		return Outcome{}, errs.New(errs.Forbidden, "account.no_name", "%s", who.NoUser)
	case s.Account == nil && !who.Create:
		return Outcome{}, errs.New(errs.Forbidden, "account.unknown_person",
			"%s knows you, but the org %s has no user:%s; "+
				"ask an admin of the org to invite you, and open the invitation with %s",
			who.Provider, who.Org, who.User, who.Provider)
	case s.Account == nil:
		m, err := identity.NewMember(userOf(who.Org, who.User), who.Name, false, now)
		return Outcome{
			Member: m, Create: true, Connect: true,
			notes: []note{{action: identity.MemberCreate, detail: "by signing in with " + who.Provider}},
		}, err
	case s.Account.Member.Disabled:
		return Outcome{}, errDisabled
	case s.has(who.Issuer):
		return Outcome{}, conflict("account.other_identity",
			"user:%s signs in with another account of %s; "+
				"if this is not you, ask an admin of the org to invite you by another name",
			who.User, who.Provider)
	case s.Account.Hash != "":
		return Outcome{}, conflict("account.has_password",
			"user:%s has a password: sign in with it first, then connect %s on the account page",
			who.User, who.Provider)
	case len(s.Identities) > 0 || s.Opened:
		return Outcome{}, conflict("account.has_identity",
			"user:%s signs in another way already: sign in like that first, then connect %s on the account page",
			who.User, who.Provider)
	case s.Account.Member.Admin && (who.Admin == nil || !*who.Admin):
		return Outcome{}, conflict("account.is_admin",
			"user:%s is an admin, and a name is not enough for that: "+
				"ask the operator for a link (parley admin link), and open it with %s", who.User, who.Provider)
	}
	return Outcome{Member: s.Account.Member, Connect: true}, nil
}

// has reports whether the user has an identity at the issuer.
func (s *Scene) has(issuer string) bool {
	for _, i := range s.Identities {
		if i.Issuer == issuer {
			return true
		}
	}
	return false
}

// role sets the admin role as the provider decides. The last admin keeps the role: renaming a
// group at the provider must not leave the org without an admin.
func role(who Arrival, s Scene, out *Outcome) {
	m := &out.Member
	if who.Admin == nil || m.Admin == *who.Admin {
		return
	}
	n := note{action: identity.MemberUpdate, detail: "admin true, by " + who.Provider}
	if !*who.Admin {
		n.detail = "admin false, by " + who.Provider
	}
	if !*who.Admin && !out.Create && s.Admins == 0 {
		n.code = "identity.last_admin"
	} else {
		m.Admin, out.Update = *who.Admin, !out.Create
		if !m.Admin {
			out.End = s.Rights
		}
	}
	out.notes = append(out.notes, n)
}
