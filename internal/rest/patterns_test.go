package rest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/webhook"
)

// samples are ids and texts on which patterns and domain checks must agree.
var samples = []string{
	"", "a", "A", "main", "a-b", "a.b", "a_b", "-a", ".a", "a b", "ä", "\x00", "a\nb", "a\tb", "a\u0085b", "a\u2028b",
	"\u200b", "a\u200bb", " ", "\u3000",
	" a ", "\u00ad", "\ufeff", "\ue000", "\u034f", "\u2800", "\x7f", "a\u0080b", "a\u009bb", "a\u009fb", "a\u00a0b",
	"a\u202eb", "a\u2066", "a\rb", "a\vb", strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("x", 65),
	"prop-01k5x8r2m4v7c9w3q6z1t0h8ye", "prop-01K5x8r2m4v7c9w3q6z1t0h8ye", "prop-1", "task-01k5x8r2m4v7c9w3q6z1t0h8ye",
	"hook-1", "hook-", "hook-A", "hook-" + strings.Repeat("x", 59), "hook-" + strings.Repeat("x", 60),
	"evt-1", "evt-", "evt-A", "evt-" + strings.Repeat("x", 60), "evt-" + strings.Repeat("x", 61), "key-1", "key-", "key-A", "inv-1", "inv-",
	"client-1", "client-" + strings.Repeat("x", 57), "client-" + strings.Repeat("x", 58), "user:ada", "agent:a.b",
	"service:x", "group:x", "user:", "user:Ada",
	"svc:tasks:read", "svc:a2a:serve", "agent:*", "agent:", "C++", "go/test", "#tag", "registry:timeout",
	"Registry:timeout",
	"https://example.com", "https://example.com:8443/a/b?c=d", "https://", "http://example.com/", "http://localhost/",
	"http://127.0.0.1:7/cb",
	"com.example.app:/done", "app:/done", "app://example/done", "javascript:alert(1)", "https://a#b", "httpx://a",
	"htt://a", "h://a", "ha://a", "ftp://a", "x-y://a", "http://a", "https://u@a/", "https://a b/",
}

// patternOf returns the pattern of a schema, from a struct tag or from matching.
func patternOf(s *huma.Schema) string {
	if p, ok := s.Extensions["pattern"].(string); ok {
		return p
	}
	return s.Pattern
}

func TestThePatternsAreTheDomainsRules(t *testing.T) {
	t.Parallel()
	doc := document(Options{})
	path := func(template, name string) string {
		for _, p := range doc.Paths[template].Get.Parameters {
			if p.Name == name {
				return patternOf(p.Schema)
			}
		}
		t.Fatalf("no parameter %s of %s", name, template)
		return ""
	}
	schema := func(name, property string) *huma.Schema {
		return doc.Components.Schemas.Map()[name].Properties[property]
	}
	unfit := regexp.MustCompile(patternOf(schema("OAuthClientCreation", "redirect_uris").Items.Not))
	clean := func(err error) bool { return err == nil }
	frictions := friction.New(nil, nil, nil, proposal.Check)
	report := func(r friction.Report) error {
		r.Fingerprint, r.Title, r.Category, r.Problem = "x", "x", "feature", "x"
		return frictions.Validate(&r)
	}
	for _, c := range []struct {
		what, pattern string
		accepts       func(s string) bool
	}{
		{"the id of an org", path(proposalsPath, "org"), identity.ValidOrgID},
		{"the id of a proposal", path(proposalPath, "id"), proposal.ValidID},
		{"the id of a follow-up", path(followupPath, "id"), followup.ValidID},
		{"the id of an agent", path(agentPath, "id"), identity.ValidAgentID},
		{"the id of a key", path(keyPath, "id"), identity.ValidKeyID},
		{"the id of a client", path(clientPath, "id"), oauth.ValidClientID},
		{"the id of a webhook", path(webhookPath, "id"), webhook.ValidID},
		{"the id of an event", patternOf(schema("WebhookRedelivery", "event_id")), validEventID},
		{"the uid of a task", path(orgTaskPath, "id"), task.ValidUID},
		{"the fingerprint in a path", path(frictionPath, "fingerprint"), friction.ValidFingerprint},
		{"the fingerprint in a body", patternOf(schema("FrictionReport", "fingerprint")), friction.ValidFingerprint},
		{"a principal", path(memberPath, "ref"), validRef},
		{"a name", patternOf(schema("MemberCreation", "name")), func(s string) bool {
			return s != "" && identity.NameRule.Check(s) == ""
		}},
		{"a scope of a key", patternOf(schema("KeyCreation", "scopes").Items), func(s string) bool {
			_, err := identity.ParseScope(s)
			return err == nil
		}},
		{"a scope of a client", patternOf(schema("OAuthClientCreation", "scopes").Items), func(s string) bool {
			return clean((&oauth.ClientRequest{Name: "x", RedirectURIs: []string{"https://x"}, Scopes: []string{s}}).Validate())
		}},
		{"a redirect address", patternOf(schema("OAuthClientCreation", "redirect_uris").Items), func(s string) bool {
			return clean((&oauth.ClientRequest{Name: "x", RedirectURIs: []string{s}}).Validate())
		}},
		{"the title of a proposal", patternOf(schema("ProposalSubmission", "title")), func(s string) bool {
			return clean(proposal.Check(s, "feature", "x", "x", "normal"))
		}},
		{"the problem of a proposal", patternOf(schema("ProposalSubmission", "problem")), func(s string) bool {
			return clean(proposal.Check("x", "feature", s, "x", "normal"))
		}},
		{"the evidence of a friction", patternOf(schema("FrictionReport", "evidence")), func(s string) bool {
			return clean(report(friction.Report{Evidence: s}))
		}},
		{"the occurrence of a friction", patternOf(schema("FrictionReport", "occurrence")), func(s string) bool {
			return clean(report(friction.Report{Occurrence: s}))
		}},
		{"the description of an agent", patternOf(schema("AgentCreation", "description")), func(s string) bool {
			return clean((&agent.Agent{Name: "x", Description: s}).Validate())
		}},
		{"the title of a note", patternOf(schema("SavedNoteCreation", "title")), func(s string) bool {
			return clean((&proposal.NoteCreation{Title: s, Text: "x"}).Validate())
		}},
		{"the text of a note", patternOf(schema("SavedNoteCreation", "text")), func(s string) bool {
			return clean((&proposal.NoteCreation{Title: "x", Text: s}).Validate())
		}},
		{"the name of a worker", patternOf(schema("ClaimRequest", "worker")), func(s string) bool {
			r := dispatch.ClaimRequest{Worker: s, Lease: task.DefaultLease, Capacity: 1}
			return clean(r.Validate())
		}},
		{"a comment", patternOf(schema("Ballot", "comment")), func(s string) bool {
			return clean((&proposal.Ballot{Choice: "for", Comment: s}).Validate())
		}},
		{"the title of a follow-up", patternOf(schema("FollowupCreation", "title")), func(s string) bool {
			return clean((&followup.Creation{Title: s}).Validate())
		}},
		{"the description of a follow-up", patternOf(schema("FollowupCreation", "description")), func(s string) bool {
			return clean((&followup.Creation{Title: "x", Description: s}).Validate())
		}},
		{"the assignee of a follow-up", patternOf(schema("FollowupCreation", "assignee")), func(s string) bool {
			return clean((&followup.Creation{Title: "x", Assignee: s}).Validate())
		}},
		{"the name of a worker", patternOf(schema("ClaimRequest", "worker")), func(s string) bool {
			return clean((&dispatch.ClaimRequest{Lease: task.MinLease, Capacity: 1, Worker: s}).Validate())
		}},
	} {
		re, err := regexp.Compile(c.pattern)
		if err != nil || c.pattern == "" {
			t.Errorf("%s: the pattern %q: %v", c.what, c.pattern, err)
			continue
		}
		for _, s := range samples {
			got, want := re.MatchString(s), c.accepts(s)
			if c.what == "a redirect address" {
				got = got && !unfit.MatchString(s)
			}
			if got != want {
				t.Errorf("%s %q: the pattern says %v, the domain %v", c.what, s, got, want)
			}
		}
	}
}

func TestTheDocumentSuitsGenerators(t *testing.T) {
	t.Parallel()
	doc := document(Options{})
	schemas := doc.Components.Schemas.Map()
	for name := range schemas {
		// Generated code has a type Client, and a constructor NewX for each schema X.
		if base, ok := strings.CutPrefix(name, "New"); name == "Client" || ok && schemas[base] != nil {
			t.Errorf("the schema %s collides with what generators make", name)
		}
	}
	bodies := map[string]bool{}
	for path, item := range doc.Paths {
		for method, op := range operationsOf(item) {
			if !strings.Contains(op.OperationID, "-") {
				t.Errorf("%s %s: the operation %q is not a verb with an object, and may be a keyword", method, path, op.OperationID)
			}
			for _, p := range op.Parameters {
				if (p.Name == "page" || p.Name == "cursor") && p.Schema.Default != nil {
					t.Errorf("%s %s: a client would send the default of %s always", method, path, p.Name)
				}
			}
			if op.RequestBody != nil {
				reach(schemas, op.RequestBody.Content["application/json"].Schema, bodies)
			}
		}
	}
	for name := range bodies {
		for field, s := range schemas[name].Properties {
			if s.Default != nil {
				t.Errorf("%s.%s: a client would send the default, which the server fills in by itself", name, field)
			}
		}
	}
	if len(doc.Servers) == 0 || doc.Info.License == nil {
		t.Error("the document names no server, or no license")
	}
}
