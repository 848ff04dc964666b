package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// plug is a client with an unusual way of handling its connections.
type plug struct {
	name  string
	http  string // version
	close bool   // asks the server to close the connection after the response
	half  bool   // closes its sending side right after the request
	keep  net.Conn
	from  *bufio.Reader
}

func plugs() []*plug {
	return []*plug{
		{name: "HTTP/1.0", http: "1.0"},                       // curl -0
		{name: "Connection: close", http: "1.1", close: true}, // Python's urllib
		{name: "half-close", http: "1.1", close: true, half: true},
		{name: "closes without a word", http: "1.1"}, // curl: keep-alive, and gone after the response
		{name: "keep-alive", http: "1.1", keep: new(net.TCPConn)},
	}
}

// request encodes a request of a worker.
func (h hand) request(p *plug, path string, body object) []byte {
	b, _ := json.Marshal(body)
	head := fmt.Sprintf("POST /api/v1/agents/%s%s HTTP/%s\r\nHost: parley\r\n"+
		"Authorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n",
		h.agent, path, p.http, h.key, len(b))
	if p.close {
		head += "Connection: close\r\n"
	}
	return append([]byte(head+"\r\n"), b...)
}

func dialServer(ctx context.Context, base string) (*net.TCPConn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// call sends a request and reads the response, not one byte more.
func (p *plug) call(ctx context.Context, h hand, path string, body object, into any) (int, error) {
	var conn net.Conn
	from := p.from
	if from == nil {
		c, err := dialServer(ctx, h.base)
		if err != nil {
			return 0, err
		}
		conn, from = c, bufio.NewReader(c)
		if p.keep != nil {
			p.keep, p.from = c, from
		} else {
			defer func() { _ = c.Close() }()
		}
	} else {
		conn = p.keep
	}
	if _, err := conn.Write(h.request(p, path, body)); err != nil {
		return 0, err
	}
	if p.half {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			return 0, err
		}
	}
	res, err := http.ReadResponse(from, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return res.StatusCode, err
	}
	return res.StatusCode, json.Unmarshal(b, into)
}

// workThrough claims and completes tasks until none are left.
func (p *plug) workThrough(ctx context.Context, h hand, left *atomic.Int64) error {
	for left.Load() > 0 {
		var got struct{ Tasks []work }
		status, err := p.call(ctx, h, "/claim", object{"worker": h.name, "max": 2, "wait_seconds": 1, "lease_seconds": 3600},
			&got)
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("claim: %d %v", status, err)
		}
		for _, w := range got.Tasks {
			var done progress
			// A heartbeat first, so that both kinds of report are used.
			for _, body := range []object{
				{"extend_seconds": 3600},
				{"status": "completed", "artifacts": []object{artifact("a", w.text())}},
			} {
				status, err := p.call(ctx, h, "/leases/"+w.Lease, body, &done)
				if err != nil || status != http.StatusOK {
					return fmt.Errorf("report %v: %d %+v %v", body, status, done, err)
				}
			}
			left.Add(-1)
		}
	}
	return nil
}

// TestDeliveredClaimsStayClaimed uses clients that close their connections in every way. Each task
// runs once, and no lease is stale.
func TestDeliveredClaimsStayClaimed(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		s := serve(t, e, "--rate-limit", "0")
		o := newTaskOrg(t, s, "deliver")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		for _, p := range plugs() {
			t.Run(p.name, func(t *testing.T) {
				const tasks = 100
				var left atomic.Int64
				left.Store(tasks)
				var wg sync.WaitGroup
				for i := range 3 {
					mine := *p
					wg.Go(func() {
						h := hand{s.base, o.worker, o.agent, fmt.Sprint("w", i)}
						if err := mine.workThrough(ctx, h, &left); err != nil {
							t.Error(err)
							left.Store(0) // lets the others end
						}
					})
				}
				id := func(i int) string { return fmt.Sprintf("%s-%d", p.name, i) }
				for i := range tasks { // while workers wait, and while they do not
					must(o.peer().send(ctx, o.agent, id(i), "hello"))(t)
				}
				wg.Wait()
				if t.Failed() {
					return // not all tasks will ever end
				}
				for i := range tasks {
					checkExecutedOnce(ctx, t, o.peer(), o.agent, id(i))
				}
			})
		}
	})
}

// checkExecutedOnce reads the log of a task: one worker claimed it and completed it.
func checkExecutedOnce(ctx context.Context, t *testing.T, p peer, agent, id string) {
	t.Helper()
	events := must(p.whole(ctx, agent, id))(t)
	given, last := 0, ""
	for _, e := range events {
		if e.state == "working" {
			given++
		}
		if e.state != "" {
			last = e.state
		}
	}
	if given != 1 || last != "completed" {
		t.Errorf("task %s was claimed %d times and is %s, want 1 and completed", id, given, last)
	}
}

// TestNothingIsLostWithAClientThatIsGone sends tasks right after the waiting workers are gone.
// Their leases would last an hour, so a task that they keep is lost.
func TestNothingIsLostWithAClientThatIsGone(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		s := serve(t, e, "--rate-limit", "0")
		o := newTaskOrg(t, s, "gone")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		h := hand{s.base, o.worker, o.agent, "steady"}
		for _, c := range []struct {
			name  string
			leave func(*net.TCPConn) error
		}{
			{"closed", (*net.TCPConn).Close},
			{"reset", func(c *net.TCPConn) error {
				_ = c.SetLinger(0)
				return c.Close()
			}},
		} {
			for round := range 10 {
				const gone = 5
				var conns []*net.TCPConn
				for i := range gone {
					conn := must(dialServer(ctx, s.base))(t)
					body := object{"worker": fmt.Sprint("gone-", i), "wait_seconds": 60, "lease_seconds": 3600}
					must(conn.Write(h.request(&plug{http: "1.1"}, "/claim", body)))(t)
					conns = append(conns, conn)
				}
				for _, conn := range conns {
					if err := c.leave(conn); err != nil {
						t.Fatal(err)
					}
				}
				id := fmt.Sprintf("%s-%d", c.name, round)
				must(o.peer().send(ctx, o.agent, id, "hello"))(t)
				var got []work
				for len(got) == 0 {
					got = must(h.claim(ctx, 1, 5, 60))(t)
				}
				if got[0].Attempt != 1 {
					t.Errorf("%s: attempt = %d, want 1", id, got[0].Attempt)
				}
				must2(h.report(ctx, got[0].Lease, object{"status": "completed"}))(t)
				if v := must(o.peer().get(ctx, o.agent, id))(t); v.Status.State != "completed" {
					t.Errorf("%s: state = %s, want completed", id, v.Status.State)
				}
			}
		}
	})
}

func must2[A, B any](a A, b B, err error) func(*testing.T) (A, B) {
	return func(t *testing.T) (A, B) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a, b
	}
}

// TestAReportIsStoredThoughItsClientIsGone closes the connection, or its sending side, right after
// the report, without waiting for the response.
func TestAReportIsStoredThoughItsClientIsGone(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		s := serve(t, e, "--rate-limit", "0")
		o := newTaskOrg(t, s, "report")
		ctx := t.Context()
		h := hand{s.base, o.worker, o.agent, "w"}
		for i := range 20 {
			id := fmt.Sprint("t-", i)
			must(o.peer().send(ctx, o.agent, id, "hello"))(t)
			lease := must(h.claim(ctx, 1, 5, 3600))(t)[0].Lease
			conn := must(dialServer(ctx, s.base))(t)
			must(conn.Write(h.request(&plug{http: "1.1"}, "/leases/"+lease, object{"status": "completed"})))(t)
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			eventually(t, soon, "the report of "+id+" is stored", func() bool {
				return must(o.peer().get(ctx, o.agent, id))(t).Status.State == "completed"
			})
		}
	})
}
