package relay

import (
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/text"
)

var (
	tagPattern  = text.Pattern(agent.TagPattern)
	modePattern = text.Pattern(agent.ModePattern)
	notInTag    = text.Pattern(`[^A-Za-z0-9 ._:+#/-]+`)
)

// skills returns the skills of a card in the form of our rules. What breaks them is cut or left out:
// a card is never refused because of its skills.
func (d *document) skills() []agent.Skill {
	var out []agent.Skill
	ids, tags := map[string]bool{}, map[string]bool{}
	size := 0
	for _, s := range d.Skills {
		skill := agent.Skill{
			ID: tag(s.ID), Name: clean(s.Name, agent.MaxName), Description: clean(s.Description, agent.MaxDescription),
			InputModes: modes(s.InputModes, d.InputModes), OutputModes: modes(s.OutputModes, d.OutputModes),
		}
		if skill.ID == "" {
			skill.ID = tag(s.Name)
		}
		if skill.ID == "" || ids[skill.ID] || len(out) == agent.MaxSkills {
			continue
		}
		if skill.Name = text.CleanName(skill.Name); skill.Name == "" {
			skill.Name = skill.ID
		}
		for _, t := range s.Tags {
			t = tag(t)
			if t != "" && len(skill.Tags) < agent.MaxSkillTags && !slices.Contains(skill.Tags, t) &&
				(tags[t] || len(tags) < agent.MaxTags-agent.MaxSkills) {
				skill.Tags = append(skill.Tags, t)
				tags[t] = true
			}
		}
		if len(skill.Tags) == 0 { // each skill may add one beyond the others
			skill.Tags = []string{skill.ID}
			tags[skill.ID] = true
		}
		for _, e := range s.Examples {
			if e = clean(e, agent.MaxExample); e != "" && len(skill.Examples) < agent.MaxExamples {
				skill.Examples = append(skill.Examples, e)
			}
		}
		if size += weight(&skill); size > agent.MaxProfileText {
			break
		}
		ids[skill.ID] = true
		out = append(out, skill)
	}
	return out
}

func weight(s *agent.Skill) int {
	n := len(s.Name) + len(s.Description)
	for _, e := range s.Examples {
		n += len(e)
	}
	return n
}

// tag returns a tag that our rules allow, or "".
func tag(s string) string {
	s = strings.Trim(notInTag().ReplaceAllString(s, "-"), " ._:+#/-")
	if s = strings.TrimRight(s[:min(len(s), 64)], " "); !tagPattern().MatchString(s) {
		return ""
	}
	return s
}

func modes(own, all []string) (out []string) {
	if len(own) == 0 {
		own = all
	}
	for _, m := range own {
		if m = strings.TrimSpace(m); modePattern().MatchString(m) && len(out) < agent.MaxModes && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// clean returns a text that our rules allow, at most limit characters of it.
func clean(s string, limit int) string {
	s = strings.TrimSpace(text.Clean(s, limit-1)) // a cut adds a character
	rule := text.Rule{Max: limit}
	if rule.Check(s) != "" {
		s = text.CleanName(s)
	}
	if rule.Check(s) != "" {
		return ""
	}
	return s
}
