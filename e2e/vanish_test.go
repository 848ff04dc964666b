//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// network is a network namespace that a link connects to this one.
type network struct {
	name string
	link string // its end here
	here string // IP address of this end
}

// newNetwork creates one. It needs root.
func newNetwork(t *testing.T) *network {
	t.Helper()
	if os.Getuid() != 0 {
		const why = "this test makes a network namespace, which takes the rights of root; run it as root"
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	pid := os.Getpid()
	n := &network{
		name: fmt.Sprintf("parley-%d", pid), link: fmt.Sprintf("pv%d", pid),
		here: fmt.Sprintf("10.213.%d.%d", pid/64%256, pid%64*4+1),
	}
	there := fmt.Sprintf("10.213.%d.%d/30", pid/64%256, pid%64*4+2)
	inside := []string{"netns", "exec", n.name, "ip"}
	n.ip(t, "netns", "add", n.name)
	t.Cleanup(func() {
		_ = exec.Command("ip", "link", "del", n.link).Run() // with its other end
		_ = exec.Command("ip", "netns", "del", n.name).Run()
	})
	n.ip(t, "link", "add", n.link, "type", "veth", "peer", "name", "far", "netns", n.name)
	n.ip(t, "addr", "add", n.here+"/30", "dev", n.link)
	n.ip(t, "link", "set", n.link, "up")
	n.ip(t, append(inside, "addr", "add", there, "dev", "far")...)
	n.ip(t, append(inside, "link", "set", "far", "up")...)
	return n
}

func (n *network) ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v %s", strings.Join(args, " "), err, out)
	}
}

// dial connects from within the namespace. A socket stays in the namespace of the
// thread that made it.
func (n *network) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		ns, err := os.Open("/run/netns/" + n.name)
		if err == nil {
			defer func() { _ = ns.Close() }()
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			done <- result{nil, err}
			return
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp4", addr)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// TestVanishedClientsAreNoticed cuts the network under waiting clients: streams over HTTP/1.1,
// HTTP/2 and gRPC, and a claim. No packet tells the server that they are gone.
func TestVanishedClientsAreNoticed(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	s := serve(t, engine{"sqlite", []string{"--data", t.TempDir()}}, "--listen", "0.0.0.0:0")
	o := newTaskOrg(t, s, "far")
	must(o.peer().send(t.Context(), o.agent, "watched", "hello"))(t)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.base, "http://"))
	base := "http://" + net.JoinHostPort(n.here, port)

	one := &http.Client{Transport: &http.Transport{DialContext: n.dial}}
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	two := &http.Client{Transport: &http.Transport{DialContext: n.dial, Protocols: p}}
	open := func(c *http.Client, path, key string, body object) {
		b, _ := json.Marshal(body)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, base+path, strings.NewReader(string(b)))
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		go func() {
			if res, err := c.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
		}()
	}
	stream := envelope("tasks/resubscribe", object{"id": "watched"})
	open(one, "/a2a/"+o.agent, o.sender, stream)
	open(two, "/a2a/"+o.agent, o.sender, stream)
	conn, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(n.here, port),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return n.dial(ctx, "tcp", addr) }))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	events, err := a2apb.NewA2AServiceClient(conn).SubscribeToTask(bearing(t.Context(), o.sender),
		&a2apb.SubscribeToTaskRequest{Tenant: o.agent, Id: "watched"})
	if err == nil {
		_, err = events.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "three streams are open", func() bool { return s.metric(t, "parley_http_streams") == 3 })
	o.hand().take(t, 3600) // so that the claim finds nothing
	open(one, "/api/v1/agents/"+o.agent+"/claim", o.worker, object{"wait_seconds": 60})
	eventually(t, soon, "a claim waits", func() bool { return s.metric(t, "parley_http_waits") == 1 })

	n.ip(t, "link", "set", n.link, "down")
	start := time.Now()
	for _, name := range []string{"parley_http_waits", "parley_http_streams"} {
		eventually(t, 75*time.Second-time.Since(start), name+" is 0 after the clients vanished",
			func() bool { return s.metric(t, name) == 0 })
		t.Logf("%s: 0 after %v", name, time.Since(start).Round(time.Second))
	}
}
