package storetest

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/store"
)

// orgAdmin calls the service like a transport.
type orgAdmin struct{ *identity.OrgAdmin }

func (s orgAdmin) Audit(
	ctx context.Context, a identity.Access, f identity.AuditFilter,
) ([]identity.AuditEntry, error) {
	a, err := a.As(identity.ReadAudit)
	if err != nil {
		return nil, err
	}
	return s.OrgAdmin.Audit(ctx, a, f)
}

func (s orgAdmin) Keys(ctx context.Context, a identity.Access, f identity.KeyFilter) ([]identity.Key, error) {
	a, err := a.As(identity.ReadKeys)
	if err != nil {
		return nil, err
	}
	return s.OrgAdmin.Keys(ctx, a, f)
}

func (s orgAdmin) Key(ctx context.Context, a identity.Access, id string) (identity.Key, error) {
	a, err := a.As(identity.ReadKeys)
	if err != nil {
		return identity.Key{}, err
	}
	return s.OrgAdmin.Key(ctx, a, id)
}

func (s orgAdmin) CreateKey(
	ctx context.Context, a identity.Access, r identity.KeyRequest,
) (identity.Key, string, error) {
	a, err := a.As(identity.ManageKeys)
	if err != nil {
		return identity.Key{}, "", err
	}
	return s.OrgAdmin.CreateKey(ctx, a, r)
}

func (s orgAdmin) RevokeKey(ctx context.Context, a identity.Access, id string) (identity.Key, error) {
	a, err := a.As(identity.ManageKeys)
	if err != nil {
		return identity.Key{}, err
	}
	return s.OrgAdmin.RevokeKey(ctx, a, id)
}

func (s orgAdmin) RotateKey(
	ctx context.Context, a identity.Access, id string, overlap time.Duration,
) (identity.Key, string, error) {
	a, err := a.As(identity.ManageKeys)
	if err != nil {
		return identity.Key{}, "", err
	}
	return s.OrgAdmin.RotateKey(ctx, a, id, overlap)
}

func (s orgAdmin) Members(
	ctx context.Context, a identity.Access, f identity.MemberFilter,
) ([]identity.Member, error) {
	a, err := a.As(identity.ReadMembers)
	if err != nil {
		return nil, err
	}
	return s.OrgAdmin.Members(ctx, a, f)
}

func (s orgAdmin) Member(ctx context.Context, a identity.Access, p identity.Principal) (identity.Member, error) {
	a, err := a.As(identity.ReadMembers)
	if err != nil {
		return identity.Member{}, err
	}
	return s.OrgAdmin.Member(ctx, a, p)
}

func (s orgAdmin) CreateMember(
	ctx context.Context, a identity.Access, kind identity.Kind, id, name string, admin bool,
) (identity.Member, error) {
	a, err := a.As(identity.ManageMembers)
	if err != nil {
		return identity.Member{}, err
	}
	return s.OrgAdmin.CreateMember(ctx, a, kind, id, name, admin)
}

func (s orgAdmin) UpdateMember(
	ctx context.Context, a identity.Access, p identity.Principal, e identity.MemberEdit,
) (identity.Member, error) {
	a, err := a.As(identity.ManageMembers)
	if err != nil {
		return identity.Member{}, err
	}
	return s.OrgAdmin.UpdateMember(ctx, a, p, e)
}

func (s orgAdmin) EraseMember(ctx context.Context, a identity.Access, p identity.Principal) (identity.Member, error) {
	a, err := a.As(identity.EraseMembers)
	if err != nil {
		return identity.Member{}, err
	}
	return s.OrgAdmin.EraseMember(ctx, a, p)
}

func (s orgAdmin) Invite(
	ctx context.Context, a identity.Access, r identity.InvitationRequest,
) (identity.Invitation, string, error) {
	a, err := a.As(identity.ManageMembers)
	if err != nil {
		return identity.Invitation{}, "", err
	}
	return s.OrgAdmin.Invite(ctx, a, r)
}

func (s orgAdmin) Invitations(
	ctx context.Context, a identity.Access, before string, limit int,
) ([]identity.Invitation, error) {
	a, err := a.As(identity.ReadMembers)
	if err != nil {
		return nil, err
	}
	return s.OrgAdmin.Invitations(ctx, a, before, limit)
}

func (s orgAdmin) RevokeInvitation(ctx context.Context, a identity.Access, id string) (identity.Invitation, error) {
	a, err := a.As(identity.ManageMembers)
	if err != nil {
		return identity.Invitation{}, err
	}
	return s.OrgAdmin.RevokeInvitation(ctx, a, id)
}

func (s orgAdmin) OwnKeys(ctx context.Context, c *identity.Caller, f identity.KeyFilter) ([]identity.Key, error) {
	a, err := own(c)
	if err != nil {
		return nil, err
	}
	return s.OrgAdmin.OwnKeys(ctx, a, f)
}

func (s orgAdmin) OwnKey(ctx context.Context, c *identity.Caller, id string) (identity.Key, error) {
	a, err := own(c)
	if err != nil {
		return identity.Key{}, err
	}
	return s.OrgAdmin.OwnKey(ctx, a, id)
}

func (s orgAdmin) CreateOwnKey(
	ctx context.Context, c *identity.Caller, r identity.KeyRequest,
) (identity.Key, string, error) {
	a, err := own(c)
	if err != nil {
		return identity.Key{}, "", err
	}
	return s.OrgAdmin.CreateOwnKey(ctx, a, r)
}

func (s orgAdmin) RotateOwnKey(
	ctx context.Context, c *identity.Caller, id string, overlap time.Duration,
) (identity.Key, string, error) {
	a, err := own(c)
	if err != nil {
		return identity.Key{}, "", err
	}
	return s.OrgAdmin.RotateOwnKey(ctx, a, id, overlap)
}

func (s orgAdmin) RevokeOwnKey(ctx context.Context, c *identity.Caller, id string) (identity.Key, error) {
	a, err := own(c)
	if err != nil {
		return identity.Key{}, err
	}
	return s.OrgAdmin.RevokeOwnKey(ctx, a, id)
}

// own authorizes a caller for actions on itself.
func own(c *identity.Caller) (identity.Access, error) {
	org := ""
	if c != nil {
		org = c.Org
	}
	return identity.Authorize(c, org, identity.ManageOwnCredentials)
}

// clients calls the service like a transport.
type clients struct{ *oauth.Service }

func (s clients) CreateClient(
	ctx context.Context, a identity.Access, r oauth.ClientRequest,
) (oauth.Client, string, error) {
	a, err := a.As(identity.ManageClients)
	if err != nil {
		return oauth.Client{}, "", err
	}
	return s.Service.CreateClient(ctx, a, r)
}

func (s clients) Clients(ctx context.Context, a identity.Access, f oauth.ClientFilter) ([]oauth.Client, error) {
	a, err := a.As(identity.ReadClients)
	if err != nil {
		return nil, err
	}
	return s.Service.Clients(ctx, a, f)
}

func (s clients) OrgClient(ctx context.Context, a identity.Access, id string) (oauth.Client, error) {
	a, err := a.As(identity.ReadClients)
	if err != nil {
		return oauth.Client{}, err
	}
	return s.Service.OrgClient(ctx, a, id)
}

func (s clients) UpdateClient(
	ctx context.Context, a identity.Access, id string, e oauth.ClientEdit,
) (oauth.ClientOutcome, error) {
	a, err := a.As(identity.ManageClients)
	if err != nil {
		return oauth.ClientOutcome{}, err
	}
	return s.Service.UpdateClient(ctx, a, id, e)
}

func (s clients) RotateClient(
	ctx context.Context, a identity.Access, id string, overlap time.Duration,
) (oauth.Client, string, error) {
	a, err := a.As(identity.ManageClients)
	if err != nil {
		return oauth.Client{}, "", err
	}
	return s.Service.RotateClient(ctx, a, id, overlap)
}

func (s clients) DeleteClient(ctx context.Context, a identity.Access, id string) (oauth.Client, error) {
	a, err := a.As(identity.ManageClients)
	if err != nil {
		return oauth.Client{}, err
	}
	return s.Service.DeleteClient(ctx, a, id)
}

func (s clients) Programs(ctx context.Context, p identity.Principal) ([]oauth.Program, bool, error) {
	a, err := own(&identity.Caller{Principal: p})
	if err != nil {
		return nil, false, err
	}
	return s.Service.Programs(ctx, a)
}

func (s clients) EndProgram(ctx context.Context, p identity.Principal, id string) error {
	a, err := own(&identity.Caller{Principal: p})
	if err != nil {
		return err
	}
	return s.Service.EndProgram(ctx, a, id)
}

// registry is the directory of agents with the actions of the operator and of an org's admin.
type registry struct {
	*agent.Directory
	admin    *agent.Registry
	operator *agent.Operator
}

func newAgents(s store.Agents, q agent.Quotas, now func() time.Time) *registry {
	d := agent.NewDirectory(s, now)
	r := agent.NewRegistry(s, d, q, now)
	return &registry{d, r, agent.NewOperator(r)}
}

func (g *registry) Create(ctx context.Context, a agent.Agent) (agent.Agent, error) {
	return g.operator.Create(ctx, a)
}

func (g *registry) List(ctx context.Context, org string) ([]agent.Agent, error) {
	return g.operator.List(ctx, org)
}

func (g *registry) Release(ctx context.Context, org, id string) (agent.Agent, error) {
	return g.operator.Release(ctx, org, id)
}

func (g *registry) Update(ctx context.Context, org, id string, e agent.Edit) (agent.Agent, error) {
	root := identity.Principal{Org: org, Kind: identity.User, ID: "root"}
	caller := &identity.Caller{Principal: root, Scopes: identity.AllScopes}
	a, err := identity.Authorize(caller, org, identity.ManageAgents)
	if err != nil {
		return agent.Agent{}, err
	}
	return g.admin.Update(ctx, a, id, e)
}
