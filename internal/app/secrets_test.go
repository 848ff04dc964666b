package app

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/secret"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/webhook"
)

// hidden are secrets that a test has given to a server, by what they are.
type hidden map[string]string

// add adds a secret, and the bytes that it encodes.
func (h hidden) add(what, value string) {
	h[what] = value
	for _, prefix := range []string{"whsec_", "whsk_"} {
		if text, ok := strings.CutPrefix(value, prefix); ok {
			b, _ := base64.StdEncoding.DecodeString(text)
			h[what+", decoded"] = string(b)
		}
	}
}

// found returns what of the secrets is in some bytes.
func (h hidden) found(in []byte) (out []string) {
	for what, value := range h {
		if bytes.Contains(in, []byte(value)) {
			out = append(out, what)
		}
	}
	return out
}

// hideSecrets gives a server secrets of every kind, and returns them with the id of a webhook.
func hideSecrets(t *testing.T, s *Server) (h hidden, hook string) {
	t.Helper()
	ctx := t.Context()
	h = hidden{}
	caller, err := s.auth.Authenticate(ctx, s.First().Secret)
	if err != nil {
		t.Fatal(err)
	}
	h.add("the first key", s.First().Secret)
	a, err := identity.Authorize(caller, caller.Org, identity.ManageWebhooks)
	if err != nil {
		t.Fatal(err)
	}
	w, first, err := s.webhooks.Create(ctx, a, webhook.Creation{
		URL: "https://hooks.example/", State: webhook.Paused, Types: []event.Type{event.WebhookChanged},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, second, err := s.webhooks.Rotate(ctx, a, w.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	h.add("the old secret of a webhook", first)
	h.add("the secret of a webhook", second)
	_, keys, err := s.store.Webhooks().Secrets(ctx, w.Org, w.ID)
	if err != nil {
		t.Fatal(err)
	}
	h.add("the private key of a webhook", webhook.FormatPrivateKey(keys.Private))

	call, err := s.tasks.Reach(ctx, caller, "echo")
	if err != nil {
		t.Fatal(err)
	}
	h.add("the token of a push", "push-token-5f0c1a7e")
	h.add("the credentials of a push", "push-credentials-93b1d4c2")
	if _, err := s.tasks.Send(ctx, call, dispatch.SendRequest{
		ID: "hides", Message: task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: "hello"}}},
		Push: &task.PushConfig{
			ID: "hook", URL: "https://hooks.example/", Form: task.PushV1, Token: h["the token of a push"],
			Scheme: "Bearer", Credentials: h["the credentials of a push"],
		},
	}, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.store.KeepSecret(ctx, certPrefix+"parley.example", "-----BEGIN acme-key-41d7aa90"); err != nil {
		t.Fatal(err)
	}
	h.add("the key of a certificate", "acme-key-41d7aa90")
	for _, name := range []string{"push_signing_key", "card_signing_key", "card_cursor_key"} {
		value, err := s.store.KeptSecret(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		h.add(name, value)
	}
	for path, body := range map[string]string{
		"keys":        `{"principal":"user:admin","scopes":["svc:tasks:read"],"name":"hidden"}`,
		"clients":     `{"name":"hidden","redirect_uris":["https://app.example/cb"],"method":"client_secret_basic"}`,
		"invitations": `{"user":"bob"}`,
		"webhooks":    `{"url":"https://hooks.example/","state":"paused"}`, // kept under an idempotency key, too
	} {
		code, text := callOnce(t, s.URL()+"/api/v1/orgs/main/"+path, s.First().Secret, body)
		var made struct{ Secret, URL string }
		if err := json.Unmarshal([]byte(text), &made); err != nil || code/100 != 2 {
			t.Fatal(path, code, text)
		}
		if path == "invitations" { // the token is the end of the URL
			made.Secret = made.URL[strings.LastIndexAny(made.URL, "/#=")+1:]
		}
		if len(made.Secret) < 20 {
			t.Fatalf("%s: no secret in %s", path, text)
		}
		h.add("the secret of "+path, made.Secret)
	}
	hideRelay(t, s, h)
	return h, w.ID
}

// hideRelay registers a relay with a credential, which a server without keys refuses.
func hideRelay(t *testing.T, s *Server, h hidden) {
	t.Helper()
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"name":"Remote","version":"1","capabilities":{},"skills":[],"supportedInterfaces":[
			{"url":"http://%s/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, r.Host)
	}))
	t.Cleanup(remote.Close)
	const token = "relay-token-77ab03e1"
	code, text := callOnce(t, s.URL()+"/api/v1/orgs/main/agents", s.First().Secret,
		fmt.Sprintf(`{"id":"far","relay":{"url":%q,"credential":{"type":"bearer","token":%q}}}`, remote.URL, token))
	switch {
	case s.keys == nil && code == http.StatusConflict && strings.Contains(text, secret.CodeNoKey):
	case s.keys == nil:
		t.Errorf("a relay with a credential without a key: %d %s, want 409 %s", code, text, secret.CodeNoKey)
	case code != http.StatusCreated:
		t.Fatal(code, text)
	}
	h.add("the credential of a relay", token)
}

// callOnce posts a command with an idempotency key.
func callOnce(t *testing.T, addr, key, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, addr, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Idempotency-Key", "once")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// secretsConfig is fixtureConfig for servers that stop at once.
func secretsConfig(t *testing.T, engine string) config.Config {
	t.Helper()
	cfg := fixtureConfig(t, engine)
	cfg.ShutdownDelay, cfg.OutboundAllow = new(time.Duration), []string{"127.0.0.1"}
	return cfg
}

// rowsText returns every column of every table.
func rowsText(t *testing.T, cfg config.Config) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := Backup(t.Context(), cfg.Store, BackupTo{Dest: "-", Stdout: &b}, still); err != nil {
		t.Fatal(err)
	}
	return []byte(strings.Join(rowsOf(t, b.Bytes()), "\n"))
}

// folderBytes returns the contents of all files, without the key file.
func folderBytes(t *testing.T, dir string) (out []byte) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "secret.key" {
			return nil //nolint:nilerr // a file that PostgreSQL has removed meanwhile
		}
		b, _ := os.ReadFile(path)
		out = append(out, b...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// stolen returns all bytes that a thief of the database gets: rows, files and the log of writes.
func stolen(t *testing.T, cfg config.Config, files string) []byte {
	t.Helper()
	if cfg.Database != "" {
		conn, err := pgx.Connect(t.Context(), cfg.Database)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		if _, err := conn.Exec(t.Context(), "CHECKPOINT"); err != nil {
			t.Fatal(err)
		}
	}
	return append(rowsText(t, cfg), folderBytes(t, files)...)
}

// TestAStolenDatabaseRevealsNoSecret reads every column of every table, the files of the database and
// the log of writes, beside a running server and after it.
func TestAStolenDatabaseRevealsNoSecret(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			cfg.ShutdownDelay, cfg.OutboundAllow = new(time.Duration), []string{"127.0.0.1"}
			files := cfg.Data
			if engine == "postgres" {
				db, err := pgtest.Start(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(db.Close)
				name, err := db.CreateDatabase(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				cfg.Database, cfg.SecretKeyFile, files = db.URL(name), newKeyFile(t), db.Dir()
			}
			s := startServer(t, cfg)
			h, _ := hideSecrets(t, s)
			if len(h) < 18 {
				t.Errorf("only %d secrets were hidden: %v", len(h), h)
			}
			for _, when := range []string{"running", "stopped"} {
				if got := h.found(stolen(t, cfg, files)); got != nil {
					t.Errorf("%s: the database reveals %v", when, got)
				}
				if when == "running" {
					shutDown(t, s)
				}
			}
			// The search can find: the bytes of the database have the name of the org, for example.
			if (hidden{"x": "hooks.example"}).found(stolen(t, cfg, files)) == nil {
				t.Error("the search found nothing at all")
			}
		})
	}
}

// A store from before there were keys is encrypted when a server with keys starts.
func TestExistingSecretsAreEncrypted(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cfg := secretsConfig(t, engine)
			before, err := openStore(t.Context(), cfg.Store, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			h := hidden{}
			h.add("a key", "very-secret-4c1e77")
			if err := before.KeepSecret(t.Context(), "push_signing_key_old", h["a key"]); err != nil {
				t.Fatal(err)
			}
			if h.found(rowsText(t, cfg)) == nil {
				t.Error("without keys nothing is encrypted, but the secret is not in the rows")
			}
			if err := before.Close(); err != nil {
				t.Fatal(err)
			}
			s := startServer(t, cfg)
			eventually(t, func() bool { return h.found(rowsText(t, cfg)) == nil })
			if v, err := s.store.KeptSecret(t.Context(), "push_signing_key_old"); err != nil || v != h["a key"] {
				t.Errorf("the value is %q, %v", v, err)
			}
			if engine == "sqlite" { // also of pages that are not used any more
				eventually(t, func() bool { return h.found(folderBytes(t, cfg.Data)) == nil })
			}
			shutDown(t, s)
		})
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the condition does not hold after a minute")
		}
	}
}

// shutDown stops a server, and fails the test if it does not stop cleanly.
func shutDown(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
}

func noProgress(int64) {}

// checkHidden compares the secrets that a server reads with those that it was given.
func checkHidden(t *testing.T, s *store.Store, h hidden, hook string) {
	t.Helper()
	_, keys, err := s.Webhooks().Secrets(t.Context(), "main", hook)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{
		"the secret of a webhook": webhook.FormatSecret(keys.Current), "the old secret of a webhook": webhook.FormatSecret(keys.Old),
		"the private key of a webhook": webhook.FormatPrivateKey(keys.Private),
	}
	if got["push_signing_key"], err = s.KeptSecret(t.Context(), "push_signing_key"); err != nil {
		t.Fatal(err)
	}
	pushes, err := s.Pushes().List(t.Context(), dispatch.PushFilter{Org: "main", Limit: 10})
	if err != nil || len(pushes) != 1 {
		t.Fatal(pushes, err)
	}
	got["the token of a push"], got["the credentials of a push"] = pushes[0].Token, pushes[0].Credentials
	for what, value := range got {
		if value != h[what] {
			t.Errorf("%s is %q, want %q", what, value, h[what])
		}
	}
}

// A rotation beside a running server leaves all secrets readable, and the old key unused.
func TestSecretsAreRotatedBesideAServer(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cfg := secretsConfig(t, engine)
			s := startServer(t, cfg)
			h, hook := hideSecrets(t, s)
			old := s.keys.Current()
			got, err := rotateSecrets(t.Context(), cfg.Store, false, 4*time.Second, noProgress)
			if err != nil || got.Key == old || got.Values < 8 || !slices.Equal(got.Dropped, []string{old}) || len(got.Behind) > 0 {
				t.Fatalf("rotated %+v, %v", got, err)
			}
			checkHidden(t, s.store, h, hook)
			st, err := Secrets(t.Context(), cfg.Store)
			if err != nil || !slices.Equal(st.Use.Keys(), []string{got.Key}) || st.Use.Count("") != 0 ||
				!slices.Equal(st.Keys.IDs(), []string{got.Key}) {
				t.Errorf("status %+v, %v", st, err)
			}
			shutDown(t, s)
			s = startServer(t, cfg)
			checkHidden(t, s.store, h, hook)
			shutDown(t, s)
		})
	}
}

// A rotation is refused as long as a node lacks the key, and leaves the old key while one uses it.
func TestRotationWaitsForEveryNode(t *testing.T) {
	t.Parallel()
	cfg := secretsConfig(t, "postgres")
	other := cfg
	other.SecretKeyFile = filepath.Join(t.TempDir(), "secret.key")
	copyFile := func() {
		t.Helper()
		b, err := os.ReadFile(cfg.SecretKeyFile)
		if err == nil {
			err = os.WriteFile(other.SecretKeyFile, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	copyFile()
	s, far := startServer(t, cfg), startServer(t, other)
	defer func() { _ = errors.Join(s.Shutdown(), far.Shutdown()) }()
	h, hook := hideSecrets(t, s)
	old := s.keys.Current()
	if _, err := rotateSecrets(t.Context(), cfg.Store, false, 4*time.Second, noProgress); err == nil || !strings.Contains(err.Error(), "copy the file") {
		t.Fatalf("rotated without the other node: %v", err)
	}
	if s.keys.Current() != old {
		t.Error("the key changed although the rotation was refused")
	}
	copyFile()
	got, err := rotateSecrets(t.Context(), cfg.Store, false, 4*time.Second, noProgress)
	if err != nil || len(got.Behind) != 1 || got.Dropped != nil || !slices.Equal(got.Kept, []string{old}) {
		t.Fatalf("rotated %+v, %v; want the old key kept for the other node", got, err)
	}
	checkHidden(t, s.store, h, hook)
	checkHidden(t, far.store, h, hook)
}

// helperEnv tells this test program to rotate the secrets of a store and nothing else.
const helperEnv = "PARLEY_TEST_ROTATE"

// TestRotateHelper is the process that TestKilledRotationLosesNothing kills.
func TestRotateHelper(t *testing.T) {
	text := os.Getenv(helperEnv)
	if text == "" {
		t.Skip("only a helper of another test")
	}
	var cfg config.Store
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := RotateSecrets(context.Background(), cfg, false, noProgress); err != nil {
		t.Fatal(err)
	}
}

// A rotation that is killed at any moment leaves every secret readable, and can be repeated.
func TestKilledRotationLosesNothing(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cfg := secretsConfig(t, engine)
			s := startServer(t, cfg)
			h, hook := hideSecrets(t, s)
			const many = 3000
			name := func(i int) string { return fmt.Sprintf("many-%04d", i) }
			for i := range many {
				if err := s.store.KeepSecret(t.Context(), name(i), "value of "+name(i)); err != nil {
					t.Fatal(err)
				}
			}
			shutDown(t, s)
			before := s.keys.Current()
			killed := killRotation(t, cfg.Store, before)
			keys, err := openKeys(cfg.Store)
			if err != nil {
				t.Fatal(err)
			}
			use, err := Secrets(t.Context(), cfg.Store)
			if err != nil {
				t.Fatal(err)
			}
			if killed && (use.Use.Count(before) == 0 || len(use.Use.Keys()) < 2) {
				t.Errorf("the process was killed, but the secrets are under %v", use.Use.Keys())
			}
			verify := func() {
				t.Helper()
				st, err := openStore(t.Context(), cfg.Store, store.Options{Keys: keys})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = st.Close() }()
				checkHidden(t, st, h, hook)
				for i := range many {
					if v, err := st.KeptSecret(t.Context(), name(i)); err != nil || v != "value of "+name(i) {
						t.Fatalf("%s is %q, %v", name(i), v, err)
					}
				}
			}
			verify()
			got, err := rotateSecrets(t.Context(), cfg.Store, false, 4*time.Second, noProgress)
			if err != nil || len(got.Kept) != 0 {
				t.Fatalf("the next rotation: %+v, %v", got, err)
			}
			if err := keys.Refresh(); err != nil {
				t.Fatal(err)
			}
			verify()
		})
	}
}

// killRotation rotates in another process, which it kills when some secrets are under the new key. It
// returns false if the process was faster.
func killRotation(t *testing.T, cfg config.Store, before string) bool {
	t.Helper()
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestRotateHelper$")
	cmd.Env = append(os.Environ(), helperEnv+"="+string(text))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("the rotation failed: %v", err)
			}
			return false
		default:
		}
		st, err := Secrets(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if n := st.Use.Count(before); n > 0 && len(st.Use.Keys()) > 1 {
			_ = cmd.Process.Kill()
			<-done
			return true
		}
	}
}

// A server whose key file is not the one of its store does not start, until the file is back or what
// is lost was dropped.
func TestLostKeysAreNoticed(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cfg := secretsConfig(t, engine)
			s := startServer(t, cfg)
			_, hook := hideSecrets(t, s)
			shutDown(t, s)
			data := func() []byte {
				var b bytes.Buffer
				out, err := Backup(t.Context(), cfg.Store, BackupTo{Dest: "-", Stdout: &b}, still)
				if err != nil || out.Header.KeyFile != "" || !slices.Equal(out.Keys, []string{s.keys.Current()}) {
					t.Fatalf("back-up %+v, %v", out.Header, err)
				}
				return b.Bytes()
			}()
			to := secretsConfig(t, engine)
			r, err := Restore(t.Context(), to.Store, bytes.NewReader(data), false, still)
			if err != nil || !slices.Equal(r.Missing, []string{s.keys.Current()}) {
				t.Fatalf("restored %+v, %v; want the key missing", r, err)
			}
			if lost, err := newServer(t.Context(), to, slog.New(slog.DiscardHandler), testSettings); err == nil {
				_ = lost.release()
				t.Fatal("a server started without the key")
			} else if !strings.Contains(err.Error(), "drop-lost") || !strings.Contains(err.Error(), "--secret-key-file") {
				t.Errorf("the error does not say what to do: %v", err)
			}
			dropped, err := DropLost(t.Context(), to.Store)
			if err != nil || dropped["webhooks"] != 2 || dropped["relays"] != 1 || dropped["push_configs"] != 1 || dropped["secrets"] < 4 {
				t.Fatalf("dropped %v, %v", dropped, err)
			}
			again := startServer(t, to)
			w, err := again.store.Webhooks().Get(t.Context(), "main", hook)
			if err != nil || w.State != webhook.Paused || !strings.Contains(w.LastError, "rotate") {
				t.Errorf("webhook %+v, %v", w, err)
			}
			if _, _, err := again.store.Webhooks().Secrets(t.Context(), "main", hook); err != nil {
				t.Error(err)
			}
			if more, err := DropLost(t.Context(), to.Store); err != nil || len(more) != 0 {
				t.Errorf("dropped %v again, %v", more, err)
			}
			if err := again.Shutdown(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// An org that moves to a store with another key keeps its secrets. The export says that it has them.
func TestSecretsMoveWithTheirOrg(t *testing.T) {
	t.Parallel()
	other := map[string]string{"sqlite": "postgres", "postgres": "sqlite"}
	for engine := range other {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cfg, to := secretsConfig(t, engine), secretsConfig(t, other[engine])
			s := startServer(t, cfg)
			h, hook := hideSecrets(t, s)
			shutDown(t, s)
			data, made := exported(t, cfg, "main", true)
			if made.OpenSecrets != 8 { // three and two of the webhooks, two of the push, one of the relay
				t.Errorf("the export says that it has %d secrets", made.OpenSecrets)
			}
			bare, none := exported(t, cfg, "main", false)
			if got := h.found([]byte(strings.Join(rowsOf(t, bare), "\n"))); got != nil || none.OpenSecrets != 0 {
				t.Errorf("without credentials it reveals %v, and says %d", got, none.OpenSecrets)
			}
			there := startServer(t, to)
			if _, err := ImportOrg(t.Context(), to.Store, bytes.NewReader(data), OrgImport{As: "moved"}, still); err != nil {
				t.Fatal(err)
			}
			_, keys, err := there.store.Webhooks().Secrets(t.Context(), "moved", hook)
			if err != nil || webhook.FormatSecret(keys.Current) != h["the secret of a webhook"] ||
				webhook.FormatSecret(keys.Old) != h["the old secret of a webhook"] {
				t.Errorf("secrets %v, %v", keys, err)
			}
			pushes, err := there.store.Pushes().List(t.Context(), dispatch.PushFilter{Org: "moved", Limit: 10})
			if err != nil || len(pushes) != 1 || pushes[0].Token != h["the token of a push"] {
				t.Errorf("pushes %v, %v", pushes, err)
			}
			if got := h.found(rowsText(t, to)); got != nil {
				t.Errorf("the other store reveals %v", got)
			}
			st, err := Secrets(t.Context(), to.Store)
			if err != nil || st.Use["relays"][there.keys.Current()] != 1 {
				t.Errorf("secrets of relays: %v, %v", st.Use["relays"], err)
			}
			if err := there.Shutdown(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Without a key file a PostgreSQL store works, and says that secrets are not encrypted.
func TestPostgresWithoutKeyFile(t *testing.T) {
	t.Parallel()
	cfg := secretsConfig(t, "postgres")
	cfg.SecretKeyFile = ""
	s := startServer(t, cfg)
	h, hook := hideSecrets(t, s)
	checkHidden(t, s.store, h, hook)
	st, err := Secrets(t.Context(), cfg.Store)
	if err != nil || st.Use.Count("") < 8 || st.File != "" || st.Missing() != nil {
		t.Errorf("status %+v, %v", st, err)
	}
	if _, err := rotateSecrets(t.Context(), cfg.Store, false, 4*time.Second, noProgress); err == nil || !strings.Contains(err.Error(), "--secret-key-file") {
		t.Errorf("rotated without a file: %v", err)
	}
	shutDown(t, s)
	cfg.SecretKeyFile = filepath.Join(t.TempDir(), "secret.key")
	if _, err := newServer(t.Context(), cfg, slog.New(slog.DiscardHandler), testSettings); err == nil ||
		!strings.Contains(err.Error(), "add-key") {
		t.Errorf("a server started with a missing file: %v", err)
	}
	if _, made, err := AddKey(cfg.Store); err != nil || !made {
		t.Fatal(made, err)
	}
	s = startServer(t, cfg)
	eventually(t, func() bool {
		st, err := Secrets(t.Context(), cfg.Store)
		return err == nil && st.Use.Count("") == 0
	})
	checkHidden(t, s.store, h, hook)
	keys, made, err := AddKey(cfg.Store)
	if pending, ok := keys.Pending(); err != nil || made || !ok || pending.ID == s.keys.Current() {
		t.Errorf("added %v, %v", keys.IDs(), err)
	}
	if _, _, err := AddKey(cfg.Store); err == nil {
		t.Error("a second key was added before the first was used")
	}
	shutDown(t, s)
}
