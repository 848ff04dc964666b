package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/web"
)

// testSettings make passwords cheap to hash: nearly every test hashes one.
var testSettings = settings{now: Now, cost: web.Cost{Passes: 1, Memory: 64}}

func testConfig(t *testing.T) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.Data = "127.0.0.1:0", orgtest.EmptyDir(t)
	cfg.ShutdownTimeout = 10 * time.Second
	return cfg
}

func startServer(t *testing.T, cfg config.Config) *Server {
	t.Helper()
	s, err := newServer(t.Context(), cfg, slog.New(slog.DiscardHandler), testSettings)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	return s
}

func get(t *testing.T, url, key string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestServerStartsStopsAndStartsAgain(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	s := startServer(t, cfg)
	if s.First() == nil {
		t.Fatal("nothing was created in the empty store")
	}
	key := s.First().Secret
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json", "/docs"} {
		if code, _ := get(t, s.URL()+path, ""); code != http.StatusOK {
			t.Errorf("GET %s = %d; want 200", path, code)
		}
	}
	if code, body := get(t, s.URL()+"/api/v1/orgs/main/proposals", key); code != http.StatusOK {
		t.Errorf("list = %d %s", code, body)
	}
	_, metrics := get(t, s.URL()+"/metrics", "")
	for _, name := range []string{"parley_build_info", "parley_store_batch_writes", "parley_store_connections", "go_goroutines"} {
		if !strings.Contains(metrics, name) {
			t.Errorf("/metrics has no %s", name)
		}
	}

	if _, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "another parley server") {
		t.Errorf("a second server on the folder: %v", err)
	}
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}

	s = startServer(t, cfg)
	if s.First() != nil {
		t.Error("the second start created things again")
	}
	if code, _ := get(t, s.URL()+"/api/v1/orgs/main/proposals", key); code != http.StatusOK {
		t.Errorf("the first key got %d after a restart", code)
	}
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	op, err := OpenOperator(t.Context(), cfg.Store, false)
	if err != nil {
		t.Fatal(err)
	}
	defer op.Close()
	keys, err := op.Identity.Keys(t.Context(), "main")
	if err != nil || len(keys) != 1 || keys[0].LastUsedAt.IsZero() {
		t.Errorf("keys after use: %+v, %v; want one with its last use", keys, err)
	}
}

func TestTakenAddressTouchesNoData(t *testing.T) {
	t.Parallel()
	first := startServer(t, testConfig(t))
	defer first.Shutdown()
	cfg := testConfig(t)
	cfg.Listen, cfg.Data = first.listener.Addr().String(), cfg.Data+"/new"
	_, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "already in use") {
		t.Fatalf("error = %v", err)
	}
	if _, err := OpenOperator(t.Context(), cfg.Store, false); err == nil {
		t.Error("the data folder was made")
	}
}

func TestFirstKeyGoesToStdoutAndNeverToTheLog(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		cfg := testConfig(t)
		cfg.LogFormat, cfg.LogLevel, cfg.AccessLog = format, "debug", true
		ctx, cancel := context.WithCancel(t.Context())
		var stdout, stderr bytes.Buffer
		ran := make(chan error, 1)
		pr, pw := io.Pipe()
		go func() {
			ran <- Run(ctx, cfg, Output{Stdout: io.MultiWriter(&stdout, pw), Stderr: &stderr, JSON: true})
		}()
		var g greeting
		if err := json.NewDecoder(pr).Decode(&g); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, pr) }()
		if code, _ := get(t, g.Address+"/api/v1/orgs/"+g.Org+"/proposals?q="+g.Key, g.Key); code != http.StatusOK {
			t.Errorf("the printed key got %d", code)
		}
		cancel()
		if err := <-ran; err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(stdout.String(), "parley_") || strings.Contains(stderr.String(), "parley_") {
			t.Errorf("%s: stdout must have the key and the log must not:\n%s", format, stderr.String())
		}
	}
}
