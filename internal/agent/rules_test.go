package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs/errstest"
	"github.com/parley-dev/parley/internal/identity"
)

var (
	madeAt    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	changedAt = madeAt.Add(time.Hour)
)

// made is the agent that the tables start from.
func made() Agent {
	a := Agent{ID: "scout", Org: "acme", Name: "Scout", Description: "Looks around.", CreatedAt: madeAt, UpdatedAt: madeAt}
	a.Describe([]Skill{PlainSkill("look")})
	return a
}

func ptr[T any](v T) *T { return &v }

// actions lists what the audit log is told of a change.
func actions(old, next Agent) []identity.AuditAction {
	var out []identity.AuditAction
	for _, e := range entries(context.Background(), old, next) {
		out = append(out, e.Action)
	}
	return out
}

// Each field that an update may change, alone: what becomes of the agent, and what the audit
// log is told.
func TestWhatAnUpdateChanges(t *testing.T) {
	t.Parallel()
	update, disable := []identity.AuditAction{identity.AgentUpdate}, []identity.AuditAction{identity.AgentDisable}
	skill := Skill{ID: "x", Name: "X", Tags: []string{"a", "b"}, Examples: []string{"Do it."}}
	for name, c := range map[string]struct {
		edit Edit
		want func(*Agent)
		told []identity.AuditAction
	}{
		"nothing":         {Edit{}, func(*Agent) {}, nil},
		"the same name":   {Edit{Name: ptr("Scout")}, func(*Agent) {}, nil},
		"the same skills": {Edit{Skills: &[]Skill{{ID: "look"}}}, func(*Agent) {}, nil},
		"the name":        {Edit{Name: ptr("S")}, func(a *Agent) { a.Name = "S" }, update},
		"the description": {Edit{Description: ptr("")}, func(a *Agent) { a.Description = "" }, update},
		"tags": {
			Edit{Skills: &[]Skill{PlainSkill("a"), {ID: "b"}}}, func(a *Agent) { a.Skills = []string{"a", "b"} }, update,
		},
		"no skills": {Edit{Skills: &[]Skill{}}, func(a *Agent) { a.Skills = []string{} }, update},
		"a described skill": {
			Edit{Skills: &[]Skill{skill}}, func(a *Agent) { a.Skills, a.Profile.Skills = skill.Tags, []Skill{skill} }, update,
		},
		"made public":  {Edit{Public: ptr(true)}, func(a *Agent) { a.Public, a.PublicName = true, true }, update},
		"kept private": {Edit{Public: ptr(false)}, func(*Agent) {}, nil},
		"disabled":     {Edit{Disabled: ptr(true)}, func(a *Agent) { a.Disabled = true }, disable},
		"kept enabled": {Edit{Disabled: ptr(false)}, func(*Agent) {}, nil},
		"pinned":       {Edit{Pinned: ptr("busy")}, func(a *Agent) { a.Pinned = "busy" }, update},
		"not pinned":   {Edit{Pinned: ptr("")}, func(*Agent) {}, nil},
		"the version":  {Edit{Version: ptr("1.2")}, func(a *Agent) { a.Profile.Version = "1.2" }, update},
		"the documentation": {
			Edit{DocumentationURL: ptr("https://a.example")},
			func(a *Agent) { a.Profile.DocumentationURL = "https://a.example" }, update,
		},
		"the icon": {
			Edit{IconURL: ptr("https://a.example/i")}, func(a *Agent) { a.Profile.IconURL = "https://a.example/i" }, update,
		},
		"the provider": {
			Edit{Provider: &Provider{"A", "https://a.example"}},
			func(a *Agent) { a.Profile.Provider = Provider{"A", "https://a.example"} }, update,
		},
		"renamed and disabled": {
			Edit{Name: ptr("S"), Disabled: ptr(true)},
			func(a *Agent) { a.Name, a.Disabled = "S", true },
			[]identity.AuditAction{identity.AgentUpdate, identity.AgentDisable},
		},
	} {
		want := made()
		want.UpdatedAt = changedAt
		c.want(&want)
		got, err := decideEdit(made(), c.edit, changedAt)
		if err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		if diff := cmp.Diff(c.told, actions(made(), got)); diff != "" {
			t.Errorf("%s: entries of the audit log (-want +got)\n%s", name, diff)
		}
	}
}

// A remote may take seconds to send its card. What was changed meanwhile stays.
func TestRelaysAreChangedAsTheyWereRead(t *testing.T) {
	t.Parallel()
	set := changedAt.Add(-time.Hour)
	read := Relay{URL: "https://old.example/", CredentialType: "bearer", Credential: "under key 1", CredentialSetAt: set}
	card := read
	card.Card = "new"
	for name, c := range map[string]struct {
		stored func(*Relay)
		edit   Edit
		want   func(*Relay) // nil: refused
	}{
		"nothing has changed": {func(*Relay) {}, Edit{Relay: &card, Known: &read}, func(r *Relay) { r.Card = "new" }},
		"another URL":         {func(r *Relay) { r.URL = "https://new.example/" }, Edit{Relay: &card, Known: &read}, nil},
		"another credential": {
			func(r *Relay) { r.Credential, r.CredentialSetAt = "another", changedAt }, Edit{Relay: &card, Known: &read}, nil,
		},
		"the same credential under another key": {
			func(r *Relay) { r.Credential = "under key 2" },
			Edit{Relay: &card, Known: &read},
			func(r *Relay) { r.Card, r.Credential = "new", "under key 2" },
		},
		"unknown": {func(*Relay) {}, Edit{Relay: &card}, nil},
	} {
		a := made()
		stored := read
		c.stored(&stored)
		a.Builtin, a.Relay = Relayed, &stored
		got, err := decideEdit(a, c.edit, changedAt)
		if c.want == nil {
			if !errors.Is(err, ErrRelayChanged) {
				t.Errorf("%s: %v, want %v", name, err, ErrRelayChanged)
			}
			continue
		}
		want := stored
		c.want(&want)
		if err != nil || *got.Relay != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got.Relay, err, want)
		}
	}
}

// Every state of public, public name and disabled, and every edit of the two that an admin
// can change: the public name stays with the agent whatever is done to it.
func TestVisibilityAndThePublicName(t *testing.T) {
	t.Parallel()
	states := []*bool{nil, ptr(false), ptr(true)}
	for state := range 8 {
		before := made()
		before.Public, before.PublicName, before.Disabled = state&1 != 0, state&2 != 0, state&4 != 0
		if before.Public && !before.PublicName {
			continue // cannot be
		}
		for _, public := range states {
			for _, disabled := range states {
				name := fmt.Sprintf("public %v, name %v, disabled %v, edited to public %s, disabled %s",
					before.Public, before.PublicName, before.Disabled, show(public), show(disabled))
				got, err := decideEdit(before, Edit{Public: public, Disabled: disabled}, changedAt)
				if err != nil {
					t.Errorf("%s: got %v, want no error", name, err)
				}
				want := before
				if want.UpdatedAt = changedAt; public != nil {
					want.Public = *public
					want.PublicName = before.PublicName || *public
				}
				if disabled != nil {
					want.Disabled = *disabled
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got)\n%s", name, diff)
				}
				var told []identity.AuditAction
				if want.Public != before.Public || want.PublicName != before.PublicName {
					told = append(told, identity.AgentUpdate)
				}
				switch {
				case want.Disabled && !before.Disabled:
					told = append(told, identity.AgentDisable)
				case !want.Disabled && before.Disabled:
					told = append(told, identity.AgentEnable)
				}
				if diff := cmp.Diff(told, actions(before, got)); diff != "" {
					t.Errorf("%s: entries of the audit log (-want +got)\n%s", name, diff)
				}
			}
		}
	}
}

func show(b *bool) string {
	if b == nil {
		return "unchanged"
	}
	return fmt.Sprint(*b)
}

func TestPinnedPresences(t *testing.T) {
	t.Parallel()
	for pinned, ok := range map[string]bool{
		"": true, "available": true, "busy": true, "offline": true, "Busy": false, "online": false, "busy ": false,
		"disabled": false,
	} {
		for _, before := range append([]string{""}, Presences...) {
			a := made()
			a.Pinned = before
			got, err := decideEdit(a, Edit{Pinned: &pinned}, changedAt)
			if !ok {
				if diff := cmp.Diff([]string{"status"}, errstest.Fields(err)); diff != "" {
					t.Errorf("%q after %q: broken fields (-want +got)\n%s", pinned, before, diff)
				}
				continue
			}
			if err != nil || got.Pinned != pinned {
				t.Errorf("%q after %q: got %q, %v; want %q", pinned, before, got.Pinned, err, pinned)
			}
		}
	}
}

func TestNamesDescriptionsAndTags(t *testing.T) {
	t.Parallel()
	many := make([]string, MaxSkills+1)
	for i := range many {
		many[i] = fmt.Sprint("tag ", i)
	}
	for _, c := range []struct {
		name string
		set  func(*Agent)
		want []string
	}{
		{"as it was made", func(*Agent) {}, nil},
		{"no name", func(a *Agent) { a.Name = "" }, []string{"name"}},
		{"a blank name", func(a *Agent) { a.Name = "  " }, []string{"name"}},
		{"a deceptive name", func(a *Agent) { a.Name = "a\u202eb" }, []string{"name"}},
		{"the longest name", func(a *Agent) { a.Name = strings.Repeat("é", MaxName) }, nil},
		{"a name too long", func(a *Agent) { a.Name = strings.Repeat("é", MaxName+1) }, []string{"name"}},
		{"no description", func(a *Agent) { a.Description = "" }, nil},
		{"lines of description", func(a *Agent) { a.Description = "a\r\n\tb" }, nil},
		{"the longest description", func(a *Agent) { a.Description = strings.Repeat("é", MaxDescription) }, nil},
		{
			"a description too long", func(a *Agent) { a.Description = strings.Repeat("é", MaxDescription+1) },
			[]string{"description"},
		},
		{"a description with an escape", func(a *Agent) { a.Description = "\x1b[31m" }, []string{"description"}},
		{"a description that is not UTF-8", func(a *Agent) { a.Description = "\xff" }, []string{"description"}},
		{"no tags", func(a *Agent) { a.Skills = nil }, nil},
		{"as many tags as can be", func(a *Agent) { a.Skills = many[:MaxSkills] }, nil},
		{"too many tags", func(a *Agent) { a.Skills = many }, []string{"skills"}},
		{"a tag twice", func(a *Agent) { a.Skills = []string{"a", "b", "a"} }, []string{"skills[2]"}},
		{"an empty tag", func(a *Agent) { a.Skills = []string{"a", ""} }, []string{"skills[1]"}},
		{"every character of a tag", func(a *Agent) { a.Skills = []string{"aZ0 ._:+#/-"} }, nil},
		{"a tag that begins with a dot", func(a *Agent) { a.Skills = []string{".a"} }, []string{"skills[0]"}},
		{"the longest tag", func(a *Agent) { a.Skills = []string{strings.Repeat("a", 64)} }, nil},
		{"a tag too long", func(a *Agent) { a.Skills = []string{strings.Repeat("a", 65)} }, []string{"skills[0]"}},
	} {
		a := made()
		c.set(&a)
		if diff := cmp.Diff(c.want, errstest.Fields(a.Validate())); diff != "" {
			t.Errorf("%s: broken fields (-want +got)\n%s", c.name, diff)
		}
	}
}

// One response lists a bounded number of problems, whatever was sent.
func TestTheNumberOfProblemsIsBounded(t *testing.T) {
	t.Parallel()
	a := made()
	a.Skills = slices.Repeat([]string{""}, MaxSkills)
	if got := len(errstest.Fields(a.Validate())); got != maxProblems {
		t.Errorf("%d broken tags: got %d problems, want %d", MaxSkills, got, maxProblems)
	}
}
