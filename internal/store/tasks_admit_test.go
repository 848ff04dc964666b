package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/task"
)

// PostgreSQL sends all rows of a result, also those that nobody reads. What a reader does not admit
// must not be asked for.
func TestWhatIsNotAdmittedIsNotSent(t *testing.T) {
	t.Parallel()
	direct := pgtest.URL(t)
	proxy := pgtest.NewProxy(t, direct)
	s, err := Open(t.Context(), Options{URL: proxy.URL(t, direct)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })

	const tasks, size = 5, 1 << 20
	ann := identity.Principal{Org: "a", Kind: identity.User, ID: "ann"}
	for i := range tasks {
		at := time.Now().UTC().Truncate(time.Microsecond)
		m := said(strings.Repeat("x", size)).Message
		row := task.Task{
			Org: "a", UID: fmt.Sprint("t", i), Agent: "bot", ID: fmt.Sprint("x", i), Sender: ann,
			State: task.Submitted, Seq: 1, StatusSeq: 1, Size: size, CreatedAt: at, UpdatedAt: at,
		}
		events := []task.Event{{Seq: 1, At: at, Kind: task.StatusEvent, State: task.Submitted, Message: m}}
		if err := s.Tasks().Insert(t.Context(), task.Change{Task: row, Events: events}, 0); err != nil {
			t.Fatal(err)
		}
	}
	key := task.Key{Org: "a", Agent: "bot", Sender: ann, ID: "x0"}
	if !s.Tasks().Taken(t.Context(), key) {
		t.Errorf("%+v is free, want it taken", key)
	}
	sent := func(read func()) int64 {
		before := proxy.Received()
		read()
		return proxy.Received() - before
	}

	refused := errors.New("no")
	all := task.Content{History: true, Artifacts: true, Admit: func(row task.Task) error {
		if row.Size != size {
			t.Errorf("size for admission = %d, want %d", row.Size, size)
		}
		return refused
	}}
	if got := sent(func() {
		if _, err := s.Tasks().ByUID(t.Context(), "a", "t0", all); !errors.Is(err, refused) {
			t.Errorf("read without admission = %v, want %v", err, refused)
		}
	}); got > size/4 {
		t.Errorf("a refused read of %d bytes received %d, want almost none", size, got)
	}
	all.Admit = func(task.Task) error { return nil }
	if got := sent(func() {
		read, err := s.Tasks().ByUID(t.Context(), "a", "t0", all)
		if err != nil || read.Message == nil || len(read.Message.Parts[0].Text) != size {
			t.Errorf("admitted read = %+v, %v, want the whole message", read.State, err)
		}
	}); got < size {
		t.Errorf("an admitted read of %d bytes received %d, want all", size, got)
	}

	for _, tt := range []struct{ bytes, tasks int64 }{{2*size + size/2, 2}, {size / 2, 1}} {
		got := sent(func() {
			page, err := s.Tasks().Own(t.Context(), dispatch.OwnFilter{
				Key: task.Key{Org: "a", Agent: "bot", Sender: ann}, Limit: tasks, Bytes: tt.bytes,
			})
			if err != nil || int64(len(page.Tasks)) != tt.tasks || !page.More || page.Total != tasks {
				t.Errorf("page of %d bytes = %d tasks of %d, more: %t, %v; want %d of %d and more",
					tt.bytes, len(page.Tasks), page.Total, page.More, err, tt.tasks, tasks)
			}
		})
		if got > tt.tasks*size+size/2 {
			t.Errorf("a page of %d tasks received %d bytes, want about %d", tt.tasks, got, tt.tasks*size)
		}
	}
}
