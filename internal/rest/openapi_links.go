package rest

import (
	"iter"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// link states that the response of one operation has a parameter of another.
type link struct {
	from   string // operation and status, such as "submit-proposal 201"
	values string // parameters as JSON pointers into the response, such as "id=/id"
	to     string // operations, separated by spaces
}

// operationLinks connect operations, so that tools can follow from one to the next.
var operationLinks = []link{
	{"submit-proposal 201", "id=/id", "get-proposal change-proposal list-history cast-vote list-votes"},
	{"list-proposals 200", "id=/proposals/0/id", "get-proposal change-proposal list-history cast-vote list-votes"},
	{"list-proposals 200", "cursor=/next_cursor", "list-proposals"},
	{"cast-vote 200", "id=/proposal_id", "list-votes withdraw-vote"},
	{"find-similar-proposals 200", "id=/similar/0/id", "get-proposal"},
	{"list-similar-proposals 200", "id=/similar/0/id", "get-proposal"},
	{"create-note 201", "id=/id", "delete-note"},
	{"list-notes 200", "id=/notes/0/id", "delete-note"},
	{"create-followup 201", "id=/id", "get-followup change-followup"},
	{"list-followups 200", "id=/followups/0/id", "get-followup change-followup"},
	{"report-friction 200", "fingerprint=/fingerprint", "get-friction"},
	{"report-friction 201", "fingerprint=/fingerprint", "get-friction"},
	{"list-friction 200", "fingerprint=/friction/0/fingerprint", "get-friction"},
	{"list-friction 200", "cursor=/next_cursor", "list-friction"},
	{"create-agent 201", "id=/id", "get-agent change-agent"},
	{"create-agent 201", "agent=/id", "claim-tasks get-agent-card call-agent"},
	{"list-agents 200", "id=/agents/0/id", "get-agent"},
	{"list-a2a-tasks 200", "id=/tasks/0/uid", "get-a2a-task list-task-push-configs rerun-a2a-task"},
	{"list-a2a-tasks 200", "cursor=/next_cursor", "list-a2a-tasks"},
	{"list-push-configs 200", "id=/configs/0/task_uid push=/configs/0/id", "retry-push-config"},
	{"list-push-configs 200", "cursor=/next_cursor", "list-push-configs"},
	{"claim-tasks 200", "lease=/tasks/0/lease", "report-task return-task"},
	{"create-key 201", "id=/id", "get-key rotate-key revoke-key"},
	{"rotate-key 201", "id=/id", "get-key revoke-key"},
	{"list-keys 200", "cursor=/next_cursor", "list-keys"},
	{"create-own-key 201", "id=/id", "get-own-key rotate-own-key revoke-own-key"},
	{"rotate-own-key 201", "id=/id", "get-own-key revoke-own-key"},
	{"list-own-keys 200", "cursor=/next_cursor", "list-own-keys"},
	{"create-member 201", "ref=/ref", "get-member change-member create-member-link erase-member"},
	{"list-members 200", "cursor=/next_cursor", "list-members"},
	{"create-invitation 201", "id=/id", "revoke-invitation"},
	{"list-invitations 200", "cursor=/next_cursor", "list-invitations"},
	{"create-client 201", "id=/id", "get-client change-client rotate-client delete-client"},
	{"list-clients 200", "cursor=/next_cursor", "list-clients"},
	{
		"create-webhook 201", "id=/id",
		"get-webhook change-webhook rotate-webhook ping-webhook list-webhook-deliveries redeliver-webhook delete-webhook",
	},
	{"list-webhooks 200", "id=/webhooks/0/id", "get-webhook list-webhook-deliveries"},
	{"list-audit 200", "cursor=/next_cursor", "list-audit"},
}

// linkOperations adds the links to the document.
func linkOperations(doc *huma.OpenAPI) {
	ops := map[string]*huma.Operation{}
	for _, item := range doc.Paths {
		for _, op := range operationsOf(item) {
			ops[op.OperationID] = op
		}
	}
	for _, l := range operationLinks {
		id, status, _ := strings.Cut(l.from, " ")
		res := ops[id].Responses[status] // the tests find a link from an unknown operation
		if res.Links == nil {
			res.Links = map[string]*huma.Link{}
		}
		for to := range strings.FieldsSeq(l.to) {
			params := map[string]any{}
			for pair := range strings.FieldsSeq(l.values) {
				name, pointer, _ := strings.Cut(pair, "=")
				params[name] = "$response.body#" + pointer
			}
			for _, shared := range []string{"org", "agent"} {
				if _, own := params[shared]; !own && hasPath(ops[id], shared) && hasPath(ops[to], shared) {
					params[shared] = "$request.path." + shared
				}
			}
			res.Links[to] = &huma.Link{OperationID: to, Parameters: params}
		}
	}
}

func hasPath(op *huma.Operation, name string) bool { return strings.Contains(op.Path, "{"+name+"}") }

// demandValues documents that string parameters of the query must not be empty.
func demandValues(doc *huma.OpenAPI) {
	one := 1
	for path, item := range doc.Paths {
		if !strings.HasPrefix(path, "/api/") {
			continue
		}
		for _, op := range operationsOf(item) {
			for _, p := range op.Parameters {
				if p.In == "query" && p.Schema.Type == huma.TypeString && p.Schema.MinLength == nil && len(p.Schema.Enum) == 0 {
					p.Schema.MinLength = &one
				}
			}
		}
	}
}

// operationsOf iterates over the operations of a path, with their methods.
func operationsOf(item *huma.PathItem) iter.Seq2[string, *huma.Operation] {
	return func(yield func(string, *huma.Operation) bool) {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Delete, item.Put} {
			if op != nil && !yield(op.Method, op) {
				return
			}
		}
	}
}
