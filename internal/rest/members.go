package rest

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

const (
	membersPath = "/api/v1/orgs/{org}/members"
	memberPath  = membersPath + "/{ref}"
	linkPath    = memberPath + "/link"

	// setupPath is where a link is used; the token follows.
	setupPath = "/setup/"
)

// MemberPath is the path of one principal.
type MemberPath struct {
	OrgPath
	Ref string `path:"ref" pattern:"^(user|agent|service):[a-z0-9][a-z0-9._-]{0,63}$" doc:"The principal: user:ID, agent:ID or service:ID." example:"user:ada"`
}

// principal reads the path; the guard has checked it.
func (p *MemberPath) principal(c *call) (identity.Principal, error) {
	return identity.ParseRef(c.Org(), p.Ref)
}

func validRef(s string) bool {
	_, err := identity.ParseRef("", s)
	return err == nil
}

func (a *api) registerMembers() {
	register(a, operation{
		id: "list-members", method: http.MethodGet, path: membersPath, tag: tagMembers,
		summary: "List the principals of the org", action: identity.ReadMembers,
		description: "Users, agents and services, by kind and id." + needsAdmin,
	}, a.listMembers)
	register(a, operation{
		id: "create-member", method: http.MethodPost, path: membersPath, tag: tagMembers, status: http.StatusCreated,
		summary: "Create a user or a service", action: identity.ManageMembers, audit: identity.MemberCreate, errors: []int{http.StatusConflict},
		description: "Agents are registered under …/agents. 409: the id is taken." + needsAdmin,
	}, a.createMember)
	register(a, operation{
		id: "get-member", method: http.MethodGet, path: memberPath, tag: tagMembers,
		summary: "Get a principal", action: identity.ReadMembers, validID: validRef,
		description: "By its ref, such as `user:ada`." + needsAdmin,
	}, a.getMember)
	register(a, operation{
		id: "change-member", method: http.MethodPatch, path: memberPath, tag: tagMembers,
		summary: "Change, disable or enable a principal", action: identity.ManageMembers, validID: validRef, audit: identity.MemberUpdate,
		errors: []int{http.StatusConflict},
		description: "Changes the fields that are given. A disabled principal is refused everywhere within seconds, and its streams end within ten; enabled again, its live " +
			"keys work again. A user who stops being an admin loses every key that carries svc:admin:admin, and programs lose that scope. 409: one cannot disable oneself, and the last enabled admin of an org stays." + needsAdmin,
	}, a.changeMember)
	register(a, operation{
		id: "create-member-link", method: http.MethodPost, path: linkPath, tag: tagMembers, status: http.StatusCreated,
		summary: "Make a link to set a user's password", action: identity.ManageMembers, validID: validRef, audit: account.LinkCreate,
		errors: []int{http.StatusConflict},
		description: "For a user who cannot sign in any more: whoever opens the link first sets a new password, which ends the user's sessions. Hand it to the user alone. " +
			"It replaces earlier links. The URL is in this answer only, and in that to the same request with the same Idempotency-Key and credentials. " +
			"409: an agent or a service, or the user is disabled." + needsAdmin,
	}, a.createMemberLink)
	a.huma.OpenAPI().Paths[linkPath].Post.RequestBody.Required = false
}

type listMembersInput struct {
	OrgPath
	Kind   kindFilter   `query:"kind" doc:"Only principals of this kind."`
	State  memberFilter `query:"state" doc:"Only principals in this state."`
	Cursor string       `query:"cursor" doc:"Continues the list: next_cursor of the page before."`
	Limit  manageLimit  `query:"limit" doc:"Results on a page."`
}

type (
	kindFilter   string
	memberFilter string
)

func (kindFilter) Schema(huma.Registry) *huma.Schema { return filter(identity.Kinds, all) }

func (memberFilter) Schema(huma.Registry) *huma.Schema { return filter(identity.MemberStates, all) }

type listMembersOutput struct{ Body MemberList }

func (a *api) listMembers(ctx context.Context, c *call, in *listMembersInput) (*listMembersOutput, error) {
	n := in.Limit.size()
	f := identity.MemberFilter{Limit: n + 1}
	if in.Kind != all {
		f.Kind = identity.Kind(in.Kind)
	}
	if in.State != all {
		f.State = string(in.State)
	}
	if in.Cursor != "" {
		var err error
		if f.After, err = identity.ParseRef(c.Org(), in.Cursor); err != nil {
			return nil, errs.InvalidFields(badCursor)
		}
	}
	list, err := a.admin.Members(ctx, c.Access, f)
	if err != nil {
		return nil, err
	}
	out := &listMembersOutput{}
	if len(list) > n {
		list = list[:n]
		next := list[n-1].Ref()
		out.Body.NextCursor = &next
	}
	out.Body.Members = make([]Member, len(list))
	for i := range list {
		out.Body.Members[i] = memberOf(&list[i])
	}
	return out, nil
}

type createMemberInput struct {
	OrgPath
	OnceHeader
	Body payload[MemberCreation]
}

type createMemberOutput struct {
	Location string `header:"Location" doc:"Where the new member is."`
	Replayed string `header:"Idempotency-Replayed" doc:"true, if the request had been carried out before."`
	Body     Member
}

func (a *api) createMember(ctx context.Context, c *call, in *createMemberInput) (*createMemberOutput, error) {
	b := &in.Body.value
	p := identity.Principal{Org: c.Org(), Kind: identity.Kind(b.Kind), ID: b.ID}
	c.target = p.Ref()
	var wrong []errs.Field
	if p.Kind == identity.Agent {
		wrong = append(wrong, errs.Field{Path: errs.At("kind"), Message: "must be user or service; agents are registered under …/agents"})
	}
	wrong = append(wrong, notEmpty("name", b.Name)...)
	if err := in.Body.check(identity.ValidateMember(p, deref(b.Name), b.Admin), wrong...); err != nil {
		return nil, err
	}
	ctx, once, err := c.begin(ctx, b)
	if err != nil {
		return nil, err
	}
	m, err := a.admin.CreateMember(ctx, c.Access, p.Kind, p.ID, deref(b.Name), b.Admin)
	if err != nil {
		return nil, err
	}
	return &createMemberOutput{
		Location: c.request.URL.EscapedPath() + "/" + m.Ref(), Replayed: replayed(once.Replayed()), Body: memberOf(&m),
	}, nil
}

type getMemberInput struct{ MemberPath }

type memberOutput struct{ Body Member }

func (a *api) getMember(ctx context.Context, c *call, in *getMemberInput) (*memberOutput, error) {
	p, err := in.principal(c)
	if err != nil {
		return nil, err
	}
	m, err := a.admin.Member(ctx, c.Access, p)
	if err != nil {
		return nil, err
	}
	return &memberOutput{Body: memberOf(&m)}, nil
}

type changeMemberInput struct {
	MemberPath
	OnceHeader
	Body payload[MemberPatch]
}

type changeMemberOutput struct {
	Replayed string `header:"Idempotency-Replayed" doc:"true, if the request had been carried out before."`
	Body     Member
}

func (a *api) changeMember(ctx context.Context, c *call, in *changeMemberInput) (*changeMemberOutput, error) {
	p, err := in.principal(c)
	if err != nil {
		return nil, err
	}
	b := &in.Body.value
	e := identity.MemberEdit{Name: b.Name, Admin: b.Admin, Disabled: b.Disabled}
	invalid := e.Validate(p.Kind)
	if e == (identity.MemberEdit{}) && len(in.Body.broken) > 0 {
		invalid = nil // it is not empty: it could not be read
	}
	if err := in.Body.check(invalid); err != nil {
		return nil, err
	}
	ctx, once, err := c.begin(ctx, b)
	if err != nil {
		return nil, err
	}
	m, err := a.admin.UpdateMember(ctx, c.Access, p, e)
	if err != nil {
		return nil, err
	}
	return &changeMemberOutput{Replayed: replayed(once.Replayed()), Body: memberOf(&m)}, nil
}

type createMemberLinkInput struct {
	MemberPath
	OnceHeader
	Body payload[MemberLinkCreation] // may be left out
}

type createMemberLinkOutput struct {
	Replayed string `header:"Idempotency-Replayed" doc:"true, if the request had been carried out before."`
	Body     MemberLink
}

func (a *api) createMemberLink(ctx context.Context, c *call, in *createMemberLinkInput) (*createMemberLinkOutput, error) {
	p, err := in.principal(c)
	if err != nil {
		return nil, err
	}
	lifetime := account.LinkLifetime
	if n := in.Body.value.ExpiresInSeconds; n != nil {
		lifetime = seconds(*n)
	}
	if err := in.Body.check(account.CheckLifetime(lifetime)); err != nil {
		return nil, err
	}
	ctx, once, err := c.begin(ctx, &in.Body.value)
	if err != nil {
		return nil, err
	}
	token, l, err := a.accounts.ResetLink(ctx, c.Access, p, lifetime)
	if err != nil {
		return nil, err
	}
	return &createMemberLinkOutput{
		Replayed: replayed(once.Replayed()), Body: MemberLink{URL: a.publicURL + setupPath + token, ExpiresAt: stamp(l.ExpiresAt)},
	}, nil
}
