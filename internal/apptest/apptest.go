// Package apptest runs a server inside a test program, for the tests of the SDKs. Those tests
// need real responses, but neither a separate process nor the command line; package servertest
// runs the built binary.
package apptest

import (
	"context"
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
	"testing"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/config"
)

// Server is a running server on an empty SQLite store.
type Server struct {
	URL   string
	Key   string // of the first admin, user:admin of the org main
	Store config.Store
}

// Main starts the server, runs the tests, and stops it. It returns the exit code for TestMain.
// Nothing is logged, so that examples print only their output.
func (s *Server) Main(m *testing.M) int {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	code, err := s.run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func (s *Server) run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "parley-test-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	cfg := config.Default()
	cfg.Listen, cfg.Data, cfg.RateLimit = "127.0.0.1:0", filepath.Join(dir, "data"), 0
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stdout, printed := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := app.Run(ctx, cfg, app.Output{Stdout: printed, Stderr: io.Discard, JSON: true})
		_ = printed.CloseWithError(err)
		ended <- err
	}()
	var started struct{ Address, Key string }
	if err := json.NewDecoder(stdout).Decode(&started); err != nil {
		return 0, fmt.Errorf("start the server: %w", err)
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	s.URL, s.Key, s.Store = started.Address, started.Key, cfg.Store
	code := m.Run()
	cancel()
	return code, <-ended
}

// Proxy starts a proxy in front of the server and returns its URL. change may replace a response
// body, or return an error, which breaks the connection.
func (s *Server) Proxy(t testing.TB, change func(*http.Response) error) string {
	t.Helper()
	target, err := url.Parse(s.URL)
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
