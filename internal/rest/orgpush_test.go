package rest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

func TestAdminsSeePushesWithoutSecretsAndTakeUpDeadOnes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	tasks := w.tasks
	sent := w.send("ann", "t-1", "hello")
	caller, err := w.auth.Authenticate(ctx, w.key("acme", "user:ann", identity.A2AWrite))
	if err != nil {
		t.Fatal(err)
	}
	to, err := tasks.Reach(ctx, caller, "fixer")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		_, err := tasks.SetPush(ctx, to, "t-1", task.PushConfig{
			ID: fmt.Sprint("h/", i), URL: "https://hooks.example/secret-path?secret=1", Token: "secret-token", Scheme: "Bearer",
			Credentials: "secret-cred",
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	die := func(id string) {
		_, err := w.store.Deliveries().Update(ctx, delivery.Key{Org: "acme", Topic: sent.UID, ID: id},
			func(p delivery.Progress, clock time.Time) (delivery.Progress, error) {
				p.State, p.Attempts, p.LastError, p.LastAttemptAt, p.DueAt = delivery.Dead, 12, "the receiver answered 500", clock,
					time.Time{}
				return p, nil
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	die("h/0")
	die("h/2")
	ada, eve := w.admin("acme", "user:ada"), w.admin("globex", "user:eve")
	const all = "/api/v1/orgs/acme/a2a/push"
	one := "/api/v1/orgs/acme/a2a/tasks/" + sent.UID + "/push"

	var page PushConfigPage
	w.do(ada, "GET", all+"?state=dead&limit=1", "").want(200).into(&page)
	if len(page.Configs) != 1 || page.Configs[0].ID != "h/2" || page.NextCursor == nil {
		t.Fatalf("got %+v, want len(Configs) 1, page.Configs[0].ID h/2, NextCursor not nil", page)
	}
	got := page.Configs[0]
	if got.TaskUID != sent.UID || got.TaskID != "t-1" || got.Receiver != "https://hooks.example" || got.State != "dead" ||
		got.Attempts != 12 ||
		*got.LastError != "the receiver answered 500" || got.DueAt != nil || got.LastAttemptAt == nil ||
		got.LastEvent != 2 || got.Form != "1.0" {
		t.Errorf("%+v", got)
	}
	w.do(ada, "GET", all+"?state=dead&cursor="+strings.ReplaceAll(*page.NextCursor, "/", "%2F"), "").want(200).into(&page)
	if len(page.Configs) != 1 || page.Configs[0].ID != "h/0" || page.NextCursor != nil {
		t.Errorf("got %+v, want len(Configs) 1, page.Configs[0].ID h/0, NextCursor nil", page)
	}
	w.do(ada, "GET", all, "").want(200).into(&page)
	if len(page.Configs) != 3 {
		t.Errorf("got %+v, want len(Configs) 3", page)
	}
	var list PushConfigList
	answer := w.do(ada, "GET", one, "").want(200)
	answer.into(&list)
	if len(list.Configs) != 3 || list.Configs[0].ID != "h/0" || list.Configs[1].State != "active" ||
		strings.Contains(answer.Body, "secret") {
		t.Errorf("got %s, want len(Configs) 3, list.Configs[0].ID h/0, list.Configs[1].State active, without secret",
			answer.Body)
	}
	for _, bad := range []string{
		"?state=lost", "?cursor=x", "?cursor=A~b", "?cursor=a~", "?limit=0", "?limit=101",
		"?x=1",
	} {
		w.do(ada, "GET", all+bad, "").want(422)
	}
	var again PushConfig
	w.do(ada, "POST", one+"/h%2F0/retry", "").want(200).into(&again)
	if again.State != "active" || again.Attempts != 0 || again.DueAt == nil || again.TaskID != "t-1" {
		t.Errorf("got %+v, want State active, Attempts 0, DueAt not nil, TaskID t-1", again)
	}
	if p := w.do(ada, "POST", one+"/h%2F0/retry", "").want(409).problem(); p.Code != task.CodePushNotDead {
		t.Errorf("got %+v, want Code %v", p, task.CodePushNotDead)
	}
	w.do(ada, "POST", one+"/nope/retry", "").want(404)
	w.do(ada, "GET", "/api/v1/orgs/acme/a2a/tasks/"+newID("")+"/push", "").want(404)
	// An admin of another org finds nothing.
	w.do(eve, "GET", strings.Replace(one, "acme", "globex", 1), "").want(404)
	w.do(eve, "POST", strings.Replace(one, "acme", "globex", 1)+"/h%2F2/retry", "").want(404)
	w.do(eve, "GET", strings.Replace(all, "acme", "globex", 1), "").want(200).into(&page)
	if len(page.Configs) != 0 {
		t.Errorf("got %+v, want len(Configs) 0", page)
	}
}
