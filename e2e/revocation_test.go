package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/parley-dev/parley/internal/pgtest"
)

// TestCredentialsEndOnEveryNode revokes each kind of credential on one node right after it worked
// on the other. Soon no endpoint of either node accepts it, and its streams have ended.
func TestCredentialsEndOnEveryNode(t *testing.T) {
	t.Parallel()
	e := engine{"postgres", []string{"--database", pgtest.URL(t)}}
	nodes := []*server{serve(t, e, calm...), serve(t, e, calm...)}
	a := nodes[0]
	o := newTaskOrg(t, a, "ends")
	a.cli(t, "user", "create", "root", "--org", o.org, "--admin")
	root := a.newKey(t, o.org, "user:root", "svc:admin:admin")
	admin := func(method, path string, body, into any) {
		t.Helper()
		if code, err := api(t.Context(), method, a.base+"/api/v1/orgs/"+o.org+path, root, body, into); err != nil ||
			code != http.StatusOK {
			t.Fatalf("%s %s: got %d, %v; want 200", method, path, code, err)
		}
	}
	client := a.registered(t, callback)
	scopes := []string{"svc:tasks:read", "svc:tasks:write", "svc:a2a:write"}

	// One after the other: revoking one credential must not clear the other node's cache for the
	// next.
	for _, round := range []struct {
		name string
		// take creates the credentials of a person, and the function that ends them.
		take func(t *testing.T, ada *person, user string) (credentials map[string]string, end func())
		// left reports whether the person stays signed in.
		left bool
	}{
		{"key", func(t *testing.T, _ *person, user string) (map[string]string, func()) {
			secret := a.newKey(t, o.org, user, scopes...)
			return map[string]string{"the key": secret},
				func() { admin(http.MethodDelete, "/keys/"+a.keyID(t, o.org, secret), nil, nil) }
		}, true},
		{"access token", func(t *testing.T, ada *person, _ string) (map[string]string, func()) {
			tok := ada.token(t, client, "", scopes...)
			return map[string]string{"the token": tok.AccessToken}, func() { a.revokeToken(t, client, tok.AccessToken) }
		}, true},
		{"grant", func(t *testing.T, ada *person, _ string) (map[string]string, func()) {
			tok := ada.token(t, client, "", scopes...)
			return map[string]string{"the grant's token": tok.AccessToken}, func() { a.revokeToken(t, client, tok.RefreshToken) }
		}, true},
		{"member", func(t *testing.T, ada *person, user string) (map[string]string, func()) {
			tok := ada.token(t, client, "", scopes...)
			return map[string]string{
					"the member's key":   a.newKey(t, o.org, user, scopes...),
					"the member's token": tok.AccessToken,
				},
				func() { admin(http.MethodPatch, "/members/"+user, object{"disabled": true}, nil) }
		}, false},
	} {
		t.Run(round.name, func(t *testing.T) {
			user := "ada-" + strings.ReplaceAll(round.name, " ", "-")
			ada := a.signIn(t, o.org, user)
			credentials, end := round.take(t, ada, "user:"+user)
			task := "task-" + user
			var doors []door
			ended := make(chan error, 4*len(nodes)) // buffered: a failed test reads none of them
			streams := 0
			for what, credential := range credentials {
				for i, n := range nodes {
					v := &visitor{peer{n.base, credential}, o.agent, task, dialGRPC(t, n)}
					if streams == 0 {
						must(v.send(t.Context(), v.agent, task, "go"))(t)
					}
					at := fmt.Sprintf("%s on node %d", what, i)
					doors = append(doors, v.doors(t, at, n, o.org)...)
					for _, follow := range []func(context.Context, chan<- error, string) error{v.followSSE, v.followGRPC} {
						if err := follow(t.Context(), ended, at); err != nil {
							t.Fatal(err)
						}
						streams++
					}
				}
			}
			session := []door{}
			for i, n := range nodes {
				session = append(session, ada.doors(t, fmt.Sprintf("the session on node %d", i), n, o.org)...)
			}
			if !round.left {
				doors = append(doors, session...)
			}
			for _, d := range append(doors, session...) {
				if got := d.try(); got != open {
					t.Fatalf("%s: got %s, want %s", d.name, got, open)
				}
			}

			start := time.Now()
			end()
			for _, d := range doors {
				// A refused credential is not tried again: failures are counted.
				eventually(t, soon, d.name+" is shut", func() bool {
					got := d.try()
					if got != open && got != shut {
						t.Fatalf("%s: got %s, want %s or %s", d.name, got, open, shut)
					}
					return got == shut
				})
			}
			t.Logf("%d doors are shut after %v", len(doors), time.Since(start).Round(time.Millisecond))
			late := time.After(soon)
			for range streams {
				select {
				case err := <-ended:
					if err != nil {
						t.Error(err)
					}
				case <-late:
					t.Fatalf("a stream still runs after %v, want it ended", soon)
				}
			}
			t.Logf("%d streams have ended after %v", streams, time.Since(start).Round(time.Millisecond))
			if round.left {
				for _, d := range session {
					if got := d.try(); got != open {
						t.Errorf("%s: got %s, want %s: only the %s ended", d.name, got, open, round.name)
					}
				}
			}
		})
	}
}

// door is one endpoint, and whether it accepts a credential.
type door struct {
	name string
	try  func() string // open, shut, or another outcome
}

const open, shut = "open", "shut"

// opened translates an HTTP status.
func opened(code int) string {
	switch code {
	case http.StatusOK:
		return open
	case http.StatusUnauthorized:
		return shut
	}
	return fmt.Sprint("status ", code)
}

// visitor calls one node with one credential.
type visitor struct {
	peer
	agent, task string
	grpc        a2apb.A2AServiceClient
}

func dialGRPC(t *testing.T, s *server) a2apb.A2AServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(strings.TrimPrefix(s.base, "http://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return a2apb.NewA2AServiceClient(conn)
}

// bearing returns a context for gRPC calls with a credential.
func bearing(ctx context.Context, credential string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+credential)
}

func (v *visitor) doors(t *testing.T, at string, n *server, org string) []door {
	return []door{
		{"REST: " + at, func() string {
			code, err := api(t.Context(), http.MethodGet, n.base+"/api/v1/orgs/"+org+"/proposals", v.key, nil, nil)
			if err != nil {
				return err.Error()
			}
			return opened(code)
		}},
		{"A2A: " + at, func() string {
			answer, err := v.call(t.Context(), v.agent, "tasks/get", object{"id": v.task})
			if err != nil {
				return err.Error()
			}
			return opened(answer.status)
		}},
		{"MCP: " + at, func() string { return opened(n.mcp(t, v.key)) }},
		{"gRPC: " + at, func() string {
			_, err := v.grpc.GetTask(bearing(t.Context(), v.key), &a2apb.GetTaskRequest{Tenant: v.agent, Id: v.task})
			switch status.Code(err) {
			case codes.OK:
				return open
			case codes.Unauthenticated:
				return shut
			}
			return err.Error()
		}},
	}
}

// doors returns the endpoints that accept a session.
func (p *person) doors(t *testing.T, at string, n *server, org string) []door {
	return []door{
		{"pages: " + at, func() string {
			res, _ := p.do(t, http.MethodGet, n.base+"/account", nil)
			switch res.Request.URL.Path {
			case "/account":
				return open
			case "/login":
				return shut
			}
			return res.Request.URL.String()
		}},
		{"REST: " + at, func() string {
			code, _ := p.call(t, http.MethodGet, n.base+"/api/v1/orgs/"+org+"/proposals", "")
			return opened(code)
		}},
	}
}

// followSSE opens a stream and reports how it ends; an error unless it ends with EOF.
func (v *visitor) followSSE(ctx context.Context, ended chan<- error, at string) error {
	f, err := v.resubscribe(ctx, v.agent, v.task, 0)
	if err != nil {
		return err
	}
	if _, err := f.next(); err != nil {
		return err
	}
	go func() {
		_, err := f.next()
		if !errors.Is(err, io.EOF) {
			ended <- fmt.Errorf("the stream of %s goes on with %w", at, err)
			return
		}
		ended <- nil
	}()
	return nil
}

// followGRPC is the same over gRPC, where the end has a status.
func (v *visitor) followGRPC(ctx context.Context, ended chan<- error, at string) error {
	stream, err := v.grpc.SubscribeToTask(bearing(ctx, v.key), &a2apb.SubscribeToTaskRequest{Tenant: v.agent, Id: v.task})
	if err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	go func() {
		event, err := stream.Recv()
		if status.Code(err) != codes.Unauthenticated {
			ended <- fmt.Errorf("the gRPC stream of %s goes on with %v, %w", at, event, err)
			return
		}
		ended <- nil
	}()
	return nil
}
