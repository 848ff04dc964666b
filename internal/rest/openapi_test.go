package rest

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/proposal"
)

var update = flag.Bool("update", false, "write the golden files anew")

// document returns the OpenAPI document without a server.
func document(o Options) *huma.OpenAPI {
	o.Proposals, o.Followups = &proposal.Proposals{}, &followup.Followups{}
	return describe(httpx.NewRouter(httpx.Options{}), o)
}

func TestTheContractIsTheOneInTheRepository(t *testing.T) {
	t.Parallel()
	_, got := render(document(Options{}))
	file := filepath.Join("..", "..", "api", "openapi.yaml")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("api/openapi.yaml is outdated; run go test ./internal/rest -update (-want +got):\n%s", diff)
	}
}

// A report may have 4 MiB, and its connection may be slow: the timeout of docs/operations.md applies,
// not the default of huma.
func TestABodyMayTakeItsTime(t *testing.T) {
	t.Parallel()
	bodies := 0
	for path, item := range document(Options{}).Paths {
		for method, op := range operationsOf(item) {
			if op.RequestBody == nil || !strings.HasPrefix(path, "/api/") {
				continue
			}
			if bodies++; op.BodyReadTimeout != 30*time.Second {
				t.Errorf("%s %s gives the body %s; want 30 s", method, path, op.BodyReadTimeout)
			}
		}
	}
	if bodies == 0 {
		t.Error("no operation has a body")
	}
}

func TestTheDocumentTakesItsRulesFromTheDomain(t *testing.T) {
	t.Parallel()
	doc := document(Options{})
	schema := func(name, property string) *huma.Schema {
		s := doc.Components.Schemas.Map()[name]
		if s == nil || s.Properties[property] == nil {
			t.Fatalf("no %s.%s", name, property)
		}
		return s.Properties[property]
	}
	for _, c := range []struct {
		schema, property string
		limit            int
	}{
		{"ProposalSubmission", "title", proposal.MaxTitle},
		{"ProposalSubmission", "problem", proposal.MaxText},
		{"ProposalSubmission", "suggested_fix", proposal.MaxText},
		{"ProposalPatch", "title", proposal.MaxTitle},
		{"ProposalPatch", "resolution_note", proposal.MaxNote},
		{"Ballot", "comment", proposal.MaxComment},
		{"FollowupCreation", "title", followup.MaxTitle},
		{"FollowupPatch", "description", followup.MaxDescription},
	} {
		if got := schema(c.schema, c.property).MaxLength; got == nil || *got != c.limit {
			t.Errorf("%s.%s: maxLength %v, want %d", c.schema, c.property, got, c.limit)
		}
	}
	for _, c := range []struct {
		schema, property string
		list             []string
	}{
		{"ProposalSubmission", "category", names(proposal.Categories)},
		{"ProposalSubmission", "priority", names(proposal.Priorities)},
		{"ProposalPatch", "status", names(proposal.Statuses)},
		{"Proposal", "category", names(proposal.Categories)},
		{"Proposal", "status", names(proposal.Statuses)},
		{"Ballot", "vote", names(proposal.Choices)},
		{"Followup", "status", names(followup.Statuses)},
	} {
		var got []string
		for _, e := range schema(c.schema, c.property).Enum {
			got = append(got, e.(string))
		}
		if diff := cmp.Diff(c.list, got); diff != "" {
			t.Errorf("%s.%s: mismatch (-want +got):\n%s", c.schema, c.property, diff)
		}
	}
	params := map[string]*huma.Schema{}
	for _, p := range doc.Paths[proposalsPath].Get.Parameters {
		params[p.Name] = p.Schema
	}
	if l := params["limit"]; *l.Minimum != 1 || *l.Maximum != proposal.MaxLimit || l.Default != proposal.DefaultLimit {
		t.Errorf("limit: got %+v, want Minimum 1, Maximum %v, Default %v", l, proposal.MaxLimit, proposal.DefaultLimit)
	}
	if s := params["status"]; len(s.Enum) != len(proposal.Statuses)+1 || s.Default != "open" {
		t.Errorf("status: got %+v, want len(Enum) %v, Default open", s, len(proposal.Statuses)+1)
	}
}

func TestEveryOperationDocumentsItsErrors(t *testing.T) {
	t.Parallel()
	doc := document(Options{})
	for path, item := range doc.Paths {
		for method, op := range operationsOf(item) {
			if op.Summary == "" || op.Description == "" || op.OperationID == "" || len(op.Tags) != 1 {
				t.Errorf("%s %s is not described", method, path)
			}
			if !strings.HasPrefix(path, "/api/") {
				continue
			}
			want := append([]int{}, anyOperation...)
			if op.RequestBody != nil {
				want = append(want, withBody...)
			}
			for _, code := range want {
				res := op.Responses[strconv.Itoa(code)]
				if res != nil {
					res = resolveResponse(doc, res)
				}
				if res == nil || res.Description == "" || res.Content[httpx.ProblemType] == nil &&
					code != http.StatusRequestHeaderFieldsTooLarge {
					t.Errorf("%s %s does not document %d", method, path, code)
				}
			}
			for _, p := range op.Parameters {
				if p.Description == "" {
					t.Errorf("%s %s: the parameter %s is not described", method, path, p.Name)
				}
			}
		}
	}
	for name, s := range doc.Components.Schemas.Map() {
		for field, p := range s.Properties {
			if p.Description == "" {
				t.Errorf("the field %s.%s is not described", name, field)
			}
		}
	}
}
