package a2a

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// play is the life of a task of bot after its claim: progress, artifacts in chunks, a question, and
// the end.
func (w *world) play(secret string, p dispatch.Post, id string) {
	w.tb.Helper()
	lease := w.claim(p)
	w.report(p, lease, task.Report{State: task.Working, Message: says("begun")})
	w.report(p, lease, task.Report{Artifacts: []task.ArtifactUpdate{artifact("a", "1"), artifact("b", "x")}})
	w.report(p, lease, task.Report{State: task.InputRequired, Message: says("Which?")})
	w.rpc(secret, "bot", "tasks/send", strings.Replace(hello(id), `"hello"`, `"that"`, 1)).state("working")
	lease = w.claim(p)
	more := artifact("a", "2")
	more.Append, more.LastChunk = true, true
	w.report(p, lease, task.Report{Artifacts: []task.ArtifactUpdate{more}, State: task.Completed})
}

func resubscribe(id string) string { return envelope("tasks/resubscribe", `{"id":"`+id+`"}`) }

func TestAStreamResumedAnywhereIsTheUncutOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	p := w.post("bot")
	w.rpc(ada, "bot", "tasks/send", hello("t-1")).state("submitted")
	w.play(ada, p, "t-1")
	a := w.do(ada, "POST", "/a2a/bot", resubscribe("t-1"))
	golden(t, "stream_life.txt", stable(a.Body))
	uncut := parseEvents(a.Body)
	if len(uncut) != 10 {
		t.Fatalf("events = %d, want 10", len(uncut))
	}
	for i := range uncut {
		rest := parseEvents(w.do(ada, "POST", "/a2a/bot", resubscribe("t-1"), "Last-Event-ID", uncut[i].ID).Body)
		if diff := cmp.Diff(uncut[i+1:], rest, equalEmpty); diff != "" {
			t.Errorf("after %s: %s", uncut[i].ID, diff)
		}
	}
	// A turn has a number too, though streams omit it; resuming after it loses and repeats nothing.
	resumed := w.do(ada, "POST", "/a2a/bot", resubscribe("t-1"), "Last-Event-ID", "1")
	if got := parseEvents(resumed.Body); !cmp.Equal(got, uncut) {
		t.Errorf("after a turn (-want +got):\n%s", cmp.Diff(uncut, got))
	}
	// The same message again returns the same stream again.
	repeated := w.rpc(ada, "bot", "tasks/sendSubscribe", strings.Replace(hello("t-1"), `"hello"`, `"that"`, 1))
	if got := parseEvents(repeated.Body); !cmp.Equal(got, uncut) {
		t.Errorf("repeated send (-want +got):\n%s", cmp.Diff(uncut, got))
	}
}

var equalEmpty = cmp.Transformer("list", func(l []event) []event { return append([]event{}, l...) })

// A stream that is cut while the task continues.
func TestALiveStreamCutAtEveryEventIsWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serve()
	ada := w.caller("user:ada")
	p := w.post("bot")
	var want []event
	const events = 10
	for cut := range events + 1 {
		id := fmt.Sprintf("cut-%d", cut)
		ctx, cancel := context.WithCancel(t.Context())
		res := open(t, ctx, url+"/a2a/bot", ada, envelope("tasks/sendSubscribe", hello(id)), "")
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.play(ada, p, id)
		}()
		var got []event
		last := ""
		in := bufio.NewReader(res.Body)
		for body := in; ; {
			e, err := nextEvent(body)
			if err == nil {
				got = append(got, e)
				last = e.ID
			}
			if len(got) == cut+1 { // cut here, once
				cancel()
			}
			if strings.Contains(e.Data, `"state":"completed"`) {
				break
			}
			if err != nil || len(got) == cut+1 || strings.Contains(e.Data, `"final":true`) {
				res := open(t, t.Context(), url+"/a2a/bot", ada, resubscribe(id), last)
				body = bufio.NewReader(res.Body)
			}
		}
		<-done
		for i := range got {
			// Whether a pause ends the stream depends on the time of reading.
			data := strings.ReplaceAll(stable(got[i].Data), id, "ID")
			got[i].Data = strings.Replace(data, `"final":true`, `"final":false`, 1)
		}
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) != events {
			t.Errorf("cut after %d: events = %d, want %d: %s", cut, len(got), events, diff)
		}
		cancel()
	}
}

// nextEvent reads the next event.
func nextEvent(r *bufio.Reader) (event, error) {
	var block strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return event{}, err
		}
		block.WriteString(line)
		if line == "\n" {
			if list := parseEvents(block.String()); len(list) == 1 {
				return list[0], nil
			}
			block.Reset()
		}
	}
}

func TestAQuestionEndsTheStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	p := w.post("bot")
	done := make(chan *answer)
	go func() { done <- w.rpc(ada, "bot", "tasks/sendSubscribe", hello("t-1")) }()
	w.report(p, w.claim(p), task.Report{State: task.InputRequired, Message: says("Which?")})
	live := <-done
	if !strings.Contains(live.Body, `"state":"input-required"`) || strings.Count(live.Body, `"final":true`) != 1 ||
		strings.Contains(live.Body, "retry:") {
		t.Errorf("got %s, want one final event with input-required", live.Body)
	}
	if a := w.do(ada, "POST", "/a2a/bot", resubscribe("t-1")); a.Body != live.Body {
		t.Errorf("resubscribed (-want +got):\n%s", cmp.Diff(live.Body, a.Body))
	}
	go func() {
		done <- w.rpc(ada, "bot", "tasks/sendSubscribe", strings.Replace(hello("t-1"), `"hello"`, `"that"`, 1))
	}()
	w.report(p, w.claim(p), task.Report{State: task.Completed})
	further := parseEvents((<-done).Body)
	if len(further) != 3 || !strings.Contains(further[0].Data, `"working"`) ||
		!strings.Contains(further[2].Data, `"completed"`) {
		t.Errorf("events of a further turn = %v, want 3 from working to completed", further)
	}
}

func TestAStreamOfWhatIsOverEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	w.rpc(ada, "echo", "tasks/send", hello("t-1"), "Prefer", "wait=10").state("completed")
	for _, after := range []string{"5", "6", "4611686018427387903"} {
		a := w.rpc(ada, "echo", "tasks/resubscribe", `{"id":"t-1"}`, "Last-Event-ID", after)
		if a.Status != 200 || len(parseEvents(a.Body)) != 0 {
			t.Errorf("after %s: got %d %s, want 200 without events", after, a.Status, a.Body)
		}
	}
	for _, after := range []string{"-1", "x", "1.0", "9223372036854775808", "+1"} {
		w.rpc(ada, "echo", "tasks/resubscribe", `{"id":"t-1"}`, "Last-Event-ID", after).fails(200, codeInvalidParams)
	}
}

func TestHeadersOfAStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.rpc(w.caller("user:ada"), "echo", "tasks/sendSubscribe", hello("t-1"))
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no",
	} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

func fast(_ *httpx.Options, o *Options) {
	o.KeepAlive, o.Recheck = 10*time.Millisecond, 10*time.Millisecond
}

func TestASilentStreamSendsComments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fast)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	res := open(t, ctx, w.serve()+"/a2a/bot", w.caller("user:ada"), envelope("tasks/sendSubscribe", hello("t-1")), "")
	in := bufio.NewReader(res.Body)
	for comments := 0; comments < 3; {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, ":") {
			comments++
		}
	}
}

// The server's write timeout is not for streams.
func TestAStreamOutlivesTheWriteTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fast)
	srv := httptest.NewUnstartedServer(w.handler)
	const timeout = 200 * time.Millisecond
	srv.Config.WriteTimeout = timeout
	srv.Start()
	ctx, cancel := context.WithCancel(t.Context())
	defer srv.Close()
	defer cancel()
	begun := time.Now()
	res := open(t, ctx, srv.URL+"/a2a/bot", w.caller("user:ada"), envelope("tasks/sendSubscribe", hello("t-1")), "")
	in := bufio.NewReader(res.Body)
	for time.Since(begun) < 3*timeout {
		if _, err := in.ReadString('\n'); err != nil {
			t.Fatalf("after %s: err = %v, want nil", time.Since(begun), err)
		}
	}
}

// endOf reads a stream to its end, and returns what follows the first event.
func endOf(t *testing.T, res *http.Response, begun func()) string {
	t.Helper()
	in := bufio.NewReader(res.Body)
	if _, err := nextEvent(in); err != nil {
		t.Fatal(err)
	}
	begun()
	rest, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(rest)
}

func TestAStreamEndsWithItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fast)
	url := w.serve()
	ctx := t.Context()
	secret, key := w.orgs.Key("acme", "user:ada", "svc:a2a:write")
	res := open(t, ctx, url+"/a2a/bot", secret, envelope("tasks/sendSubscribe", hello("t-1")), "")
	end := endOf(t, res, func() {
		if err := w.operator.RevokeKey(ctx, "acme", key); err != nil {
			t.Error(err)
		}
		if err := w.auth.Refresh(ctx); err != nil { // as the server does every second
			t.Error(err)
		}
	})
	if strings.Contains(end, "data:") {
		t.Errorf("got %s, want no more events", end)
	}

	p := identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"}
	_, secret, err := w.operator.CreateKey(ctx, identity.KeyRequest{
		Principal: p, Scopes: []string{"svc:a2a:write"}, ExpiresAt: time.Now().Add(500 * time.Millisecond),
	})
	if err != nil {
		t.Fatal(err)
	}
	endOf(t, open(t, ctx, url+"/a2a/bot", secret, envelope("tasks/sendSubscribe", hello("t-2")), ""), func() {})

	// A stream also ends when its agent is disabled.
	yes := true
	body := envelope("tasks/sendSubscribe", hello("t-3"))
	endOf(t, open(t, ctx, url+"/a2a/bot", w.caller("user:ada"), body, ""), func() {
		w.orgs.EditAgent("acme", "bot", agentEdit(nil, &yes))
	})
}

func TestStreamsAndWaitsEndWhenTheServerStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serve()
	ada := w.caller("user:ada")
	waiting := make(chan *answer, 1)
	res := open(t, t.Context(), url+"/a2a/bot", ada, envelope("tasks/sendSubscribe", hello("t-1")), "")
	go func() { waiting <- w.rpc(ada, "bot", "tasks/send", hello("t-2"), "Prefer", "wait=60") }()
	end := endOf(t, res, w.tasks.Stop)
	if end != "retry: 1000\n\n" {
		t.Errorf("got %q, want a retry hint", end)
	}
	(<-waiting).state("submitted")
}

// One reader receives nothing; the others must not be affected.
func TestAStalledReaderDelaysNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serve()
	ada := w.caller("user:ada")
	p := w.post("bot")
	w.rpc(ada, "bot", "tasks/send", hello("t-1")).state("submitted")
	lease := w.claim(p)
	for range 3 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		body := resubscribe("t-1")
		fmt.Fprintf(conn, "POST /a2a/bot HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
			"Content-Length: %d\r\n\r\n%s", ada, len(body), body)
	}
	res := open(t, t.Context(), url+"/a2a/bot", ada, resubscribe("t-1"), "")
	const pieces, size = 14, 1 << 20 // more than the buffers between two sockets hold
	go func() {
		for i := range pieces {
			chunk := artifact(fmt.Sprint(i), strings.Repeat("x", size))
			w.report(p, lease, task.Report{Artifacts: []task.ArtifactUpdate{chunk}})
		}
		w.report(p, lease, task.Report{State: task.Completed})
	}()
	if n := len(parseEvents(readAll(t, res.Body))); n != pieces+3 {
		t.Errorf("events = %d, want %d", n, pieces+3)
	}
}
