package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/clilogin"
	"github.com/parley-dev/parley/internal/config"
)

// site is a running server for the tests that need one, its data folder, and the key of
// its first admin.
var site struct{ url, data, key string }

func TestMain(m *testing.M) {
	code, err := withServer(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withServer runs the tests in an environment without settings or logins of the user.
func withServer(m *testing.M) (int, error) {
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "PARLEY_") {
			_ = os.Unsetenv(name)
		}
	}
	dir, err := os.MkdirTemp("", "parley-cli-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv(clilogin.Variable, filepath.Join(dir, "credentials.json")); err != nil {
		return 0, err
	}
	cfg := config.Default()
	cfg.Listen, cfg.Data, cfg.RateLimit = "127.0.0.1:0", filepath.Join(dir, "data"), 0
	ctx, cancel := context.WithCancel(context.Background())
	greeting, printed := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := app.Run(ctx, cfg, app.Output{Stdout: printed, Stderr: io.Discard, JSON: true})
		_ = printed.CloseWithError(err)
		ended <- err
	}()
	defer func() {
		cancel()
		<-ended
	}()
	var hello struct{ Address, Key string }
	if err := json.NewDecoder(greeting).Decode(&hello); err != nil {
		return 0, fmt.Errorf("start the server: %w", err)
	}
	go func() { _, _ = io.Copy(io.Discard, greeting) }()
	site.url, site.data, site.key = hello.Address, cfg.Data, hello.Key
	return m.Run(), nil
}
