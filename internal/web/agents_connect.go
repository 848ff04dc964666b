package web

import (
	"embed"
	"net/http"
	"strings"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

//go:embed snippets
var snippetFiles embed.FS

// snippet is an example program that connects a worker.
type snippet struct {
	ID, Name string
	Run      string // command that starts it
	Code     string
	Note     string
}

// snippets are programs for the agent scout of a server on this machine. Pages show them for
// another agent and server. Each reads its key from PARLEY_KEY.
var snippets = []struct{ id, name, file, run, note string }{
	{
		"go", "Go", "worker.go.txt", "go run .",
		"In a module with github.com/parley-dev/parley/sdk/worker, which handles heartbeats, retries and a clean stop.",
	},
	{"python", "Python", "worker.py", "python3 worker.py", "Python 3.9 or later, standard library only."},
	{
		"typescript", "TypeScript", "worker.mts", "node worker.mts",
		"No dependencies. Node 22.18 or later runs it as is. It is plain JavaScript: older versions run it as worker.mjs.",
	},
	{"curl", "curl", "worker.sh", "sh worker.sh", "A POSIX shell and curl. It completes every task with the same text."},
	{"mcp", "MCP", "mcp.sh", "", "Tools for the agent itself: it files proposals, votes and sends tasks. " +
		"Its key needs the rights “worker and tools”. " +
		"Other clients: parley mcp install --client …"},
}

const (
	snippetServer = "http://127.0.0.1:8080"
	snippetAgent  = "scout"
)

// snippetsFor returns the snippets for an agent.
func (p *Pages) snippetsFor(id string) ([]snippet, error) {
	fill := strings.NewReplacer(snippetServer, p.PublicURL, snippetAgent, id)
	out := make([]snippet, len(snippets))
	for i, s := range snippets {
		code, err := snippetFiles.ReadFile("snippets/" + s.file)
		if err != nil {
			return nil, err
		}
		out[i] = snippet{
			ID: s.id, Name: s.name, Run: s.run, Note: s.note,
			Code: strings.TrimSpace(fill.Replace(string(code))),
		}
	}
	return out, nil
}

// connectView is the page to connect a worker.
type connectView struct {
	Agent    agent.Agent
	Href     string // page of the agent
	State    connecting
	Snippets []snippet
	MayMake  bool
	Expiries []expiry
	Rights   string // chosen rights
	Expires  string
	Key      *identity.Key // the new key
	Secret   *secret       // of the new key
}

// workerRights are the scopes that the key of a worker can have.
var workerRights = map[string][]string{
	"worker": {string(identity.A2AServe)},
	"tools": {
		string(identity.A2AServe), string(identity.TasksRead), string(identity.TasksWrite),
		string(identity.A2AWrite),
	},
}

const defaultRights = "worker"

func (v *visit) connectPage() error {
	return v.showConnect(connectView{Rights: defaultRights, Expires: defaultExpiry}, nil)
}

func (v *visit) showConnect(view connectView, problem error) error {
	g, err := v.ownAgent(identity.ReadAgents)
	if err != nil {
		return err
	}
	view.Agent, view.Href, view.MayMake = g, v.agentPath(g.ID), v.may(identity.ManageKeys)
	view.Expiries = expiriesWith(view.Expires)
	if view.State, err = v.connecting(&g); err != nil {
		return err
	}
	if view.Snippets, err = v.snippetsFor(g.ID); err != nil {
		return err
	}
	return renderForm(v, http.StatusOK, "agent_connect", "Connect "+g.Name, view, problem)
}

// connectState serves the part of the page that changes. A script polls it until a worker is
// connected, because no event says that a key was used or refused.
func (v *visit) connectState() error {
	g, err := v.ownAgent(identity.ReadAgents)
	if err != nil {
		return err
	}
	state, err := v.connecting(&g)
	if err != nil {
		return err
	}
	return v.writePart(http.StatusOK, "agent_connect", "connecting", state)
}

// makeWorkerKey creates a key for workers of the agent. Only the first response contains its
// secret: if the form is sent again, the key is shown without it.
func (v *visit) makeWorkerKey() error {
	a, err := v.access(identity.ManageKeys)
	if err != nil {
		return v.audited(identity.KeyCreate, agentPrefix+v.agentID(), err)
	}
	g, err := v.ownAgent(identity.ReadAgents)
	if err != nil {
		return err
	}
	view := connectView{Rights: v.value("rights"), Expires: v.value("expires")}
	r, err := v.workerKey(&g, &view)
	if err != nil {
		return v.showConnect(view, err)
	}
	ctx, once, err := v.begin()
	if err != nil {
		return err
	}
	k, value, err := v.OrgAdmin.CreateKey(ctx, a, r)
	if err != nil && !sealed(err) {
		return v.showConnect(view, v.audited(identity.KeyCreate, r.Principal.Ref(), err))
	}
	view.Key, view.Secret = &k, v.newSecret("key", value, once)
	return v.showConnect(view, nil)
}

// workerKey returns the key that the form asks for.
func (v *visit) workerKey(g *agent.Agent, view *connectView) (identity.KeyRequest, error) {
	r := identity.KeyRequest{
		Principal: identity.Principal{Org: g.Org, Kind: identity.Agent, ID: g.ID}, Name: "Worker of " + g.Name,
		Scopes: workerRights[view.Rights],
	}
	if identity.NameRule.Check(r.Name) != "" { // too long with the prefix
		r.Name = g.Name
	}
	var wrong []errs.Field
	if r.Scopes == nil {
		wrong = append(wrong, errs.Field{Path: errs.At("rights"), Message: "must be worker or tools"})
	}
	var err error
	if r.ExpiresAt, err = endOf(view.Expires, v.Now()); err != nil {
		wrong = append(wrong, errs.As(err).Fields...)
	}
	if len(wrong) > 0 {
		return r, errs.InvalidFields(wrong...)
	}
	return r, nil
}
