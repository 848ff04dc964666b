package cli

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/parley-dev/parley/internal/agent"
)

// profileFlags set what the card of an agent says beside its name and description.
type profileFlags struct {
	Skill            []string `help:"Skill tag; may be repeated." sep:"none" placeholder:"TAG"`
	SkillsFile       string   `help:"${skills_file}." placeholder:"FILE"`
	AgentVersion     *string  `help:"Version of the agent." placeholder:"VERSION"`
	DocumentationURL *string  `help:"Where the agent is documented." placeholder:"URL"`
	IconURL          *string  `help:"Picture of the agent." placeholder:"URL"`
	Provider         *string  `help:"Organization that offers the agent; needs --provider-url." placeholder:"NAME"`
	ProviderURL      *string  `help:"Website of the --provider." placeholder:"URL"`
	quotaFlag        `embed:""`
}

// skillFile is a skill in --skills-file.
type skillFile struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Examples    []string `json:"examples"`
	InputModes  []string `json:"input_modes"`
	OutputModes []string `json:"output_modes"`
}

// UnmarshalJSON implements json.Unmarshaler. A string is a tag.
func (s *skillFile) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		var tag string
		err := json.Unmarshal(data, &tag)
		*s = skillFile(agent.PlainSkill(tag))
		return err
	}
	type plain skillFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode((*plain)(s))
}

// provider returns --provider and --provider-url, which go together.
func (f *profileFlags) provider() (organization, url string, err error) {
	if (f.Provider == nil) != (f.ProviderURL == nil) {
		return "", "", usage("--provider and --provider-url go together: give both or none")
	}
	if f.Provider == nil {
		return "", "", nil
	}
	return *f.Provider, *f.ProviderURL, nil
}

// skillsFile returns the content of --skills-file; nil if it was not given.
func (f *profileFlags) skillsFile(e *env) ([]byte, error) {
	if f.SkillsFile == "" {
		return nil, nil
	}
	if f.Skill != nil {
		return nil, usage("--skill and --skills-file exclude each other")
	}
	text, err := e.readInput(f.SkillsFile)
	if err == nil && !json.Valid(text) {
		err = usage("--skills-file %s is not valid JSON; it must be a list of tags and objects", f.SkillsFile)
	}
	return text, err
}

// apply sets the flags on a new agent.
func (f *profileFlags) apply(e *env, a *agent.Agent) error {
	text, err := f.skillsFile(e)
	if err != nil {
		return err
	}
	var list []skillFile
	for _, tag := range f.Skill {
		list = append(list, skillFile(agent.PlainSkill(tag)))
	}
	if text != nil {
		if err := json.Unmarshal(text, &list); err != nil {
			return usageError{fmt.Errorf("--skills-file %s: %w", f.SkillsFile, err)}
		}
	}
	skills := make([]agent.Skill, len(list))
	for i, s := range list {
		skills[i] = agent.Skill(s)
	}
	a.Describe(skills)
	a.Profile.Version = orEmpty(f.AgentVersion)
	a.Profile.DocumentationURL = orEmpty(f.DocumentationURL)
	a.Profile.IconURL = orEmpty(f.IconURL)
	if a.Quota, err = f.parse(); err != nil {
		return err
	}
	a.Profile.Provider.Organization, a.Profile.Provider.URL, err = f.provider()
	return err
}

// fields adds the flags to the body of a request. The server checks the skills.
func (f *profileFlags) fields(e *env, out map[string]any) error {
	text, err := f.skillsFile(e)
	if err != nil {
		return err
	}
	switch {
	case text != nil:
		out["skills"] = json.RawMessage(text)
	case f.Skill != nil:
		out["skills"] = f.Skill
	}
	for name, v := range map[string]*string{
		"version": f.AgentVersion, "documentation_url": f.DocumentationURL, "icon_url": f.IconURL,
	} {
		if v != nil {
			out[name] = *v
		}
	}
	if err := f.field(out); err != nil {
		return err
	}
	organization, url, err := f.provider()
	switch {
	case err != nil || f.Provider == nil:
	case organization == "" && url == "":
		out["provider"] = nil
	default:
		out["provider"] = map[string]string{"organization": organization, "url": url}
	}
	return err
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
