package event

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// order is the golden list of all types: the store keeps their positions. Add a new type at the
// end, here too; never move or remove one.
var order = []Type{
	"proposal.drafted", "proposal.submitted", "proposal.edited", "proposal.voted", "proposal.vote_withdrawn",
	"proposal.opened", "proposal.approved", "proposal.rejected", "proposal.reopened", "proposal.resolved",
	"followup.created", "followup.assigned", "followup.started", "followup.done", "followup.canceled",
	"followup.reopened", "friction.reported", "friction.filed", "task.created", "task.input_required",
	"task.completed", "task.failed", "task.canceled", "task.rejected", "agent.registered", "agent.changed",
	"agent.disabled", "agent.presence", "member.created", "member.changed", "member.disabled", "member.enabled",
	"key.created", "key.rotated", "key.revoked", "client.created", "client.changed", "client.deleted",
	"invitation.created", "invitation.revoked", "invitation.accepted", "webhook.created", "webhook.changed",
	"webhook.deleted", "webhook.failed", "agent.enabled",
	FollowupEdited, MemberErased,
}

func TestThePositionsOfTypesNeverChange(t *testing.T) {
	t.Parallel()
	var got []Type
	seen := map[Type]bool{}
	for _, k := range Kinds {
		got = append(got, k.Type)
		if seen[k.Type] {
			t.Errorf("%s is listed twice", k.Type)
		}
		seen[k.Type] = true
		if !strings.HasPrefix(string(k.Type), k.About+".") || k.Seen == "" || k.Text == "" || k.Version < 1 {
			t.Errorf("%+v is incomplete, or about another kind of record", k)
		}
	}
	if diff := cmp.Diff(order, got[:min(len(order), len(got))]); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
	if len(got) != len(order) {
		t.Errorf("there are %d types and %d in this test; add new ones to its end", len(got), len(order))
	}
	if len(Kinds) > 63 {
		t.Errorf("%d types; a set of types has room for 63 in a signed column", len(Kinds))
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	var all Types
	some := all.With(ProposalVoted).With(AgentEnabled)
	for _, k := range Kinds {
		if want := k.Type == ProposalVoted || k.Type == AgentEnabled; some.Has(k.Type) != want {
			t.Errorf("the set has %s: %v, want %v", k.Type, !want, want)
		}
		if !all.Has(k.Type) {
			t.Errorf("the zero set does not have %s", k.Type)
		}
	}
}

// A newer version may have written types that this one does not know.
func TestUnknownTypesAreInNoSet(t *testing.T) {
	t.Parallel()
	const unknown Type = "proposal.eaten"
	var all Types
	if unknown.Bit() != 0 || !all.Has(unknown) || all.With(ProposalDrafted).Has(unknown) {
		t.Errorf("bit %b, in the zero set %v, in one of drafts %v; want 0, true, false",
			unknown.Bit(), all.Has(unknown), all.With(ProposalDrafted).Has(unknown))
	}
}

func TestWhoSeesWhat(t *testing.T) {
	t.Parallel()
	ada, bob := Viewer{Ref: "user:ada"}, Viewer{Ref: "user:bob"}
	admin := Viewer{Ref: "user:root", Admin: true}
	webhook := Viewer{Admin: true, NoDrafts: true}
	for _, c := range []struct {
		scope                    Scope
		ada, bob, admin, webhook bool
	}{
		{Members, true, true, true, true},
		{Admins, false, false, true, true},
		{Draft("user:ada"), true, false, true, false},
		{Only("user:ada"), true, false, true, true},
		{Only("user:ad"), false, false, true, true},
		{"unknown", false, false, true, true},
	} {
		got := [...]bool{ada.Sees(c.scope), bob.Sees(c.scope), admin.Sees(c.scope), webhook.Sees(c.scope)}
		if want := [...]bool{c.ada, c.bob, c.admin, c.webhook}; got != want {
			t.Errorf("%q: ada, bob, admin, webhook see it: %v, want %v", c.scope, got, want)
		}
	}
}
