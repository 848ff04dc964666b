package client_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/apptest"
	"github.com/parley-dev/parley/sdk/client"
)

// The server that all tests and examples use.
var server apptest.Server

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// quick retries without noticeable waits.
var quick = client.Retry{MinWait: time.Millisecond, MaxWait: 10 * time.Millisecond}

// admin returns a client with all scopes.
func admin(t testing.TB) *client.Client {
	return newClient(t, client.Config{URL: server.URL, Key: server.Key})
}

func newClient(t testing.TB, cfg client.Config) *client.Client {
	t.Helper()
	if cfg.Retry.Attempts == 0 {
		cfg.Retry = quick
	}
	c, err := client.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// must returns v; err must be nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// unique returns a name that no other test has, also with go test -count.
func unique(prefix string) string { return prefix + "-" + strings.ToLower(rand.Text()[:8]) }

// newAgent registers an agent and returns a client for its worker.
func newAgent(t testing.TB, c *client.Client, id string) *client.WorkerClient {
	t.Helper()
	ctx := t.Context()
	must(c.Agents.Create(ctx, client.AgentCreation{
		ID: id, Name: id,
		Skills: []client.AgentSkill{client.SkillTag("test")},
	}))
	k := must(c.Keys.Create(ctx, client.KeyCreation{Principal: "agent:" + id, Scopes: []string{"svc:a2a:serve"}}))
	return newClient(t, client.Config{URL: server.URL, Key: k.Secret}).Worker(id)
}

// claim claims the one waiting task.
func claim(ctx context.Context, w *client.WorkerClient) client.ClaimedTask {
	got := must(w.Claim(ctx, client.ClaimRequest{Max: 1, WaitSeconds: 20, LeaseSeconds: 600}))
	if len(got.Tasks) != 1 {
		panic(fmt.Sprintf("claimed %d tasks; want 1", len(got.Tasks)))
	}
	return got.Tasks[0]
}
