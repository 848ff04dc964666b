package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// testPushConfigs: only the sender of a task can set, replace, list and delete its
// configurations, within limits.
func testPushConfigs(w *world) {
	ctx := w.Context()
	_, err := w.operator.CreateOrg(ctx, "acme", "")
	w.must(err)
	c := w.call("acme", "user:ann", "bob")
	_, err = w.tasks.SetPush(ctx, c, "t1", hook("h"))
	if w.want(err, errs.Conflict); errs.As(err).Code != task.CodePushUnsupported {
		w.Errorf("code with pushes turned off = %s, want %s", errs.As(err).Code, task.CodePushUnsupported)
	}
	w.tasks = dispatch.New(withPush(w.options()))
	t := w.send(c, "t1", "x")
	list, err := w.tasks.ListPush(ctx, c, "t1")
	if w.must(err); list == nil || len(list) != 0 {
		w.Errorf("configurations = %#v, want an empty list", list)
	}
	for _, k := range []struct {
		p  task.PushConfig
		at string
	}{
		{task.PushConfig{URL: ""}, "url"},
		{task.PushConfig{URL: "/relative"}, "url"},
		{task.PushConfig{URL: "ftp://a.example/"}, "url"},
		{task.PushConfig{URL: "https://user@a.example/"}, "url"},
		{task.PushConfig{URL: "https://a.example/#x"}, "url"},
		{task.PushConfig{URL: "https://a.example/\n"}, "url"},
		{task.PushConfig{URL: "https://forbidden.example/"}, "url"},
		{task.PushConfig{URL: "https://a.example/" + strings.Repeat("x", 2048)}, "url"},
		{task.PushConfig{URL: "https://a.example/", ID: "a\tb"}, "id"},
		{task.PushConfig{URL: "https://a.example/", Token: "a\r\nb"}, "token"},
		{task.PushConfig{URL: "https://a.example/", Token: strings.Repeat("x", 4097)}, "token"},
		{task.PushConfig{URL: "https://a.example/", Scheme: "two words"}, "scheme"},
		{task.PushConfig{URL: "https://a.example/", Scheme: strings.Repeat("x", 65)}, "scheme"},
		{task.PushConfig{URL: "https://a.example/", Credentials: "x"}, "scheme"},
		{task.PushConfig{URL: "https://a.example/", Scheme: "Bearer", Credentials: "a\x7f"}, "credentials"},
	} {
		_, err := w.tasks.SetPush(ctx, c, "t1", k.p)
		if w.want(err, errs.Invalid); errs.As(err).Fields[0].Path.String() != k.at {
			w.Errorf("%+v: invalid fields = %+v, want %s", k.p, errs.As(err).Fields, k.at)
		}
		_, err = w.tasks.Send(ctx, c, dispatch.SendRequest{ID: "bad", Message: says("x"), Push: &k.p}, 0)
		w.want(err, errs.Invalid)
	}
	full := task.PushConfig{
		URL: "https://a.example/x?y=1", Token: "tok", Scheme: "Bearer", Credentials: "cred", Form: task.PushV03,
	}
	made, err := w.tasks.SetPush(ctx, c, "t1", full)
	w.must(err)
	full.ID, full.TaskID, full.CreatedAt = made.ID, "t1", made.CreatedAt
	got, err := w.tasks.GetPush(ctx, c, "t1", made.ID)
	if w.must(err); !strings.HasPrefix(made.ID, "push-") || cmp.Diff(full, got) != "" || cmp.Diff(full, made) != "" {
		w.Errorf("created %+v, read %+v, want %+v", made, got, full)
	}
	full.URL, full.Form = "https://b.example/", task.PushV1
	again, err := w.tasks.SetPush(ctx, c, "t1", full)
	if w.must(err); cmp.Diff(full, again) != "" {
		w.Errorf("replaced = %+v, want %+v", again, full)
	}
	for i := range task.MaxPushes - 1 {
		_, err := w.tasks.SetPush(ctx, c, "t1", hook(fmt.Sprint("a", i)))
		w.must(err)
	}
	_, err = w.tasks.SetPush(ctx, c, "t1", hook("one too many"))
	w.want(err, errs.Invalid)
	_, err = w.tasks.SetPush(ctx, c, "t1", full) // it exists already
	w.must(err)
	list, err = w.tasks.ListPush(ctx, c, "t1")
	if w.must(err); len(list) != task.MaxPushes || list[0].ID != "a0" || list[9].ID != made.ID {
		w.Errorf("configurations = %+v, want %d from a0 to %s", list, task.MaxPushes, made.ID)
	}
	w.must(w.tasks.DeletePush(ctx, c, "t1", made.ID))
	w.must(w.tasks.DeletePush(ctx, c, "t1", made.ID))
	_, err = w.tasks.GetPush(ctx, c, "t1", made.ID)
	w.want(err, errs.NotFound)
	w.want(w.tasks.DeletePush(ctx, c, "t2", "a0"), errs.NotFound)

	// Other callers do not see them.
	for _, other := range []dispatch.Call{
		w.call("acme", "user:eve", "bob"), w.call("other", "user:ann", "bob"), w.call("acme", "user:ann", "cy"),
	} {
		_, err := w.tasks.SetPush(ctx, other, "t1", hook("mine"))
		w.want(err, errs.NotFound)
		_, err = w.tasks.GetPush(ctx, other, "t1", "a0")
		w.want(err, errs.NotFound)
		_, err = w.tasks.ListPush(ctx, other, "t1")
		w.want(err, errs.NotFound)
		w.want(w.tasks.DeletePush(ctx, other, "t1", "a0"), errs.NotFound)
	}
	foreign := w.access("other", "user:root")
	_, err = w.tasks.OrgTaskPushes(ctx, w.as(foreign, identity.ReadTasks), t.UID)
	w.want(err, errs.NotFound)
	seen, err := w.tasks.OrgPushes(ctx, w.as(foreign, identity.ReadTasks), dispatch.PushFilter{Limit: 10})
	if err != nil || len(seen) != 0 {
		w.Errorf("configurations seen by another org = %+v, %v, want none", seen, err)
	}
	seen, err = w.tasks.OrgTaskPushes(ctx, w.as(w.access("acme", "user:root"), identity.ReadTasks), t.UID)
	if err != nil || len(seen) != task.MaxPushes-1 {
		w.Errorf("configurations seen by the org = %+v, %v, want %d", seen, err, task.MaxPushes-1)
	}
	_, err = w.access("acme", "user:ann", memberScopes...).As(identity.ReadTasks)
	w.want(err, errs.Forbidden)

	// They are deleted with their task.
	_, err = w.tasks.Cancel(ctx, c, "t1", task.All)
	w.must(err)
	_, err = w.store.Tasks().Sweep(ctx, w.now().Add(time.Hour), 100)
	w.must(err)
	if list, err := w.store.Pushes().OfTask(ctx, "acme", t.UID); err != nil || len(list) != 0 {
		w.Errorf("configurations of a deleted task = %d, %v, want 0", len(list), err)
	}
	if p, err := w.store.Deliveries().Claim(ctx, wideRoom()); err != nil || len(p) != 0 {
		w.Errorf("claimed deliveries of a deleted task = %d, %v, want 0", len(p), err)
	}
}

// setter is an agent that gets a push configuration while it works.
type setter func(dispatch.Assignment) error

func (f setter) Run(ctx context.Context, a dispatch.Assignment, w *dispatch.Work) error {
	if err := f(a); err != nil {
		return err
	}
	_, err := w.Report(ctx, task.Report{State: task.Completed})
	return err
}

// testPushInProcess: an agent in this process writes its result without reading the row again. A
// configuration that was set meanwhile still gets the result.
func testPushInProcess(w *world) {
	r := &receiver{}
	o := withPush(w.options())
	o.Deliveries = w.deliveries(r, delivery.Retry{})
	s := dispatch.New(o)
	w.tasks = s
	c := w.call("acme", "user:ann", "local")
	s.Host(dispatch.Target{ID: "local", Org: "acme", Public: true}, setter(func(a dispatch.Assignment) error {
		if a.Task.ID != "meanwhile" {
			return nil
		}
		_, err := s.SetPush(w.Context(), c, a.Task.ID, hook("meanwhile"))
		return err
	}), dispatch.Hosting{})
	w.background(s.Run, o.Deliveries.Run)
	sent := w.sendPushed(c, "along", hook("along"))
	w.until("the task with a configuration is pushed", func() bool {
		return w.push(sent.UID, "along").State == delivery.Done
	})
	w.wantSeqs(r, "along", 2, 3, 4)
	sent = w.send(c, "meanwhile", "x")
	w.until("the task is over", func() bool {
		t, err := s.Get(w.Context(), c, "meanwhile", task.All)
		w.must(err)
		return t.State == task.Completed
	})
	w.until("its end is pushed", func() bool { return w.push(sent.UID, "meanwhile").State == delivery.Done })
	w.wantSeqs(r, "meanwhile", 4)
}

// testSecrets: the first caller decides the value.
func testSecrets(w *world) {
	for n := range 20 {
		name := fmt.Sprint("key-", n)
		var mu sync.Mutex
		got := map[string]bool{}
		race(w, 8, func(i int) error {
			v, err := w.store.Secret(w.Context(), name, fmt.Sprint("fresh-", i))
			mu.Lock()
			defer mu.Unlock()
			got[v] = true
			return err
		})
		again, err := w.store.Secret(w.Context(), name, "later")
		if w.must(err); len(got) != 1 || !got[again] || again == "" {
			w.Fatalf("%s: values = %v, then %q, want one value", name, got, again)
		}
	}
	if v, err := w.store.Secret(w.Context(), "other", "x"); err != nil || v != "x" {
		w.Errorf("other secret = %q, %v, want x", v, err)
	}
}

// testKeptSecrets: a secret that is kept replaces the one before, and can be removed.
func testKeptSecrets(w *world) {
	ctx := w.Context()
	if v, err := w.store.KeptSecret(ctx, "cert"); !errors.Is(err, errs.ErrNotFound) {
		w.Errorf("before: %q, %v, want not found", v, err)
	}
	for _, want := range []string{"first", "second"} {
		w.must(w.store.KeepSecret(ctx, "cert", want))
		if v, err := w.store.KeptSecret(ctx, "cert"); err != nil || v != want {
			w.Errorf("kept secret = %q, %v, want %q", v, err, want)
		}
	}
	w.must(w.store.KeepSecret(ctx, "certificate", "other"))
	for range 2 { // removing nothing is fine
		w.must(w.store.ForgetSecret(ctx, "cert"))
	}
	if v, err := w.store.KeptSecret(ctx, "cert"); !errors.Is(err, errs.ErrNotFound) {
		w.Errorf("after: %q, %v, want not found", v, err)
	}
	if v, err := w.store.KeptSecret(ctx, "certificate"); err != nil || v != "other" {
		w.Errorf("the other secret = %q, %v, want it untouched", v, err)
	}
}
