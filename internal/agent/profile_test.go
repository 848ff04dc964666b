package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
)

func TestSkillsAreTagsUnlessThereIsMoreToSay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		skills, kept []Skill
		tags         []string
	}{
		"none":        {nil, nil, []string{}},
		"tags":        {[]Skill{PlainSkill("a b"), {ID: "c"}}, nil, []string{"a b", "c"}},
		"a tag twice": {[]Skill{PlainSkill("a"), PlainSkill("a")}, nil, []string{"a", "a"}}, // which Validate refuses
		"a name":      {[]Skill{{ID: "a", Name: "A"}}, []Skill{{ID: "a", Name: "A", Tags: []string{"a"}}}, []string{"a"}},
		"shared tags": {
			[]Skill{{ID: "x", Tags: []string{"a", "b"}}, PlainSkill("a")},
			[]Skill{{ID: "x", Name: "x", Tags: []string{"a", "b"}}, PlainSkill("a")},
			[]string{"a", "b"},
		},
		"other tags": {
			[]Skill{{ID: "x", Tags: []string{"y"}}},
			[]Skill{{ID: "x", Name: "x", Tags: []string{"y"}}},
			[]string{"y"},
		},
		"with a tag's": {
			[]Skill{{ID: "a", Examples: []string{"do"}}},
			[]Skill{{ID: "a", Name: "a", Tags: []string{"a"}, Examples: []string{"do"}}},
			[]string{"a"},
		},
	} {
		var a Agent
		a.Describe(c.skills)
		if diff := cmp.Diff(c.kept, a.Profile.Skills) + cmp.Diff(c.tags, a.Skills); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A node of an earlier version changes the tags and knows nothing of the profile.
func TestAProfileWithOtherTagsIsOutOfDate(t *testing.T) {
	t.Parallel()
	var a Agent
	a.Describe([]Skill{{ID: "x", Name: "X", Tags: []string{"old"}}})
	p := a.Profile
	if got := a.Described(&p); len(got) != 1 || got[0].Name != "X" {
		t.Errorf("%+v", got)
	}
	a.Skills = []string{"new"}
	want := []Skill{PlainSkill("new")}
	if diff := cmp.Diff(want, a.Described(&p)); diff != "" {
		t.Error(diff)
	}
	// And the next change forgets the old one.
	a.Name = "A"
	next, err := decideEdit(a, Edit{}, a.UpdatedAt)
	if err != nil || len(next.Profile.Skills) != 0 || len(next.Skills) != 1 {
		t.Errorf("%+v, %v", next, err)
	}
}

func TestProfilesHaveBounds(t *testing.T) {
	t.Parallel()
	many := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprint("t", i)
		}
		return out
	}
	skills := func(n int, s Skill) []Skill {
		out := make([]Skill, n)
		for i := range out {
			out[i] = s
			out[i].ID = fmt.Sprint("s", i)
		}
		return out
	}
	long := strings.Repeat("ä", MaxDescription)
	for at, p := range map[string]Profile{
		"skills":                {Skills: skills(MaxSkills+1, Skill{Name: "n"})},
		"skills[0].id":          {Skills: []Skill{{ID: "é", Name: "n"}}},
		"skills[0].name":        {Skills: []Skill{{ID: "a", Name: "a\u202eb"}}},
		"skills[0].description": {Skills: []Skill{{ID: "a", Name: "n", Description: long + "x"}}},
		"skills[0].tags":        {Skills: []Skill{{ID: "a", Name: "n", Tags: many(MaxSkillTags + 1)}}},
		"skills[0].tags[0]":     {Skills: []Skill{{ID: "a", Name: "n", Tags: []string{""}}}},
		"skills[0].examples":    {Skills: []Skill{{ID: "a", Name: "n", Examples: many(MaxExamples + 1)}}},
		"skills[0].examples[0]": {Skills: []Skill{{ID: "a", Name: "n", Examples: []string{"\x07"}}}},
		"description":           {},
		"skills[0].examples[1]": {Skills: []Skill{{ID: "a", Name: "n", Examples: []string{"x", ""}}}},
		"skills[0].input_modes": {Skills: []Skill{{
			ID: "a", Name: "n",
			InputModes: strings.Split(strings.Repeat("a/b ", MaxModes+1), " ")[:MaxModes+1],
		}}},
		"skills[0].input_modes[0]": {Skills: []Skill{{ID: "a", Name: "n", InputModes: []string{"text"}}}},
		"version":                  {Version: strings.Repeat("1", 65)},
		"documentation_url":        {DocumentationURL: "https://" + strings.Repeat("a", MaxURL)},
		"icon_url":                 {IconURL: "data:image/png;base64,AAAA"},
		"provider.url":             {Provider: Provider{"Acme", ""}},
		"provider.organization":    {Provider: Provider{"", "https://acme.example"}},
	} {
		a := Agent{ID: "a", Name: "A", Profile: p}
		if at == "description" {
			a.Description = "red: \x1b[31m"
		}
		err := a.Validate()
		if err == nil || errs.As(err).Fields[0].Path.String() != at {
			t.Errorf("%s: %v %+v", at, err, errs.As(err).Fields)
		}
	}
	for what, p := range map[string]Profile{
		"too much text": {Skills: skills(20, Skill{Name: "n", Description: long})},
		"too many tags": {Skills: skills(MaxTags/MaxSkillTags+1, Skill{Name: "n"})},
	} {
		for i := range p.Skills {
			if what == "too many tags" {
				p.Skills[i].Tags = nil
				for j := range MaxSkillTags {
					p.Skills[i].Tags = append(p.Skills[i].Tags, fmt.Sprint(i, ".", j))
				}
			}
		}
		a := Agent{ID: "a", Name: "A", Profile: p}
		if err := a.Validate(); err == nil || errs.As(err).Fields[0].Path.String() != "skills" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAnEditChecksOnlyTheTextThatItChanges(t *testing.T) {
	t.Parallel()
	// Stored before U+009B was refused.
	old := Agent{
		ID: "a", Name: "A", Description: "a\u009bb",
		Profile: Profile{Skills: []Skill{{ID: "s", Name: "s", Tags: []string{"s"}, Examples: []string{"\u009b"}}}},
	}
	old.Skills = []string{"s"}
	yes := true
	if next, err := decideEdit(old, Edit{Disabled: &yes}, old.UpdatedAt); err != nil || !next.Disabled ||
		next.Description != old.Description {
		t.Errorf("got %+v, %v; want it disabled", next, err)
	}
	for at, e := range map[string]Edit{
		"description": {Description: &old.Description}, "skills[0].examples[0]": {Skills: &old.Profile.Skills},
	} {
		if _, err := decideEdit(old, e, old.UpdatedAt); err == nil || errs.As(err).Fields[0].Path.String() != at {
			t.Errorf("%s: got %v, want it refused", at, err)
		}
	}
}

func TestURLsOfProfiles(t *testing.T) {
	t.Parallel()
	for s, ok := range map[string]bool{
		"https://example.com": true, "http://example.com:8080/a?b=c#d": true, "https://example.com/%C3%A9@x": true, "": true,
		"https://u@example.com": false, "https://u:p@example.com/": false, "//example.com": false, "example.com": false,
		"https://":            false,
		"javascript:alert(1)": false, "https://exa mple.com": false, "https://example.com/\n": false,
		"https://example.com/é":   false,
		"https://example.com/%zz": false, "file:///etc/passwd": false, "HTTPS://example.com": false,
	} {
		var c checks
		c.url(errs.At("x"), s)
		if (len(c.fields) == 0) != ok {
			t.Errorf("%q: %v", s, c.fields)
		}
	}
}
