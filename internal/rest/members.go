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

	// setupPath is the page where a link is used; the token follows.
	setupPath = "/setup/"
)

// MemberPath is the path of one principal.
type MemberPath struct {
	OrgPath
	Ref string `path:"ref" pattern:"^(user|agent|service):[a-z0-9][a-z0-9._-]{0,63}$" doc:"The principal." example:"user:ada"`
}

// principal parses the path, which the guard has checked.
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
		description: "Users, agents and services, sorted by kind and id." + needsAdmin,
	}, a.listMembers)
	register(a, operation{
		id: "create-member", method: http.MethodPost, path: membersPath, tag: tagMembers, status: http.StatusCreated,
		summary: "Create a user or a service", action: identity.ManageMembers, audit: identity.MemberCreate,
		errors:      []int{http.StatusConflict},
		description: "Register agents under …/agents instead. 409 if the id is taken." + needsAdmin,
	}, a.createMember)
	register(a, operation{
		id: "get-member", method: http.MethodGet, path: memberPath, tag: tagMembers,
		summary: "Get a principal", action: identity.ReadMembers, validID: validRef,
		description: "By its ref, such as `user:ada`." + needsAdmin,
	}, a.getMember)
	register(a, operation{
		id: "change-member", method: http.MethodPatch, path: memberPath, tag: tagMembers,
		summary: "Change, disable or enable a principal", action: identity.ManageMembers, validID: validRef,
		audit: identity.MemberUpdate, errors: []int{http.StatusConflict},
		description: "Changes the given fields. A disabled principal is rejected everywhere within seconds, and its " +
			"streams end within ten seconds; once enabled, its live keys work again. A user who stops being an admin loses " +
			"all keys with svc:admin:admin, and OAuth clients lose that scope. 409 if you disable yourself, or if the user is " +
			"the last enabled admin of the org." + needsAdmin,
	}, a.changeMember)
	register(a, operation{
		id: "erase-member", method: http.MethodDelete, path: memberPath, tag: tagMembers,
		summary: "Erase a user", action: identity.EraseMembers, validID: validRef,
		audit: identity.MemberErase, errors: []int{http.StatusConflict},
		description: "For a person who has left and must not be named any more. The id, the name, the e-mail address and " +
			"every way to sign in go; keys, sessions and programs end. Proposals, votes and comments stay, under the " +
			"pseudonym that is returned. Texts that people wrote are not changed. It cannot be undone, and takes some " +
			"seconds, and longer in an org with a long history. If it was interrupted, the same request continues, as does " +
			"one for the pseudonym; if it was completed, it is 404. " +
			"409 for an agent or a service, for yourself, and for the last enabled admin of the org." + needsAdmin,
	}, a.eraseMember)
	register(a, operation{
		id: "create-member-link", method: http.MethodPost, path: linkPath, tag: tagMembers, status: http.StatusCreated,
		summary: "Create a password link for a user", action: identity.ManageMembers, validID: validRef,
		audit: account.LinkCreate, errors: []int{http.StatusConflict},
		description: "For a user who cannot sign in. The first person who opens the link sets a new password, which ends " +
			"the user's sessions, so hand it only to the user. It replaces earlier links. The URL is returned once, and again " +
			"for the same Idempotency-Key, body and credentials. " +
			"409 for an agent, a service or a disabled user." + needsAdmin,
	}, a.createMemberLink)
	a.huma.OpenAPI().Paths[linkPath].Post.RequestBody.Required = false
}

type listMembersInput struct {
	OrgPath
	Kind   kindFilter   `query:"kind" doc:"Filter by kind."`
	State  memberFilter `query:"state" doc:"Filter by state."`
	Cursor string       `query:"cursor" doc:"Cursor: next_cursor of the previous page."`
	Limit  manageLimit  `query:"limit" doc:"Page size."`
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
	Location string `header:"Location" doc:"URL of the new member."`
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     Member
}

func (a *api) createMember(ctx context.Context, c *call, in *createMemberInput) (*createMemberOutput, error) {
	b := &in.Body.value
	p := identity.Principal{Org: c.Org(), Kind: identity.Kind(b.Kind), ID: b.ID}
	c.target = p.Ref()
	var wrong []errs.Field
	if p.Kind == identity.Agent {
		wrong = append(wrong, errs.Field{
			Path: errs.At("kind"), Message: "must be user or service; register agents under …/agents",
		})
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
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
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
		invalid = nil // the edit is empty only because its fields could not be decoded
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

type eraseMemberInput struct{ MemberPath }

func (a *api) eraseMember(ctx context.Context, c *call, in *eraseMemberInput) (*memberOutput, error) {
	p, err := in.principal(c)
	if err != nil {
		return nil, err
	}
	m, err := a.admin.EraseMember(ctx, c.Access, p)
	if err != nil {
		return nil, err
	}
	return &memberOutput{Body: memberOf(&m)}, nil
}

type createMemberLinkInput struct {
	MemberPath
	OnceHeader
	Body payload[MemberLinkCreation] // optional
}

type createMemberLinkOutput struct {
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     MemberLink
}

func (a *api) createMemberLink(
	ctx context.Context, c *call, in *createMemberLinkInput,
) (*createMemberLinkOutput, error) {
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
		Replayed: replayed(once.Replayed()),
		Body:     MemberLink{URL: a.publicURL + setupPath + token, ExpiresAt: stamp(l.ExpiresAt)},
	}, nil
}
