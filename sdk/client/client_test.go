package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/sdk/client"
)

func submission(title string) client.ProposalSubmission {
	return client.ProposalSubmission{Title: title, Category: client.Process, Problem: "P", SuggestedFix: "F"}
}

func TestNewRefusesMistakes(t *testing.T) {
	t.Parallel()
	for _, cfg := range []client.Config{
		{},
		{URL: "parley.example"},
		{URL: "ftp://x"},
		{URL: "http://"},
		{URL: "http://x", Key: "a\nb"},
	} {
		if c, err := client.New(cfg); err == nil || c != nil {
			t.Errorf("New(%+v) = %v, %v; want an error", cfg, c, err)
		}
	}
}

func TestAProposalFromSubmissionToFollowup(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), admin(t)
	p := must(c.Proposals.Submit(ctx, submission("Retry the deploy step")))
	if p.ID == "" || p.Status != client.ProposalOpen || p.SubmittedAt.IsZero() || p.MyVote != "" || p.FollowupID != "" {
		t.Errorf("submit = %+v, want an open proposal with id and time", p)
	}
	vote := must(c.Proposals.Vote(ctx, p.ID, client.Ballot{Vote: client.For, Comment: "Yes"}))
	if vote.VotesFor != 1 || vote.Replaced {
		t.Errorf("vote = %+v, want 1 for, nothing replaced", vote)
	}
	var res client.Response
	must(c.Proposals.Get(ctx, p.ID, client.WithResponse(&res)))
	if res.Status != 200 || res.ETag() == "" || res.RequestID() == "" || !strings.Contains(string(res.Body), p.ID) {
		t.Errorf("response = %+v, want 200 with an ETag, a request id and %s", res, p.ID)
	}
	p = must(c.Proposals.Update(ctx, p.ID, client.ProposalPatch{Title: new("Retry it"), Priority: new(client.High)},
		client.WithIfMatch(res.ETag())))
	if p.Title != "Retry it" || p.Priority != client.High || p.TextVersion != 2 {
		t.Errorf("edit = %+v, want Retry it, high, text version 2", p)
	}
	_, err := c.Proposals.Update(ctx, p.ID, client.ProposalPatch{Title: new("Stale")}, client.WithIfMatch(res.ETag()))
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusPreconditionFailed || refused.RequestID == "" {
		t.Errorf("stale edit: error = %v, want 412", err)
	}
	p = must(c.Proposals.Update(ctx, p.ID, client.ProposalPatch{
		Status:         new(client.ProposalApproved),
		ResolutionNote: new("Go"),
	}))
	if p.Status != client.ProposalApproved || p.FollowupID == "" || p.FollowupStatus != client.FollowupOpen {
		t.Errorf("approve = %+v, want approved with an open follow-up", p)
	}
	_, err = c.Proposals.Update(ctx, p.ID, client.ProposalPatch{
		Status:         new(client.ProposalRejected),
		ResolutionNote: new("No"),
	})
	if !errors.As(err, &refused) || refused.Status != http.StatusConflict ||
		!slices.Contains(refused.Allowed, "resolved") {
		t.Errorf("rejection after the approval: error = %v, want 409 that allows resolved", err)
	}
	f := must(c.Followups.Update(ctx, p.FollowupID,
		client.FollowupPatch{Status: new(client.FollowupDone), Assignee: new("user:admin")}))
	if f.ProposalID != p.ID || f.Status != client.FollowupDone || f.Assignee != "user:admin" {
		t.Errorf("follow-up = %+v, want it done by user:admin for %s", f, p.ID)
	}
	for f, err := range c.Followups.All(ctx, client.FollowupListParams{ProposalID: p.ID}) {
		if err != nil || f.ID != p.FollowupID {
			t.Errorf("list = %+v, %v; want %s", f, err, p.FollowupID)
		}
	}
	var kinds []string
	for h, err := range c.Proposals.AllHistory(ctx, p.ID) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, h.Kind)
	}
	if diff := cmp.Diff([]string{"submitted", "voted", "edited", "status_changed"}, kinds); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func TestFieldsOfARefusal(t *testing.T) {
	t.Parallel()
	c := admin(t)
	_, err := c.Proposals.Submit(t.Context(), client.ProposalSubmission{Title: "T", Category: "weather"})
	var refused *client.Error
	if !errors.As(err, &refused) {
		t.Fatalf("error = %v, want *client.Error", err)
	}
	var names []string
	for _, f := range refused.Fields {
		names = append(names, f.Name())
	}
	if diff := cmp.Diff([]string{"category", "problem", "suggested_fix"}, names); diff != "" ||
		refused.Code != "request.invalid" || refused.Status != 422 {
		t.Errorf("%+v (-want +got):\n%s", refused, diff)
	}
	_, err = c.Proposals.List(t.Context(), client.ProposalListParams{Limit: 1000})
	if !errors.As(err, &refused) || len(refused.Fields) != 1 || refused.Fields[0].Name() != "limit" {
		t.Errorf("error = %v, want one about limit", err)
	}
	stranger := newClient(t, client.Config{URL: server.URL, Key: "parley_nobody"})
	if _, err := stranger.Proposals.Get(t.Context(), "prop-1"); !errors.As(err, &refused) || refused.Status != 401 {
		t.Errorf("error = %v; want 401", err)
	}
}

// Every page is read, each item once, with any page size.
func TestIteratorsReadAllPages(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), admin(t)
	word := strings.ReplaceAll(unique("page"), "-", "")
	var want []string
	for i := range 5 {
		want = append(want, must(c.Proposals.Submit(ctx, submission(fmt.Sprint(word, " ", i)))).ID)
	}
	for limit := 1; limit <= 6; limit++ {
		var got []string
		for p, err := range c.Proposals.All(ctx, client.ProposalListParams{Query: word, Sort: "oldest", Limit: limit}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, p.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
	}
	for range c.Proposals.All(ctx, client.ProposalListParams{Query: word, Limit: 1}) {
		break // which must end the iteration
	}
	page := must(c.Proposals.List(ctx, client.ProposalListParams{Query: word, Limit: 2, Page: 2}))
	if len(page.Items) != 2 || page.Total != 5 || page.Number != 2 || page.Next == "" {
		t.Errorf("page 2 = %+v, want 2 items of 5 and a next page", page)
	}
	// A list with page numbers.
	id := must(c.Proposals.Submit(ctx, submission("Edited often"))).ID
	for i := range 4 {
		must(c.Proposals.Update(ctx, id, client.ProposalPatch{Title: new(fmt.Sprint("Edited ", i))}))
	}
	n := 0
	for h, err := range c.Proposals.AllHistory(ctx, id, client.WithQuery(map[string][]string{"limit": {"2"}})) {
		if n++; err != nil || h.Seq != n {
			t.Errorf("entry = %+v, %v; want number %d", h, err, n)
		}
	}
	if n != 5 {
		t.Errorf("%d entries of the history; want 5", n)
	}
	var last error
	for _, err := range c.Proposals.All(ctx, client.ProposalListParams{Status: "nonsense"}) {
		last = err
	}
	if last == nil {
		t.Error("got no error, want a refusal")
	}
}

// A write whose response got lost is repeated and done once.
func TestLostResponsesDoNothingTwice(t *testing.T) {
	t.Parallel()
	ctx, straight := t.Context(), admin(t)
	var lost atomic.Int32
	proxy := server.Proxy(t, func(res *http.Response) error {
		if res.Request.Method != http.MethodGet && lost.Add(1)%2 == 1 {
			return errors.New("it got lost")
		}
		return nil
	})
	c := newClient(t, client.Config{URL: proxy, Key: server.Key})
	word := strings.ReplaceAll(unique("lost"), "-", "")
	var res client.Response
	p := must(c.Proposals.Submit(ctx, submission(word), client.WithResponse(&res)))
	if !res.Replayed() {
		t.Error("second response is not a replay, want one")
	}
	if list := must(straight.Proposals.List(ctx, client.ProposalListParams{Query: word})); list.Total != 1 ||
		list.Items[0].ID != p.ID {
		t.Errorf("there are %d proposals; want 1", list.Total)
	}
	if v := must(c.Proposals.Vote(ctx, p.ID, client.Ballot{Vote: client.For})); v.Replaced || v.VotesFor != 1 {
		t.Errorf("second vote = %+v, want 1 for, nothing replaced", v)
	}
	k := must(c.OwnKeys.Create(ctx, client.OwnKeyCreation{Name: word, Scopes: []string{"svc:tasks:read"}}))
	if must(newClient(t, client.Config{URL: server.URL, Key: k.Secret}).Me(ctx)).Principal != "user:admin" {
		t.Error("the secret does not authenticate, want user:admin")
	}
	n := 0
	for key, err := range straight.OwnKeys.All(ctx, client.OwnKeyListParams{}) {
		if err != nil {
			t.Fatal(err)
		}
		if key.Name == word {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d keys were made; want 1", n)
	}
	sent := must(c.Agent("echo").Send(ctx, client.SendParams{
		ID: word, Message: client.NewMessage(client.Text("Hello")),
		Wait: 30 * time.Second,
	}))
	if sent.Status.State != client.TaskCompleted || sent.Text() != "Hello" {
		t.Errorf("task = %+v, want completed: Hello", sent)
	}
	if got := must(straight.Agent("echo").Get(ctx, word, client.GetParams{})); len(got.History) == 0 || got.ID != word {
		t.Errorf("task = %+v, want %s with its history", got, word)
	}
	if n := lost.Load(); n < 8 {
		t.Errorf("%d writes; want 8, of which half got lost", n)
	}
}

func TestAdministration(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), admin(t)
	id := unique("desk")
	m := must(c.Members.Create(ctx, client.MemberCreation{Kind: client.KindService, ID: id}))
	if m.Ref != "service:"+id || m.Name != id {
		t.Errorf("member = %+v, want service:%s", m, id)
	}
	k := must(c.Keys.Create(ctx, client.KeyCreation{
		Principal: m.Ref, Scopes: []string{"svc:tasks:read"},
		ExpiresAt: new(time.Now().Add(time.Hour)),
	}))
	next := must(c.Keys.Rotate(ctx, k.ID, client.KeyRotation{}))
	if next.Secret == "" || next.Replaces != k.ID || next.ExpiresAt.IsZero() {
		t.Errorf("rotated key = %+v, want a secret and an expiry, replacing %s", next, k.ID)
	}
	if got := must(c.Keys.Revoke(ctx, next.ID)); got.State != "revoked" || got.RevokedAt.IsZero() {
		t.Errorf("revoked key = %+v, want state revoked", got)
	}
	states := map[string]int{}
	for key, err := range c.Keys.All(ctx, client.KeyListParams{Principal: m.Ref, State: "all"}) {
		if err != nil {
			t.Fatal(err)
		}
		states[key.State]++
	}
	if states["revoked"] != 1 || len(states) == 0 {
		t.Errorf("states of the keys = %v, want one revoked", states)
	}
	if got := must(c.Members.Update(ctx, m.Ref, client.MemberPatch{Disabled: new(true)})); !got.Disabled {
		t.Errorf("member = %+v, want disabled", got)
	}
	inv := must(c.Invitations.Create(ctx, client.InvitationCreation{User: unique("ada")}))
	if inv.URL == "" || must(c.Invitations.Revoke(ctx, inv.ID)).State != "revoked" {
		t.Errorf("invitation = %+v, want a URL, then revoked", inv)
	}
	o := must(c.OAuthClients.Create(ctx, client.OAuthClientCreation{
		Name:         "Editor",
		RedirectURIs: []string{"http://127.0.0.1/done"}, Method: "client_secret_basic",
	}))
	if o.Secret == "" || must(c.OAuthClients.Rotate(ctx, o.ID,
		client.KeyRotation{OverlapSeconds: 60})).OldSecretExpiresAt.IsZero() {
		t.Errorf("client = %+v, want a secret that expires after the rotation", o)
	}
	if got := must(c.OAuthClients.Update(ctx, o.ID,
		client.OAuthClientPatch{Scopes: &[]string{"svc:tasks:read"}})); len(got.Scopes) != 1 {
		t.Errorf("client = %+v, want 1 scope", got)
	}
	must(c.OAuthClients.Delete(ctx, o.ID))
	var actions []string
	for e, err := range c.Audit.All(ctx, client.AuditListParams{Target: o.ID, From: time.Now().Add(-time.Hour)}) {
		if err != nil {
			t.Fatal(err)
		}
		actions = append(actions, e.Action)
	}
	if diff := cmp.Diff([]string{
		"oauth.client.delete", "oauth.client.update", "oauth.client.rotate",
		"oauth.client.create",
	}, actions); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
	if me := must(c.Me(ctx)); me.Org != "main" || me.Principal != "user:admin" || must(c.Org(ctx)) != "main" {
		t.Errorf("me = %+v, want user:admin of main", me)
	}
	if must(c.Health(ctx)).Status == "" || must(c.Ready(ctx)).Status == "" {
		t.Error("got no status of health and readiness, want both")
	}
}

func TestFrictionFilesAProposal(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), admin(t)
	report := client.FrictionReport{
		Fingerprint: unique("registry"), Title: "Slow", Category: client.Performance,
		Problem: "P", Evidence: "504",
	}
	threshold := must(c.Friction.Settings(ctx)).Threshold
	for i := range threshold {
		out := must(c.Friction.Report(ctx, report))
		if !out.Counted || out.Count != int64(i+1) || out.Filed != (i+1 == threshold) {
			t.Errorf("report %d = %+v, want count %d, filed at %d", i+1, out, i+1, threshold)
		}
	}
	f := must(c.Friction.Get(ctx, report.Fingerprint))
	if len(f.Evidence) != threshold || f.ProposalID == "" {
		t.Errorf("friction = %+v, want %d pieces of evidence and a proposal", f, threshold)
	}
	similar := must(c.Proposals.FindSimilar(ctx, client.SimilarParams{Title: "Slow"}))
	if len(similar) == 0 {
		t.Error("got no similar proposals, want some")
	}
	note := must(c.Notes.Create(ctx, client.SavedNoteCreation{Title: unique("note"), Text: "Not now."}))
	done := must(c.Proposals.Decide(ctx, client.ProposalDecisions{
		Status: client.ProposalRejected, ResolutionNote: note.Text,
		Items: []client.DecisionItem{
			{ID: f.ProposalID, TextVersion: 1},
			{ID: "prop-01k5xb7d2n8f4j6s0a9g3r5w1c", TextVersion: 1},
		},
	}))
	if done.Done != 1 || done.Failed != 1 || done.Results[1].Error == nil {
		t.Errorf("decisions = %+v, want 1 done and 1 failed", done)
	}
	must(c.Notes.Delete(ctx, note.ID))
	if counts := must(c.Proposals.Counts(ctx,
		client.ProposalCountParams{Fingerprint: report.Fingerprint})); counts.Counts[client.ProposalRejected] != 1 {
		t.Errorf("counts = %+v, want 1 rejected", counts)
	}
}
