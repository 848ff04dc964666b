package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
)

// testTaskContent: no more of a task is read than was requested.
func testTaskContent(w *world) {
	ctx := w.Context()
	c, p := w.call("other", "service:crm", "bob"), w.post("bob")
	large := strings.Repeat("<x>\n", 20<<10) // JSON could escape it to six times the length
	w.send(c, "t1", large)
	a := w.claim(p)
	for _, r := range []task.Report{
		{
			State: task.Working, Message: ptr(agentSays("half")),
			Artifacts: []task.ArtifactUpdate{artifact("a", large, false)},
		},
		{Artifacts: []task.ArtifactUpdate{artifact("a", "more", true), artifact("b", large, false)}},
	} {
		_, err := w.tasks.Report(ctx, p, a.Lease.Token, r)
		w.must(err)
	}
	uid := a.Task.UID
	for _, tt := range []struct {
		content            task.Content
		history, artifacts int
	}{
		{task.Content{}, 0, 0},
		{task.Content{History: true}, 2, 0},
		{task.Content{Artifacts: true}, 0, 2},
		{task.All, 2, 2},
	} {
		got, err := w.store.Tasks().ByUID(ctx, "acme", uid, tt.content)
		w.must(err)
		if len(got.History) != tt.history || len(got.Artifacts) != tt.artifacts {
			w.Errorf("%+v: %d messages and %d artifacts, want %d and %d",
				tt.content, len(got.History), len(got.Artifacts), tt.history, tt.artifacts)
		}
		if got.State != task.Working || got.Message == nil || got.Message.Parts[0].Text != "half" || got.Seq != 7 {
			w.Errorf("%+v: status = %s %+v after %d events, want the worker's after 7",
				tt.content, got.State, got.Message, got.Seq)
		}
	}
	whole, err := w.store.Tasks().ByUID(ctx, "acme", uid, task.All)
	w.must(err)
	if got := whole.Artifacts[0].Parts; len(got) != 2 || got[0].Text != large || got[1].Text != "more" {
		w.Errorf("appended artifact has %d parts, want 2", len(got))
	}
	if _, err := w.store.Tasks().ByUID(ctx, "other", uid, task.Content{}); err == nil {
		w.Error("ByUID from another org = nil, want an error")
	}

	refused := errors.New("no")
	if _, err := w.store.Tasks().ByUID(ctx, "acme", uid, task.Content{History: true, Admit: func(t task.Task) error {
		if t.Size < 3*int64(len(large)) || t.Size > 5*int64(len(large)) {
			w.Errorf("size for admission = %d, want about %d", t.Size, 3*len(large))
		}
		return refused
	}}); !errors.Is(err, refused) {
		w.Errorf("read without admission = %v, want %v", err, refused)
	}
}

// testLogPages: a log is read in small pages, whose size is known before.
func testLogPages(w *world) {
	ctx := w.Context()
	c, p := w.call("other", "service:crm", "bob"), w.post("bob")
	w.send(c, "t1", "hello")
	a := w.claim(p)
	for i := range 40 {
		n := 10 << 10
		if i%10 == 5 {
			n = 200 << 10
		}
		_, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{Artifacts: []task.ArtifactUpdate{
			artifact(fmt.Sprint(i), strings.Repeat("x", n), false), artifact("small", "x", true),
		}})
		w.must(err)
	}
	var seqs []int64
	after := int64(0)
	for {
		size, err := w.store.Tasks().EventsSize(ctx, "acme", a.Task.UID, after, 64)
		w.must(err)
		events, err := w.store.Tasks().Events(ctx, "acme", a.Task.UID, after, 64)
		w.must(err)
		if len(events) == 0 {
			break
		}
		read := int64(0)
		for _, e := range events {
			seqs = append(seqs, e.Seq)
			after = e.Seq
			if e.Artifact != nil {
				read += int64(len(e.Artifact.Parts[0].Text))
			}
		}
		if read > 64<<10 && len(events) > 1 || read > size || size > 2*read+8<<10 {
			w.Errorf("page of %d events has %d bytes, announced %d, want at most 64 KiB", len(events), read, size)
		}
	}
	for i, seq := range seqs {
		if seq != int64(i+1) {
			w.Fatalf("event = %d, want %d", seq, i+1)
		}
	}
	if len(seqs) != 83 {
		w.Errorf("%d events, want 83", len(seqs))
	}
	if n, err := w.store.Tasks().EventsSize(ctx, "other", a.Task.UID, 0, 64); err != nil || n != 0 {
		w.Errorf("log seen by another org has %d bytes, %v, want 0", n, err)
	}
}

// testClaimBytes: the bytes of one claim are limited.
func testClaimBytes(w *world) {
	ctx := w.Context()
	c, p := w.call("other", "service:crm", "bob"), w.post("bob")
	text := strings.Repeat("x", 2500<<10)
	for i := range 4 {
		w.send(c, fmt.Sprint("t", i), text)
	}
	claim := func() (ids []string) {
		got, err := w.tasks.Claim(ctx, p, dispatch.ClaimRequest{Worker: "w1", Max: 10, Lease: time.Minute, Capacity: 10})
		w.must(err)
		for _, a := range got.Assignments {
			ids = append(ids, a.Task.ID)
		}
		return ids
	}
	for i := range 4 {
		if got, want := claim(), []string{fmt.Sprint("t", i)}; !cmp.Equal(got, want) {
			w.Errorf("claim %d has %v, want %v: two of them are too large for one response", i, got, want)
		}
	}
	for range 3 {
		w.send(c, w.newID("s"), "small")
	}
	if got := claim(); len(got) != 3 {
		w.Errorf("claim of small tasks = %v, want 3", got)
	}
	for i := range 6 {
		_, err := w.tasks.Message(ctx, c, says(strings.Repeat("x", 200<<10)+fmt.Sprint(i)))
		w.must(err)
	}
	first, err := w.store.Mailbox().List(ctx, "acme", "bob", dispatch.Batch{Most: 100, Bytes: 500 << 10})
	w.must(err)
	all, err := w.store.Mailbox().List(ctx, "acme", "bob", dispatch.Batch{Most: 100})
	w.must(err)
	if len(first) != 2 || len(all) != 6 || first[0].ID != all[0].ID {
		w.Errorf("%d of %d messages fit into 500 KiB, want 2 of 6", len(first), len(all))
	}
}

// testOwnPages: the pages of a sender's tasks have a limited size.
func testOwnPages(w *world) {
	ctx := w.Context()
	c, p := w.call("other", "service:crm", "bob"), w.post("bob")
	text := strings.Repeat("x", 1500<<10)
	for i := range 5 {
		w.send(c, fmt.Sprint("t", i), "do")
		_, err := w.tasks.Report(ctx, p, w.claim(p).Lease.Token, task.Report{
			State: task.Completed, Message: ptr(agentSays(text + fmt.Sprint(i))),
			Artifacts: []task.ArtifactUpdate{artifact("a", text, false)},
		})
		w.must(err)
	}
	seen, pages := map[string]bool{}, 0
	for token := ""; ; pages++ {
		page, err := w.tasks.Own(ctx, c, dispatch.OwnRequest{Cursor: token})
		w.must(err)
		for _, t := range page.Tasks {
			if seen[t.ID] || t.Message == nil || len(t.Message.Parts[0].Text) <= len(text) ||
				len(t.History)+len(t.Artifacts) > 0 {
				w.Errorf("%s = %s with %d messages and %d artifacts, want it once, with its status only",
					t.ID, t.State, len(t.History), len(t.Artifacts))
			}
			seen[t.ID] = true
		}
		if page.Total != 5 || len(page.Tasks) == 0 || len(page.Tasks) > 2 {
			w.Fatalf("page has %d of %d tasks, want 1 or 2 of 5: statuses of 1.5 MiB fit twice", len(page.Tasks), page.Total)
		}
		if token = page.Next; token == "" {
			break
		}
	}
	if len(seen) != 5 || pages != 2 {
		w.Errorf("%d tasks on %d pages, want 5 on 3", len(seen), pages+1)
	}
}
