package internal_test

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/event"
)

// reports says which events report an action, or why none does.
type reports struct {
	types []event.Type
	why   string
}

func emits(types ...event.Type) reports { return reports{types: types} }

func silent(why string) reports { return reports{why: why} }

const (
	ownSignIn   = "concerns how one person signs in, and is in the audit log"
	noOrg       = "the client belongs to no org, so there is no log"
	notPublic   = "notes and settings have no events"
	onlyTouches = "sends again what was sent before"
)

// audited lists every action of the audit log. An action of which something depends on the record,
// such as the role of a new member, lists all events that it can cause.
var audited = map[string]reports{
	"org.create":        silent("the log of the org begins with it"),
	"retention.delete":  silent("records end with the time that the operator set; nobody acts"),
	"org.import":        silent("the log of the org comes with it"),
	"org.delete":        silent("nothing of the org remains, and so no log"),
	"key.create":        emits(event.KeyCreated),
	"key.revoke":        emits(event.KeyRevoked),
	"key.rotate":        emits(event.KeyCreated, event.KeyRotated),
	"member.create":     emits(event.MemberCreated),
	"member.update":     emits(event.MemberChanged, event.AgentChanged, event.KeyRevoked),
	"member.disable":    emits(event.MemberDisabled, event.AgentDisabled),
	"member.enable":     emits(event.MemberEnabled, event.AgentEnabled),
	"member.erase":      emits(event.MemberErased),
	"invitation.create": emits(event.InvitationCreated),
	"invitation.revoke": emits(event.InvitationRevoked),
	"invitation.accept": emits(event.InvitationAccepted, event.MemberCreated),
	"agent.create":      emits(event.AgentRegistered),
	"agent.update":      emits(event.AgentChanged),
	"agent.disable":     emits(event.AgentDisabled),
	"agent.enable":      emits(event.AgentEnabled),

	"oauth.client.register": silent(noOrg),
	"oauth.client.describe": silent(noOrg),
	"oauth.client.create":   emits(event.ClientCreated),
	"oauth.client.update":   emits(event.ClientChanged),
	"oauth.client.rotate":   emits(event.ClientChanged),
	"oauth.client.delete":   emits(event.ClientDeleted),
	"oauth.consent":         silent(ownSignIn),
	"oauth.token.issue":     silent(ownSignIn),
	"oauth.token.revoke":    silent(ownSignIn),
	"oauth.grant.revoke":    silent(ownSignIn),
	"oauth.grant.narrow":    silent(ownSignIn),
	"oauth.grant.replay":    silent(ownSignIn),

	"login":             silent(ownSignIn),
	"login.failed":      silent(ownSignIn),
	"login.link":        silent(ownSignIn),
	"logout":            silent(ownSignIn),
	"logout.everywhere": silent(ownSignIn),
	"password.change":   silent(ownSignIn),
	"identity.link":     silent(ownSignIn),
	"identity.unlink":   silent(ownSignIn),
	"account.link":      silent(ownSignIn),
	"account.unlink":    silent(ownSignIn),

	"note.create":        silent(notPublic),
	"note.delete":        silent(notPublic),
	"friction.threshold": silent(notPublic),

	"webhook.create":    emits(event.WebhookCreated),
	"webhook.update":    emits(event.WebhookChanged),
	"webhook.rotate":    emits(event.WebhookChanged),
	"webhook.delete":    emits(event.WebhookDeleted),
	"webhook.ping":      silent("a ping is sent to one webhook and is not in the log"),
	"webhook.redeliver": silent(onlyTouches),
}

// operations lists every operation of the REST API that is not a GET.
var operations = map[string]reports{
	"create-own-key": emits(event.KeyCreated),
	"revoke-own-key": emits(event.KeyRevoked),
	"rotate-own-key": emits(event.KeyCreated, event.KeyRotated),
	"create-key":     emits(event.KeyCreated),
	"revoke-key":     emits(event.KeyRevoked),
	"rotate-key":     emits(event.KeyCreated, event.KeyRotated),

	"create-agent":  emits(event.AgentRegistered),
	"change-agent":  emits(event.AgentChanged, event.AgentDisabled, event.AgentEnabled),
	"refresh-agent": emits(event.AgentChanged),

	"create-client": emits(event.ClientCreated),
	"change-client": emits(event.ClientChanged),
	"rotate-client": emits(event.ClientChanged),
	"delete-client": emits(event.ClientDeleted),

	"create-invitation": emits(event.InvitationCreated),
	"revoke-invitation": emits(event.InvitationRevoked),
	"create-member":     emits(event.MemberCreated),
	"change-member": emits(event.MemberChanged, event.MemberDisabled, event.MemberEnabled, event.AgentChanged,
		event.AgentDisabled, event.AgentEnabled, event.KeyRevoked),
	"create-member-link": silent(ownSignIn),
	"erase-member":       emits(event.MemberErased),

	"submit-proposal": emits(event.ProposalDrafted, event.ProposalSubmitted),
	"change-proposal": emits(event.ProposalEdited, event.ProposalOpened, event.ProposalApproved, event.ProposalRejected,
		event.ProposalReopened, event.ProposalResolved, event.FollowupCreated),
	"decide-proposals": emits(event.ProposalApproved, event.ProposalRejected, event.ProposalReopened,
		event.ProposalResolved, event.FollowupCreated),
	"cast-vote":       emits(event.ProposalVoted),
	"withdraw-vote":   emits(event.ProposalVoteWithdrawn),
	"create-followup": emits(event.FollowupCreated),
	"change-followup": emits(event.FollowupEdited, event.FollowupAssigned, event.FollowupStarted,
		event.FollowupDone, event.FollowupCanceled,
		event.FollowupReopened, event.TaskCreated),
	"report-friction":       emits(event.FrictionReported, event.FrictionFiled, event.ProposalSubmitted),
	"create-note":           silent(notPublic),
	"delete-note":           silent(notPublic),
	"set-friction-settings": silent(notPublic),

	"call-agent":  emits(event.TaskCreated, event.TaskCanceled),
	"claim-tasks": emits(event.AgentPresence),
	"report-task": emits(event.TaskInputRequired, event.TaskCompleted, event.TaskFailed, event.TaskRejected,
		event.TaskCanceled),
	"exchange-work": emits(event.AgentPresence, event.TaskInputRequired, event.TaskCompleted, event.TaskFailed, event.TaskRejected,
		event.TaskCanceled),
	"return-task":       silent("the task waits in the queue again; its state does not change"),
	"retry-push-config": silent(onlyTouches),
	"rerun-task":        emits(event.TaskCreated),
	"rerun-a2a-task":    emits(event.TaskCreated),

	"create-webhook":    emits(event.WebhookCreated),
	"change-webhook":    emits(event.WebhookChanged),
	"rotate-webhook":    emits(event.WebhookChanged),
	"delete-webhook":    emits(event.WebhookDeleted),
	"ping-webhook":      silent("a ping is sent to one webhook and is not in the log"),
	"redeliver-webhook": silent(onlyTouches),
}

// byItself lists the events that have no action: Parley notices them.
var byItself = []event.Type{event.WebhookFailed}

func (r reports) check(t *testing.T, name string, known bool) {
	t.Helper()
	switch {
	case !known:
		t.Errorf("%s: say in internal/events_test.go which events report it, or why none does", name)
	case len(r.types) == 0 && r.why == "":
		t.Errorf("%s: no event reports it, and there is no reason", name)
	}
	for _, kind := range r.types {
		if !kind.Known() {
			t.Errorf("%s: %q is not in event.Kinds", name, kind)
		}
	}
}

func TestEveryAuditedActionIsReported(t *testing.T) {
	t.Parallel()
	found := auditActions(t)
	if len(found) < 40 {
		t.Fatalf("found %d audit actions, want more: the test looks for the wrong constants", len(found))
	}
	for _, action := range found {
		r, ok := audited[action]
		r.check(t, action, ok)
	}
}

// auditActions returns the values of all constants of the type identity.AuditAction.
func auditActions(t *testing.T) (out []string) {
	t.Helper()
	for _, f := range goFiles(t) {
		if f.isTest() {
			continue
		}
		for _, decl := range f.syntax.Decls {
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.CONST {
				out = append(out, auditActionsOf(t, f, g)...)
			}
		}
	}
	return out
}

func auditActionsOf(t *testing.T, f *goFile, g *ast.GenDecl) (out []string) {
	t.Helper()
	for _, spec := range g.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		name := ""
		switch x := v.Type.(type) {
		case *ast.Ident:
			name = x.Name
		case *ast.SelectorExpr:
			name = x.Sel.Name
		}
		if name != "AuditAction" {
			continue
		}
		for _, value := range v.Values {
			lit, ok := value.(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: the value of an audit action must be a literal, which this test reads", f.path)
				continue
			}
			s, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, s)
		}
	}
	return out
}

var (
	methodLine    = regexp.MustCompile(`^    (get|put|post|delete|options|head|patch|trace):`)
	operationLine = regexp.MustCompile(`^      operationId: (\S+)`)
)

// A test of package rest keeps api/openapi.yaml equal to the routes.
func TestEveryChangingOperationIsReported(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join("..", "api", "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	method, found := "", 0
	for line := range strings.Lines(string(doc)) {
		if m := methodLine.FindStringSubmatch(line); m != nil {
			method = m[1]
		}
		m := operationLine.FindStringSubmatch(line)
		if m == nil || method == "get" {
			continue
		}
		found++
		r, ok := operations[m[1]]
		r.check(t, method+" "+m[1], ok)
	}
	if found < 30 {
		t.Fatalf("found %d operations that change something, want more: the document has another form", found)
	}
}

// An event that nothing causes is a promise that nobody keeps.
func TestEveryKindOfEventHasACause(t *testing.T) {
	t.Parallel()
	caused := slices.Clone(byItself)
	for _, list := range []map[string]reports{audited, operations} {
		for _, r := range list {
			caused = append(caused, r.types...)
		}
	}
	for _, k := range event.Kinds {
		if !slices.Contains(caused, k.Type) {
			t.Errorf("%s: no audited action and no operation causes it", k.Type)
		}
	}
}
