package web

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/policy"
	sealing "github.com/parley-dev/parley/internal/secret"
)

// agentForm has the values of the form that registers or changes an agent.
type agentForm struct {
	ID, Name, Description string
	Skills                string // separated by commas
	Public                bool
	Policy                policyForm
	Quota                 quotaForm
	Remote                *relayForm // of a new relay; nil: workers do the work
}

// agentForm reads the form.
func (v *visit) agentForm() agentForm {
	f := agentForm{
		ID: v.value("id"), Name: v.value("name"), Description: v.text("description"), Skills: v.value("skills"),
		Public: v.value("visibility") == "public",
		Policy: policyForm{
			Timeout: v.value("timeout"), Attempts: v.value("attempts"), Backoff: v.value("backoff"),
			Lost: slices.Contains(v.r.PostForm["on"], onLost), Failed: slices.Contains(v.r.PostForm["on"], onFailed),
		},
		Quota: quotaForm{Tasks: v.value("quota"), Per: agent.Period(v.value("per"))},
	}
	if v.value("kind") == relayKind {
		remote := v.relayForm()
		f.Remote = &remote
	}
	return f
}

// newAgentForm returns the values of an agent.
func newAgentForm(g *agent.Agent) agentForm {
	return agentForm{
		ID: g.ID, Name: g.Name, Description: g.Description, Skills: strings.Join(g.Skills, ", "), Public: g.Public,
		Policy: newPolicyForm(g.Policy), Quota: newQuotaForm(g.Quota),
	}
}

// skills parses the tags.
func (f *agentForm) skills() []agent.Skill {
	out := []agent.Skill{}
	for tag := range strings.FieldsFuncSeq(f.Skills, func(r rune) bool { return r == ',' || r == '\n' }) {
		if tag = strings.TrimSpace(tag); tag != "" {
			out = append(out, agent.PlainSkill(tag))
		}
	}
	return out
}

// agent returns the agent that the form registers. It checks the values that need no remote agent.
func (f *agentForm) agent(org string) (agent.Agent, error) {
	g := agent.Agent{ID: f.ID, Org: org, Name: f.Name, Description: f.Description, Public: f.Public}
	var wrong, broken []errs.Field
	if !identity.ValidAgentID(g.ID) {
		wrong = append(wrong, errs.NewField("id",
			"must have 1 to 64 of a-z, 0-9, '.', '_' and '-', and start with a letter or digit"))
	}
	g.Policy, broken = f.Policy.read()
	wrong = append(wrong, broken...)
	g.Quota, broken = f.Quota.read()
	wrong = append(wrong, broken...)
	checked := g
	if f.Remote != nil {
		checked.Name = cmp.Or(g.Name, g.ID, "x") // the card has the name
		if f.Remote.URL == "" {
			wrong = append(wrong, errs.NewField("url", "is required"))
		}
	} else {
		g.Describe(f.skills())
		checked = g
	}
	if err := checked.Validate(); err != nil {
		wrong = append(wrong, errs.As(err).Fields...)
	}
	if len(wrong) > 0 {
		return g, errs.InvalidFields(wrong...)
	}
	return g, nil
}

// edit returns the change of an agent that the form asks for.
func (v *visit) agentEdit(f *agentForm) (agent.Edit, error) {
	e := agent.Edit{Name: &f.Name, Description: &f.Description, Public: &f.Public}
	if _, ok := v.r.PostForm["skills"]; ok {
		skills := f.skills()
		e.Skills = &skills
	}
	var wrong, broken []errs.Field
	if _, ok := v.r.PostForm["timeout"]; ok {
		var p policy.Policy
		p, wrong = f.Policy.read()
		e.Policy = &p
	}
	if _, ok := v.r.PostForm["quota"]; ok {
		var q agent.Quota
		q, broken = f.Quota.read()
		e.Quota = &q
	}
	if wrong = append(wrong, broken...); len(wrong) > 0 {
		return e, errs.InvalidFields(wrong...)
	}
	return e, nil
}

// policyForm has the values of the deadline and the retries of an agent's tasks.
type policyForm struct {
	Timeout  string // such as 10m; empty: no deadline
	Attempts string
	Backoff  string // such as 5s
	Lost     bool
	Failed   bool
}

const (
	onLost   = "lost"
	onFailed = "failed"
)

func newPolicyForm(p policy.Policy) policyForm {
	f := policyForm{Timeout: span(p.Timeout), Backoff: span(p.Retry.Backoff), Lost: p.Retry.Lost, Failed: p.Retry.Failed}
	if p.Retry.Attempts > 0 {
		f.Attempts = strconv.Itoa(p.Retry.Attempts)
	}
	return f
}

// Set reports whether the form has a value.
func (f policyForm) Set() bool { return f != policyForm{} }

// read parses the values. As in the REST API, retries without a number of attempts have the default
// one, and those without a cause follow both.
func (f *policyForm) read() (p policy.Policy, wrong []errs.Field) {
	parse := func(name, text string, low, high time.Duration) time.Duration {
		d, err := time.ParseDuration(text)
		if text != "" && (err != nil || d < low || d > high || d%time.Second != 0) {
			wrong = append(wrong, errs.NewField(name, fmt.Sprintf(
				"must be a length of time from %s to %s in whole seconds, such as 90s, 10m or 2h", cmp.Or(span(low), "0s"), span(high))))
			return 0
		}
		return d
	}
	p.Timeout = parse("timeout", f.Timeout, time.Second, policy.MaxTimeout)
	if f.Attempts == "" && f.Backoff == "" && !f.Lost && !f.Failed {
		return p, wrong
	}
	p.Retry = policy.Retry{
		Attempts: policy.DefaultAttempts, Backoff: parse("backoff", f.Backoff, 0, policy.MaxBackoff), Lost: f.Lost, Failed: f.Failed,
	}
	if !f.Lost && !f.Failed {
		p.Retry.Lost, p.Retry.Failed = true, true
	}
	if f.Attempts != "" {
		n, err := strconv.Atoi(f.Attempts)
		if err != nil || n < 1 || n > policy.MaxAttempts {
			wrong = append(wrong, errs.NewField("attempts", fmt.Sprintf("must be a number from 1 to %d", policy.MaxAttempts)))
		}
		p.Retry.Attempts = n
	}
	return p, wrong
}

// span formats a length of time without units that are zero: 1h, 1h30m.
func span(d time.Duration) string {
	if d == 0 {
		return ""
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// quotaForm has the values of the quota of other orgs.
type quotaForm struct {
	Tasks string // empty: no limit
	Per   agent.Period
}

func newQuotaForm(q agent.Quota) quotaForm {
	f := quotaForm{Per: cmp.Or(q.Per, agent.Day)}
	if q.Tasks > 0 {
		f.Tasks = strconv.FormatInt(q.Tasks, 10)
	}
	return f
}

// Periods lists the choices.
func (quotaForm) Periods() []agent.Period { return agent.Periods }

func (f *quotaForm) read() (agent.Quota, []errs.Field) {
	if f.Tasks == "" {
		return agent.Quota{}, nil
	}
	n, err := strconv.ParseInt(f.Tasks, 10, 64)
	if err != nil || n < 1 || n > agent.MaxQuota {
		return agent.Quota{}, []errs.Field{
			errs.NewField("quota", fmt.Sprintf("must be a number from 1 to %d, or empty for no limit", agent.MaxQuota)),
		}
	}
	return agent.Quota{Tasks: n, Per: cmp.Or(f.Per, agent.Day)}, nil
}

// agentFields are the fields of the forms by the paths of the rules that they can break, if the
// names differ.
var agentFields = map[string]string{
	"relay":                          "url",
	"relay.url":                      "url",
	"relay.credential":               "credential",
	"relay.credential.type":          "credential",
	"relay.credential.token":         "bearer_token",
	"relay.credential.name":          "header_name",
	"relay.credential.value":         "header_value",
	"relay.credential.token_url":     "token_url",
	"relay.credential.client_id":     "client_id",
	"relay.credential.client_secret": "client_secret",
	"relay.credential.scopes":        "oauth_scopes",
	"quota.per":                      "per",
}

// inAgentForm returns an error with the names of the form's fields.
func inAgentForm(err error) error {
	if err == nil {
		return nil
	}
	e := errs.As(err)
	if e.Code == sealing.CodeNoKey {
		return fieldError("credential", "cannot be stored: "+e.Message)
	}
	if !slices.ContainsFunc(e.Fields, func(f errs.Field) bool { return agentField(f) != "" }) {
		return err // it may be one that pages know
	}
	return e.Spelled(func(f errs.Field) errs.Field {
		if name := agentField(f); name != "" {
			f.Path = errs.At(name)
		}
		return f
	})
}

// agentField returns the name of a field in the forms, or "" if it is that of the rule.
func agentField(f errs.Field) string {
	path, _, _ := strings.Cut(f.Path.String(), "[") // without the index of a scope
	return agentFields[path]
}

// newAgentView is the page that registers an agent.
type newAgentView struct {
	Form  agentForm
	Kinds []agentKind
}

// agentKind is a choice of who does the work of a new agent.
type agentKind struct {
	Name, Text, Href string
	Current          bool
}

// relayKind is the kind of a form that registers a relay.
const relayKind = "relay"

func (v *visit) newAgentPage() error {
	if _, err := v.access(identity.ManageAgents); err != nil {
		return err
	}
	form := agentForm{Quota: newQuotaForm(agent.Quota{})}
	if v.r.URL.Query().Get("kind") == relayKind {
		form.Remote = &relayForm{Credential: noCredential}
	}
	return v.showNewAgent(form, nil)
}

func (v *visit) showNewAgent(form agentForm, problem error) error {
	at := v.base() + "/agents/new"
	return renderForm(v, http.StatusOK, "agent_new", "Register an agent", newAgentView{form, []agentKind{
		{"Worker", "Your program connects and does its work.", at, form.Remote == nil},
		{"Relay", "A remote A2A agent does its work.", at + "?kind=" + relayKind, form.Remote != nil},
	}}, problem)
}

// createAgent registers an agent. It redirects to the page to connect its worker, or to the page of
// the relay.
func (v *visit) createAgent() error {
	a, err := v.access(identity.ManageAgents)
	if err != nil {
		return v.audited(identity.AgentCreate, v.value("id"), err)
	}
	form := v.agentForm()
	created, err := form.agent(v.member.Org)
	ctx, once, beginErr := v.begin()
	if beginErr != nil {
		return beginErr
	}
	switch {
	case err != nil:
	case form.Remote != nil:
		if err = v.awaitReceiver(); err == nil {
			created, err = v.Relays.Create(ctx, a, created, form.Remote.URL, v.credential(form.Remote))
		}
	default:
		created, err = v.Agents.Create(ctx, a, created)
	}
	if err != nil {
		return v.showNewAgent(form, inAgentForm(v.audited(identity.AgentCreate, form.ID, err)))
	}
	to, said := v.agentPath(created.ID)+"/connect", created.Name+" is registered. Connect its worker next."
	if form.Remote != nil {
		to, said = v.agentPath(created.ID), created.Name+" is registered. The remote agent does its work from now on."
	}
	if once.Replayed() {
		said = ""
	}
	return v.done(to, said)
}

// editAgent changes the entry of an agent.
func (v *visit) editAgent() error {
	g, err := v.ownAgent(identity.ManageAgents)
	if err != nil {
		return v.audited(identity.AgentUpdate, v.agentID(), err)
	}
	form := v.agentForm()
	form.ID = g.ID
	edit, err := v.agentEdit(&form)
	if err == nil {
		err = v.updateAgent(g.ID, edit)
	}
	if err != nil {
		return v.showAgent(agentExtras{Typed: &form}, inAgentForm(err))
	}
	return v.done(v.agentPath(g.ID), "The agent was changed.")
}
