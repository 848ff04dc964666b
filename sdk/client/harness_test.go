package client_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/sdk/client"
)

// The server that all tests and examples use, and the key of its first admin.
var server struct{ url, key string }

func TestMain(m *testing.M) {
	code, err := withServer(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withServer(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "parley-client-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	cfg := config.Default()
	cfg.Listen, cfg.Data, cfg.RateLimit = "127.0.0.1:0", filepath.Join(dir, "data"), 0
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	greeting, printed := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := app.Run(ctx, cfg, app.Output{Stdout: printed, Stderr: io.Discard, JSON: true})
		_ = printed.CloseWithError(err)
		ended <- err
	}()
	var hello struct{ Address, Key string }
	if err := json.NewDecoder(greeting).Decode(&hello); err != nil {
		return 0, fmt.Errorf("start the server: %w", err)
	}
	go func() { _, _ = io.Copy(io.Discard, greeting) }()
	server.url, server.key = hello.Address, hello.Key
	code := m.Run()
	cancel()
	return code, <-ended
}

// quick are retries that a test need not wait for.
var quick = client.Retry{MinWait: time.Millisecond, MaxWait: 10 * time.Millisecond}

// admin returns a client with all scopes.
func admin(t testing.TB) *client.Client {
	return newClient(t, client.Config{URL: server.url, Key: server.key})
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
	must(c.Agents.Create(ctx, client.AgentCreation{ID: id, Name: id, Skills: []client.AgentSkill{client.SkillTag("test")}}))
	k := must(c.Keys.Create(ctx, client.KeyCreation{Principal: "agent:" + id, Scopes: []string{"svc:a2a:serve"}}))
	return newClient(t, client.Config{URL: server.url, Key: k.Secret}).Worker(id)
}

// claim takes the one task that waits.
func claim(ctx context.Context, w *client.WorkerClient) client.ClaimedTask {
	got := must(w.Claim(ctx, client.ClaimRequest{Max: 1, WaitSeconds: 20, LeaseSeconds: 600}))
	if len(got.Tasks) != 1 {
		panic(fmt.Sprintf("claimed %d tasks; want 1", len(got.Tasks)))
	}
	return got.Tasks[0]
}

// newProxy stands before the server. change may return an error, which breaks the
// connection instead of the response, or replace the body.
func newProxy(t testing.TB, change func(*http.Response) error) string {
	t.Helper()
	target, err := url.Parse(server.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: change,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:       log.New(io.Discard, "", 0),
	})
	t.Cleanup(proxy.Close)
	return proxy.URL
}
