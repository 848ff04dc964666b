package rest

import (
	"context"
	"maps"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// AgentSkill is a skill of an agent.
type AgentSkill struct {
	ID          string   `json:"id" doc:"Unique among the skills of the agent." example:"profile-service"`
	Name        string   `json:"name,omitempty" doc:"Display name; default: the id." example:"Profile a service"`
	Description string   `json:"description,omitempty" doc:"What it does." example:"Finds out where a service spends its time."`
	Tags        []string `json:"tags,omitempty" nullable:"false" doc:"Search tags; default: the id." example:"[\"profiling\",\"go\"]"`
	Examples    []string `json:"examples,omitempty" nullable:"false" doc:"Example requests." example:"[\"Why is checkout slow?\"]"`
	InputModes  []string `json:"input_modes,omitempty" nullable:"false" doc:"Accepted media types; default: those of the agent."`
	OutputModes []string `json:"output_modes,omitempty" nullable:"false" doc:"Produced media types; default: those of the agent."`
}

// TransformSchema adds the limits of the domain.
func (AgentSkill) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "id", matching(agent.TagPattern))
	property(s, "name", length(0, identity.MaxName), emptyOr(namePattern())) // empty: the id
	property(s, "description", length(0, agent.MaxDescription), matching(prosePattern()))
	unique := func(p *huma.Schema) { p.UniqueItems = true }
	property(s, "tags", entries(agent.MaxSkillTags, matching(agent.TagPattern)), unique)
	property(s, "examples", entries(agent.MaxExamples, length(1, agent.MaxExample)), eachItem(matching(prosePattern())))
	property(s, "input_modes", entries(agent.MaxModes, matching(agent.ModePattern)), exampleOf([]string{"text/plain"}))
	property(s, "output_modes", entries(agent.MaxModes, matching(agent.ModePattern)), exampleOf([]string{"application/json"}))
	return s
}

// entries limits the length of a list and its entries.
func entries(most int, each func(*huma.Schema)) func(*huma.Schema) {
	return func(s *huma.Schema) {
		s.MaxItems = &most
		each(s.Items)
	}
}

// emptyOr allows an empty string, or a string that matches the pattern.
func emptyOr(p string) func(*huma.Schema) { return matching("^$|" + p) }

// AgentProvider is the organization that offers an agent.
type AgentProvider struct {
	Organization string `json:"organization" doc:"Name of the organization." example:"Acme"`
	URL          string `json:"url" doc:"Website of the organization."`
}

// TransformSchema adds the limits of the domain.
func (AgentProvider) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "organization", length(1, identity.MaxName))
	property(s, "url", matching(agent.URLPattern), length(0, agent.MaxURL))
	return s
}

// skillInput is a skill in a request: a tag or an object. It keeps its decoding errors, so that
// the response can name each field.
type skillInput struct {
	skill  agent.Skill
	broken []errs.Field // relative to the skill
}

// UnmarshalJSON implements json.Unmarshaler.
func (in *skillInput) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		var tag string
		err := json.Unmarshal(data, &tag)
		in.skill = agent.PlainSkill(tag)
		return err
	case '{':
		var s AgentSkill
		var err error
		in.broken, err = httpx.Decode(data, &s)
		in.skill = agent.Skill(s)
		if s.ID == "" && len(in.broken) == 0 {
			in.broken = []errs.Field{{Path: errs.At("id"), Message: "is required"}}
		}
		return err
	case 'n':
		return nil // the decoder of the body rejects null
	}
	in.broken = []errs.Field{{Message: "must be a tag or an object"}}
	return nil
}

// Schema documents the two forms of a skill.
func (skillInput) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		stringSchema(matching(agent.TagPattern), describedAs("A tag, which is also the id and name of the skill.")),
		inRequest[AgentSkill](r),
	}}
}

// readSkills returns the skills of a request, or their decoding errors.
func readSkills(list []skillInput) (skills []agent.Skill, broken []errs.Field) {
	skills = []agent.Skill{}
	for i, in := range list {
		broken = append(broken, errs.Under(in.broken, "skills", i)...)
		skills = append(skills, in.skill)
	}
	if len(broken) > 0 {
		return []agent.Skill{}, broken // the rest is checked once everything can be decoded
	}
	return skills, nil
}

// providerInput is a provider in a request.
type providerInput struct {
	set    bool
	value  AgentProvider
	broken []errs.Field // relative to the provider
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *providerInput) UnmarshalJSON(data []byte) error {
	p.set = true
	var err error
	p.broken, err = httpx.Decode(data, &p.value)
	if len(p.broken) == 0 && p.value == (AgentProvider{}) {
		p.broken = []errs.Field{
			{Path: errs.At("organization"), Message: "is required"}, {Path: errs.At("url"), Message: "is required"},
		}
	}
	return err
}

// Schema documents the provider.
func (providerInput) Schema(r huma.Registry) *huma.Schema {
	s := inRequest[AgentProvider](r)
	s.Properties = maps.Clone(s.Properties)
	organization := *s.Properties["organization"]
	matching(namePattern())(&organization)
	s.Properties["organization"] = &organization
	return s
}

// inRequest returns the schema of an object that requests and responses share, for a request. It
// is a copy without a name, because only requests reject unknown members.
func inRequest[T any](r huma.Registry) *huma.Schema {
	s := *r.Schema(reflect.TypeFor[T](), false, "")
	s.AdditionalProperties = false
	return &s
}

// providerEdit is a provider in a change; null removes it.
type providerEdit struct{ providerInput }

// AcceptsNull implements httpx.Nullable.
func (*providerEdit) AcceptsNull() string { return "an object or null" }

// UnmarshalJSON implements json.Unmarshaler.
func (p *providerEdit) UnmarshalJSON(data []byte) error {
	if data[0] == 'n' {
		p.set = true
		return nil
	}
	return p.providerInput.UnmarshalJSON(data)
}

// Schema documents the provider.
func (p providerEdit) Schema(r huma.Registry) *huma.Schema {
	s := p.providerInput.Schema(r)
	s.Nullable = true
	return s
}

// read returns the provider of a request and its decoding errors.
func (p *providerInput) read() (agent.Provider, []errs.Field) {
	return agent.Provider(p.value), errs.Under(p.broken, "provider")
}

// wholeAgent returns an agent with its profile.
func (a *api) wholeAgent(ctx context.Context, c *call, g *agent.Agent) (Agent, error) {
	one, err := a.agentsOf(ctx, c, []agent.Agent{*g})
	if err != nil {
		return Agent{}, err
	}
	one[0].addProfile(g)
	return one[0], a.addRelay(ctx, c, g, &one[0])
}

// addProfile adds what lists of agents omit.
func (out *Agent) addProfile(g *agent.Agent) {
	p := &g.Profile
	for _, s := range g.Rich(p) {
		out.SkillDetails = append(out.SkillDetails, AgentSkill(s))
	}
	out.Version, out.DocumentationURL, out.IconURL = p.Version, p.DocumentationURL, p.IconURL
	if p.Provider != (agent.Provider{}) {
		out.Provider = (*AgentProvider)(&p.Provider)
	}
}
