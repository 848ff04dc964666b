package rest

import (
	"cmp"
	"context"
	"net/http"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

const (
	agentsPath = "/api/v1/orgs/{org}/agents"
	agentPath  = agentsPath + "/{id}"

	connectionPath = agentPath + "/connection"
	refreshPath    = agentPath + "/refresh"
)

// AgentPath is the path of one agent.
type AgentPath struct {
	OrgPath
	ID string `path:"id" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" doc:"The agent's id." example:"scout"`
}

func (a *api) registerAgents() {
	register(a, operation{
		id: "list-agents", method: http.MethodGet, path: agentsPath, tag: tagAgents,
		summary: "List the agents of the org", action: identity.ReadAgents,
		description: "Sorted by id, disabled agents included. A key that is restricted to agents lists only these. " +
			"Requires svc:tasks:read, svc:a2a:write or svc:admin:admin.",
	}, a.listAgents)
	register(a, operation{
		id: "create-agent", method: http.MethodPost, path: agentsPath, tag: tagAgents,
		summary: "Register an agent", action: identity.ManageAgents, audit: identity.AgentCreate,
		status: http.StatusCreated, errors: []int{http.StatusConflict},
		description: "The agent can be called at once, and is offline until a worker connects. With relay, a remote A2A " +
			"agent does its work: the server reads its card, and takes over its skills now and every five minutes. " +
			"409 if the org already has an agent with this id or, for a public agent, if a public agent of another org " +
			"has or had it. Requires svc:admin:admin.",
	}, a.createAgent)
	register(a, operation{
		id: "get-agent", method: http.MethodGet, path: agentPath, tag: tagAgents,
		summary: "Get an agent", action: identity.ReadAgents, validID: identity.ValidAgentID,
		description: "Requires svc:tasks:read, svc:a2a:write or svc:admin:admin.",
	}, a.getAgent)
	register(a, operation{
		id: "change-agent", method: http.MethodPatch, path: agentPath, tag: tagAgents,
		summary: "Change, pin or disable an agent", action: identity.ManageAgents, validID: identity.ValidAgentID,
		audit: identity.AgentUpdate, errors: []int{http.StatusConflict},
		description: "Changes the given fields. A disabled agent cannot be called or worked for, and its keys are " +
			"rejected; its tasks stay queued. 409 if the agent tries to disable itself, or becomes public while a public " +
			"agent of another org has or had its id. Requires svc:admin:admin.",
	}, a.changeAgent)
	register(a, operation{
		id: "refresh-agent", method: http.MethodPost, path: refreshPath, tag: tagAgents,
		summary: "Read the card of a relay's remote agent", action: identity.ManageAgents, validID: identity.ValidAgentID,
		audit: identity.AgentUpdate, errors: []int{http.StatusConflict, http.StatusUnprocessableEntity},
		description: "Takes over the skills of the remote agent now, instead of within five minutes. " +
			"422 if the card cannot be read or used. Requires svc:admin:admin.",
	}, a.refreshAgent)
	register(a, operation{
		id: "get-agent-connection", method: http.MethodGet, path: connectionPath, tag: tagAgents,
		summary: "Diagnose the workers of an agent", action: identity.ManageAgents, validID: identity.ValidAgentID,
		description: "Tells whether the agent has workers and, if not, the most likely cause: no key, an unused key, " +
			"a missing scope, a key of another agent, a disabled agent, or a pinned status. " +
			"Each node lists the workers that it refused since its start. Requires svc:admin:admin.",
	}, a.getAgentConnection)
}

type listAgentsInput struct{ OrgPath }

type listAgentsOutput struct{ Body AgentList }

func (a *api) listAgents(ctx context.Context, c *call, _ *listAgentsInput) (*listAgentsOutput, error) {
	list, err := a.agents.Visible(ctx, c.Access)
	if err != nil {
		return nil, err
	}
	out := &listAgentsOutput{Body: AgentList{Total: len(list)}}
	out.Body.Agents, err = a.agentsOf(ctx, c, list)
	return out, err
}

type createAgentInput struct {
	OrgPath
	OnceHeader
	Body payload[AgentCreation]
}

type createAgentOutput struct {
	Location string `header:"Location" doc:"URL of the new agent."`
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     Agent
}

func (a *api) createAgent(ctx context.Context, c *call, in *createAgentInput) (*createAgentOutput, error) {
	b := &in.Body.value
	c.target = "agent:" + b.ID
	var wrong []errs.Field
	if !identity.ValidAgentID(b.ID) && !in.Body.failed("id") {
		wrong = append(wrong, errs.Field{
			Path: errs.At("id"), Message: "must have 1 to 64 of a-z, 0-9, '.', '_' and '-', and start with a letter or digit",
		})
	}
	created := agent.Agent{
		ID: b.ID, Org: c.Org(), Name: b.Name, Description: deref(b.Description), Public: b.Public,
		Profile: agent.Profile{Version: b.Version, DocumentationURL: b.DocumentationURL, IconURL: b.IconURL},
		Policy:  b.Policy.value,
	}
	skills, broken := readSkills(b.Skills)
	created.Describe(skills)
	wrong = append(wrong, broken...)
	provider, broken := b.Provider.read()
	created.Profile.Provider = provider
	wrong = append(wrong, broken...)
	created.Quota, broken = b.Quota.read()
	wrong = append(append(wrong, broken...), b.Policy.broken...)
	remote, broken := b.Relay.read()
	wrong = append(wrong, broken...)
	checked := created
	if b.Relay.set {
		wrong = append(wrong, a.checkNewRelay(b)...)
		checked.Name = cmp.Or(checked.Name, checked.ID) // the card has the name
	}
	if err := in.Body.check(checked.Validate(), wrong...); err != nil {
		return nil, err
	}
	// Not the body: skillInput has no JSON encoding, and the credential must not be kept.
	ctx, once, err := c.begin(ctx, createdAgent{created, policyOf(created.Policy), deref(remote.URL)})
	if err != nil {
		return nil, err
	}
	if b.Relay.set {
		created, err = a.relays.Create(ctx, c.Access, created, deref(remote.URL), remote.Credential)
	} else {
		created, err = a.agents.Create(ctx, c.Access, created)
	}
	if err != nil {
		return nil, err
	}
	out := &createAgentOutput{Location: c.request.URL.EscapedPath() + "/" + created.ID, Replayed: replayed(once.Replayed())}
	out.Body, err = a.wholeAgent(ctx, c, &created)
	return out, err
}

type getAgentInput struct{ AgentPath }

type agentOutput struct{ Body Agent }

func (a *api) getAgent(ctx context.Context, c *call, in *getAgentInput) (*agentOutput, error) {
	found, err := a.agents.Get(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	if found.Profile, err = a.agents.Profile(ctx, c.Access, found.ID); err != nil {
		return nil, err
	}
	out := &agentOutput{}
	out.Body, err = a.wholeAgent(ctx, c, &found)
	return out, err
}

type changeAgentInput struct {
	AgentPath
	OnceHeader
	Body payload[AgentPatch]
}

type changeAgentOutput struct {
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     Agent
}

func (a *api) changeAgent(ctx context.Context, c *call, in *changeAgentInput) (*changeAgentOutput, error) {
	b := &in.Body.value
	edit := agent.Edit{
		Name: b.Name, Description: b.Description, Public: b.Public, Disabled: b.Disabled,
		Version: b.Version, DocumentationURL: b.DocumentationURL, IconURL: b.IconURL,
	}
	var wrong []errs.Field
	if b.Skills != nil {
		skills, broken := readSkills(*b.Skills)
		edit.Skills = &skills
		wrong = append(wrong, broken...)
	}
	if b.Provider.set {
		provider, broken := b.Provider.read()
		edit.Provider = &provider
		wrong = append(wrong, broken...)
	}
	if b.Quota.set {
		quota, broken := b.Quota.read()
		edit.Quota = &quota
		wrong = append(wrong, broken...)
	}
	if b.Status.set {
		edit.Pinned = &b.Status.value
	}
	if b.Policy.set {
		edit.Policy = &b.Policy.value
		wrong = append(wrong, b.Policy.broken...)
	}
	remote, broken := b.Relay.read()
	wrong = append(wrong, broken...)
	if b.Relay.set && b.Skills != nil {
		wrong = append(wrong, errs.Field{Path: errs.At("skills"), Message: skillsOfRemote})
	}
	if edit == (agent.Edit{}) && !b.Relay.set && len(in.Body.broken) == 0 {
		wrong = []errs.Field{{
			Message: "must contain at least one of name, description, skills, version, documentation_url, icon_url, " +
				"provider, relay, public, quota, disabled, status and policy",
		}}
	}
	if err := in.Body.check(nil, wrong...); err != nil {
		return nil, err
	}
	if edit.Disabled != nil && *edit.Disabled {
		self := identity.Principal{Org: c.Org(), Kind: identity.Agent, ID: in.ID}
		if err := identity.NotOneself(c.Access, self); err != nil {
			return nil, err
		}
	}
	// Not the body: its encoding lacks the status, and the credential must not be kept.
	ctx, once, err := c.begin(ctx, editedAgent{
		edit, policyOf(b.Policy.value), b.Policy.set && b.Policy.value.IsZero(), deref(remote.URL), remote.SetCredential,
	})
	if err != nil {
		return nil, err
	}
	var changed agent.Agent
	if b.Relay.set {
		changed, err = a.relays.Update(ctx, c.Access, in.ID, edit, remote)
	} else {
		changed, err = a.agents.Update(ctx, c.Access, in.ID, edit)
	}
	if err != nil {
		return nil, err
	}
	a.relays.Edited(&changed)
	out := &changeAgentOutput{Replayed: replayed(once.Replayed())}
	out.Body, err = a.wholeAgent(ctx, c, &changed)
	return out, err
}

const skillsOfRemote = "are those of the remote agent; leave them out"

// checkNewRelay reports what is wrong with a request to register a relay.
func (a *api) checkNewRelay(b *AgentCreation) (wrong []errs.Field) {
	if deref(b.Relay.value.URL) == "" && len(b.Relay.broken) == 0 {
		wrong = append(wrong, errs.Field{Path: errs.At("relay", "url"), Message: "is required"})
	}
	if len(b.Skills) > 0 {
		wrong = append(wrong, errs.Field{Path: errs.At("skills"), Message: skillsOfRemote})
	}
	return wrong
}

func (a *api) refreshAgent(ctx context.Context, c *call, in *getAgentInput) (*agentOutput, error) {
	changed, err := a.relays.Refresh(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	out := &agentOutput{}
	out.Body, err = a.wholeAgent(ctx, c, &changed)
	return out, err
}

type connectionOutput struct{ Body AgentConnection }

func (a *api) getAgentConnection(ctx context.Context, c *call, in *getAgentInput) (*connectionOutput, error) {
	g, err := a.agents.Get(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	got, err := a.workers.Connection(ctx, c.Access, dispatch.Enlisted{
		ID: g.ID, Disabled: g.Disabled, Pinned: g.Pinned, Builtin: g.Builtin,
	})
	if err != nil {
		return nil, err
	}
	return &connectionOutput{Body: connectionOf(&got)}, nil
}
