package web

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// newKeyView is the form for a new key.
type newKeyView struct {
	Presets  []preset
	Typed    typedKey
	Agents   []identity.Member // of the org
	Services []identity.Member
	Scopes   scopeForm
	Expiries []expiry
}

// preset is a link to the form with values filled in.
type preset struct {
	Name, Text, Href string
	Current          bool
}

// typedKey has the values of the form.
type typedKey struct {
	Preset    string
	Name      string
	Principal string // a ref
	Scopes    []string
	Expires   string // days, or "never"
	On        string // a day; takes precedence over Expires
}

type expiry struct {
	Value, Name string
	Selected    bool
}

const (
	defaultExpiry = "90"
	neverExpires  = "never"
)

// expiries are the choices for the lifetime of a key.
var expiries = []expiry{
	{Value: "7", Name: "7 days"},
	{Value: "30", Name: "30 days"},
	{Value: "90", Name: "90 days"},
	{Value: "365", Name: "1 year"},
	{Value: neverExpires, Name: "never ends"},
}

// expiriesWith returns the choices with one of them selected.
func expiriesWith(chosen string) []expiry {
	out := slices.Clone(expiries)
	for i := range out {
		out[i].Selected = out[i].Value == chosen
	}
	return out
}

// endOf returns the expiry for a choice; zero means never.
func endOf(chosen string, now time.Time) (time.Time, error) {
	if chosen == neverExpires {
		return time.Time{}, nil
	}
	days, err := strconv.Atoi(chosen)
	if err != nil || !slices.ContainsFunc(expiries, func(e expiry) bool { return e.Value == chosen }) {
		return time.Time{}, fieldError("expires", "must be one of the choices")
	}
	return now.AddDate(0, 0, days).Truncate(time.Microsecond), nil
}

type keyPreset struct {
	value, name, text string
	scopes            []identity.Scope
}

// presets fill in the form.
var presets = []keyPreset{
	{"worker", "Worker of an agent", "Claims the agent's tasks and reports on them.", []identity.Scope{identity.A2AServe}},
	{
		"proposals", "Files proposals", "Reads, submits, votes and reports friction.",
		[]identity.Scope{identity.TasksRead, identity.TasksWrite},
	},
	{"calls", "Calls agents", "Sends tasks and messages to agents.", []identity.Scope{identity.A2AWrite}},
	{"reads", "Reads only", "Sees proposals, follow-ups and agents.", []identity.Scope{identity.TasksRead}},
	{"custom", "Custom", "Choose every right yourself.", nil},
}

// maxWorkerPresets limits the number of agents that have their own preset.
const maxWorkerPresets = 4

// newKeyPage shows the form, filled in by a preset.
func (v *visit) newKeyPage() error {
	q := v.r.URL.Query()
	typed := typedKey{Preset: q.Get("preset"), Expires: defaultExpiry, Principal: q.Get("principal")}
	if typed.Preset == "" {
		typed.Preset = "custom"
	}
	at := slices.IndexFunc(presets, func(p keyPreset) bool { return p.value == typed.Preset })
	if at < 0 {
		return fieldError("preset", "must be one of the presets")
	}
	for _, s := range presets[at].scopes {
		typed.Scopes = append(typed.Scopes, string(s))
	}
	if id := q.Get("agent"); id != "" {
		if !identity.ValidAgentID(id) {
			return fieldError("agent", "must be the id of an agent")
		}
		typed.Principal = agentPrefix + id
		if typed.Preset == "worker" {
			typed.Name = "worker of " + id
		}
	}
	return v.showNewKey(typed, nil)
}

// showNewKey shows the form with the entered values.
func (v *visit) showNewKey(typed typedKey, problem error) error {
	_, err := v.access(identity.ManageKeys)
	if err != nil {
		return err
	}
	out := newKeyView{Typed: typed, Expiries: expiriesWith(typed.Expires)}
	if out.Agents, err = v.holders(identity.Agent, typed.Principal); err != nil {
		return err
	}
	if out.Services, err = v.holders(identity.Service, typed.Principal); err != nil {
		return err
	}
	if out.Scopes, err = v.newScopeForm(typed.Scopes); err != nil {
		return err
	}
	out.Presets = v.keyPresets(typed, out.Scopes.Agents)
	return renderForm(v, http.StatusOK, "key_new", "New key", out, problem)
}

// holders returns the principals of a kind that can have a new key: a limited number, and the
// chosen one.
func (v *visit) holders(kind identity.Kind, chosen string) ([]identity.Member, error) {
	ctx := v.r.Context()
	list, err := v.choices(identity.MemberEnabled, kind)
	if err != nil || len(list) < maxChoices {
		return list, err
	}
	p, err := identity.ParseRef(v.member.Org, chosen)
	if err != nil || p.Kind != kind {
		return list, nil //nolint:nilerr // the chosen principal has another kind
	}
	a, err := v.access(identity.ReadMembers)
	if err != nil {
		return nil, err
	}
	m, err := v.OrgAdmin.Member(ctx, a, p)
	switch {
	case err != nil && errs.KindOf(err) != errs.NotFound:
		return nil, err
	case err != nil || m.Disabled:
		return list, nil //nolint:nilerr // the chosen principal no longer exists
	}
	return including(list, m), nil
}

// keyPresets returns the presets. A few agents have their own.
func (v *visit) keyPresets(typed typedKey, agents []agentBox) []preset {
	at := v.base() + "/keys/new"
	agents = slices.DeleteFunc(slices.Clone(agents), func(g agentBox) bool { return !g.Works })
	var out []preset
	for _, p := range presets {
		if p.value == "worker" && len(agents) > 0 && len(agents) <= maxWorkerPresets {
			for _, g := range agents {
				current := typed.Preset == p.value && typed.Principal == agentPrefix+g.ID
				out = append(out, preset{"Worker of " + g.Name, p.text, link(at, "preset", p.value, "agent", g.ID), current})
			}
			continue
		}
		out = append(out, preset{p.name, p.text, link(at, "preset", p.value), typed.Preset == p.value})
	}
	return out
}

// createKey creates a key, and shows its secret once.
func (v *visit) createKey() error {
	a, err := v.access(identity.ManageKeys)
	if err != nil {
		return v.audited(identity.KeyCreate, v.value("principal"), err)
	}
	typed := typedKey{
		Preset: v.value("preset"), Name: v.value("name"), Principal: v.value("principal"), Scopes: v.formScopes(),
		Expires: v.value("expires"), On: v.value("expires_on"),
	}
	request, err := v.keyRequest(&typed)
	if err == nil {
		err = v.confirmAdmin(slices.Contains(typed.Scopes, string(identity.Admin)))
	}
	if err != nil {
		return v.showNewKey(typed, v.audited(identity.KeyCreate, typed.Principal, err))
	}
	ctx, once, err := v.begin()
	if err != nil {
		return err
	}
	k, value, err := v.OrgAdmin.CreateKey(ctx, a, request)
	if err != nil && !sealed(err) {
		return v.showNewKey(typed, v.audited(identity.KeyCreate, typed.Principal, err))
	}
	return v.showKey(http.StatusCreated, k, v.newSecret("key", value, once), nil)
}

// keyRequest reads the form, and returns all its errors.
func (v *visit) keyRequest(typed *typedKey) (identity.KeyRequest, error) {
	r := identity.KeyRequest{Name: typed.Name, Scopes: typed.Scopes}
	var wrong []errs.Field
	add := func(err error) {
		if err != nil {
			wrong = append(wrong, errs.As(err).Fields...)
		}
	}
	var err error
	if r.Principal, err = identity.ParseRef(v.member.Org, typed.Principal); err != nil {
		add(fieldError("principal", "choose the principal of the key"))
	}
	r.ExpiresAt, err = typed.end(v.Now())
	add(err)
	if len(typed.Scopes) == 0 {
		add(fieldError("scopes", "choose at least one right"))
	} else {
		add(r.Validate(v.Now()))
	}
	if len(wrong) > 0 {
		return r, errs.InvalidFields(wrong...)
	}
	return r, nil
}

// end returns the expiry of the key; zero means never.
func (t *typedKey) end(now time.Time) (time.Time, error) {
	if t.On != "" {
		day, ok := dayOf(t.On)
		if !ok {
			return time.Time{}, fieldError("expires_on", "must be a day such as 2027-03-31")
		}
		if day = day.AddDate(0, 0, 1); !day.After(now) {
			return time.Time{}, fieldError("expires_on", "must be in the future")
		}
		return day, nil
	}
	return endOf(t.Expires, now)
}

// confirmAdmin asks for the password again before it creates a secret with admin rights. It removes
// the password from the form, so that it is not stored with it.
func (v *visit) confirmAdmin(needed bool) error {
	password := v.r.PostFormValue("password")
	v.r.PostForm.Del("password")
	if !needed {
		return nil
	}
	return v.confirmWith("password", password, "is required for a key that can administer the org")
}

// confirmWith checks the member's own password in a form field.
func (v *visit) confirmWith(field, password, why string) error {
	err := v.Confirm(v.r, v.member, password)
	if err != nil && errs.As(err).Code == account.WrongPassword {
		if password == "" {
			return fieldError(field, why)
		}
		return fieldError(field, "is wrong")
	}
	return err
}
