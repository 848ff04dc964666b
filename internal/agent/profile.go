package agent

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

// Profile holds the parts of an agent's card that are not in Agent itself.
type Profile struct {
	Skills           []Skill // empty: one plain skill for each tag of the agent
	Version          string  // of the agent; empty: the version of the platform
	DocumentationURL string
	IconURL          string
	Provider         Provider
}

// Skill is a capability of an agent.
type Skill struct {
	ID, Name, Description string
	Tags                  []string
	Examples              []string // example requests
	InputModes            []string // media types; empty: those of the agent
	OutputModes           []string
}

// Provider is the organization that offers an agent. Either both fields are set or none.
type Provider struct {
	Organization, URL string
}

// PlainSkill returns a skill that has nothing but a tag.
func PlainSkill(tag string) Skill { return Skill{ID: tag, Name: tag, Tags: []string{tag}} }

// IsPlain reports whether the skill has nothing but a tag.
func (s Skill) IsPlain() bool { return reflect.DeepEqual(s, PlainSkill(s.ID)) }

// Bounds of a profile; lengths in characters.
const (
	MaxTags        = 128 // of all skills together
	MaxSkillTags   = 16
	MaxExamples    = 16
	MaxExample     = 1000
	MaxModes       = 16
	MaxURL         = 2048  // in bytes
	MaxProfileText = 32768 // of all skills together, in bytes
)

// Regular expressions for tags and skill ids, media types, versions, and URLs for people.
const (
	TagPattern     = `^[A-Za-z0-9][A-Za-z0-9 ._:+#/-]{0,63}$`
	ModePattern    = `^[A-Za-z0-9!#$&^_.+*-]{1,63}/[A-Za-z0-9!#$&^_.+*-]{1,63}(; ?[A-Za-z0-9!#$&^_.+-]{1,31}=[A-Za-z0-9!#$&^_.+-]{1,63})?$`
	VersionPattern = `^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`
	URLPattern     = `^https?://[A-Za-z0-9][A-Za-z0-9.-]{0,252}(:[0-9]{1,5})?([/?#]([!-$&-~]|%[0-9A-Fa-f]{2})*)?$`
)

var (
	tagPattern     = text.Pattern(TagPattern)
	modePattern    = text.Pattern(ModePattern)
	versionPattern = text.Pattern(VersionPattern)
	urlPattern     = text.Pattern(URLPattern)
)

// Describe sets the skills. The name and tags of a skill default to its id. If all skills are
// plain, only their tags are kept.
func (a *Agent) Describe(skills []Skill) {
	skills = slices.Clone(skills)
	for i := range skills {
		s := &skills[i]
		s.Name = cmp.Or(s.Name, s.ID)
		if len(s.Tags) == 0 {
			s.Tags = []string{s.ID}
		}
	}
	if slices.ContainsFunc(skills, func(s Skill) bool { return !s.IsPlain() }) {
		a.Skills, a.Profile.Skills = tagsOf(skills), skills
		return
	}
	a.Skills, a.Profile.Skills = make([]string, len(skills)), nil
	for i, s := range skills {
		a.Skills[i] = s.ID
	}
}

// Rich returns the skills in the profile of an agent. It is empty if the agent has only tags.
// A profile whose tags differ from those of the agent is out of date, because nodes of an
// earlier version change only the tags.
func (a *Agent) Rich(p *Profile) []Skill {
	if slices.Equal(tagsOf(p.Skills), a.Skills) {
		return p.Skills
	}
	return nil
}

// Described returns the skills of an agent, from the profile or else from its tags.
func (a *Agent) Described(p *Profile) []Skill {
	if rich := a.Rich(p); len(rich) > 0 {
		return rich
	}
	out := make([]Skill, len(a.Skills))
	for i, tag := range a.Skills {
		out[i] = PlainSkill(tag)
	}
	return out
}

// tagsOf lists the tags of skills, without duplicates.
func tagsOf(skills []Skill) []string {
	out := []string{}
	seen := map[string]bool{}
	for _, s := range skills {
		for _, tag := range s.Tags {
			if !seen[tag] {
				seen[tag] = true
				out = append(out, tag)
			}
		}
	}
	return out
}

// checks collects the problems of an agent.
type checks struct{ fields []errs.Field }

func (c *checks) profile(p *Profile) {
	if p.Version != "" && !versionPattern().MatchString(p.Version) {
		c.add(errs.At("version"), "must have 1 to 64 letters, digits and . _ + -, and start with a letter or digit")
	}
	c.url(errs.At("documentation_url"), p.DocumentationURL)
	c.url(errs.At("icon_url"), p.IconURL)
	if p.Provider != (Provider{}) {
		if problem := identity.NameRule.Check(p.Provider.Organization); problem != "" {
			c.add(errs.At("provider", "organization"), problem)
		}
		if c.url(errs.At("provider", "url"), p.Provider.URL); p.Provider.URL == "" {
			c.add(errs.At("provider", "url"), "is required with the organization")
		}
	}
	c.skills(p.Skills)
}

// maxProblems is the maximum number of problems in one error.
const maxProblems = 32

func (c *checks) add(at errs.Path, msg string) {
	if len(c.fields) < maxProblems {
		c.fields = append(c.fields, errs.Field{Path: at, Message: msg})
	}
}

func (c *checks) skills(skills []Skill) {
	c.count(errs.At("skills"), len(skills), MaxSkills)
	size := 0
	ids := map[string]bool{}
	for i, s := range skills {
		at := errs.At("skills", i)
		switch {
		case !tagPattern().MatchString(s.ID):
			c.add(at.Then("id"), fmt.Sprintf("%q is not the id of a skill; %s", clip(s.ID), tagRule))
		case ids[s.ID]:
			c.add(at.Then("id"), fmt.Sprintf("%q is given twice", s.ID))
		}
		ids[s.ID] = true
		if problem := identity.NameRule.Check(s.Name); problem != "" {
			c.add(at.Then("name"), problem)
		}
		c.text(at.Then("description"), s.Description, MaxDescription)
		c.tags(at.Then("tags"), s.Tags, MaxSkillTags)
		c.count(at.Then("examples"), len(s.Examples), MaxExamples)
		for j, e := range s.Examples {
			if c.text(at.Then("examples", j), e, MaxExample); e == "" {
				c.add(at.Then("examples", j), "must not be empty")
			}
			size += len(e)
		}
		c.modes(at.Then("input_modes"), s.InputModes)
		c.modes(at.Then("output_modes"), s.OutputModes)
		size += len(s.Name) + len(s.Description)
	}
	if size > MaxProfileText {
		c.add(errs.At("skills"), fmt.Sprintf(
			"have %d bytes of names, descriptions and examples; at most %d are allowed", size, MaxProfileText))
	}
	if n := len(tagsOf(skills)); n > MaxTags {
		c.add(errs.At("skills"), fmt.Sprintf("have %d different tags; at most %d are allowed", n, MaxTags))
	}
}

const tagRule = "use 1 to 64 letters, digits, spaces and . _ : + # / -"

func (c *checks) tags(at errs.Path, tags []string, most int) {
	c.count(at, len(tags), most)
	seen := map[string]bool{}
	for i, tag := range tags {
		switch at := at.Then(i); {
		case !tagPattern().MatchString(tag):
			c.add(at, fmt.Sprintf("%q is not a skill tag; %s", clip(tag), tagRule))
		case seen[tag]:
			c.add(at, fmt.Sprintf("%q is given twice", tag))
		}
		seen[tag] = true
	}
}

func (c *checks) modes(at errs.Path, modes []string) {
	c.count(at, len(modes), MaxModes)
	for i, m := range modes {
		if !modePattern().MatchString(m) {
			c.add(at.Then(i), fmt.Sprintf("%q is not a media type; an example is text/plain", clip(m)))
		}
	}
}

func (c *checks) count(at errs.Path, n, most int) {
	if n > most {
		c.add(at, fmt.Sprintf("has %d entries; at most %d are allowed", n, most))
	}
}

func (c *checks) text(at errs.Path, s string, most int) {
	if problem := (text.Rule{Max: most}).Check(s); problem != "" {
		c.add(at, problem)
	}
}

// url checks the URL of a page for people. It may be empty.
func (c *checks) url(at errs.Path, s string) {
	if s == "" {
		return
	}
	if len(s) > MaxURL {
		c.add(at, fmt.Sprintf("has %d bytes; at most %d are allowed", len(s), MaxURL))
		return
	}
	if urlPattern().MatchString(s) {
		return
	}
	if u, err := url.Parse(s); err == nil && u.User != nil {
		c.add(at, "must not contain a user name or a password")
		return
	}
	c.add(at, "must be an absolute URL that starts with https:// or http://, in ASCII")
}

func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
