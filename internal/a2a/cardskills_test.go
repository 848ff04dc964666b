package a2a

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/agent"
)

// The profile of an agent is on its cards of every version; the platform's card has only the tags.
func TestCardsShowTheProfileOfAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rich := agent.Agent{ID: "rich", Org: "acme", Name: "Rich", Public: true, Profile: agent.Profile{
		Version: "1.4.0", DocumentationURL: "https://example.com/rich", IconURL: "https://example.com/i.png",
		Provider: agent.Provider{Organization: "Acme", URL: "https://acme.example"},
	}}
	rich.Describe([]agent.Skill{
		{
			ID: "t", Name: "Translate", Description: "To and fro.",
			Tags: []string{"nlp", "de"}, Examples: []string{"Ja?"},
			InputModes: []string{"text/plain"}, OutputModes: []string{"application/json"},
		},
		agent.PlainSkill("Small Talk"),
	})
	w.orgs.Agent(rich)
	type card struct {
		Version, DocumentationURL, IconURL string
		Provider                           *cardProvider
		Skills                             []cardSkill
	}
	want := card{
		"1.4.0", "https://example.com/rich", "https://example.com/i.png", &cardProvider{"Acme", "https://acme.example"},
		[]cardSkill{
			{
				ID: "t", Name: "Translate", Description: "To and fro.",
				Tags: []string{"nlp", "de"}, Examples: []string{"Ja?"},
				InputModes: []string{"text/plain"}, OutputModes: []string{"application/json"},
			},
			{ID: "Small Talk", Name: "Small Talk", Description: "Rich: Small Talk", Tags: []string{"Small Talk"}},
		},
	}
	ada := w.caller("user:ada")
	const path = "/a2a/rich/.well-known/agent-card.json"
	for name, text := range map[string]string{
		"1.0":           w.do("", "GET", path, "", "A2A-Version", "1.0").Body,
		"0.3":           w.do("", "GET", path, "", "A2A-Version", "0.3").Body,
		"both":          w.do("", "GET", path, "").Body,
		"extended":      w.do(ada, "GET", "/a2a/rich/extendedAgentCard", "").Body,
		"extended, 0.3": result(t, w.rpc(ada, "rich", "agent/getAuthenticatedExtendedCard", "{}").Body),
	} {
		var got card
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	w.do(ada, "GET", "/.well-known/agent.json", "").contains(`"skills":["nlp","de","Small Talk"]`)

	// A change shows at once, although cards are cached for a moment.
	name := "Richer"
	w.orgs.EditAgent("acme", "rich", agent.Edit{Name: &name, Skills: &[]agent.Skill{agent.PlainSkill("x")}})
	w.do("", "GET", path, "").contains(`"name":"Richer"`,
		`"skills":[{"id":"x","name":"x","description":"Richer: x","tags":["x"]}]`)
}
