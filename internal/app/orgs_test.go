package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/backup"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/idptest"
)

var engines = []string{"sqlite", "postgres"}

// filledServer starts a server whose store has rows in every table: the orgs main and other, of which
// other has sent a task to an agent of main.
func filledServer(t *testing.T, engine string) (*Server, config.Config) {
	t.Helper()
	cfg := fixtureConfig(t, engine)
	is := idptest.New(t)
	is.Person = idptest.Claims{
		"sub": "s-1", "preferred_username": "ada", "name": "Ada Lovelace", "email": "ada@acme.example",
	}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(receiver.Close)
	cfg.Issuers, cfg.PushAllow = issuerFile(t, "", map[string]*idptest.Issuer{"acme": is}), []string{"127.0.0.1"}
	cfg.OutboundAllow = []string{"127.0.0.1"}
	s := startServer(t, cfg)
	fillStore(t, s, receiver.URL)
	s.settle(t)
	sendTask(t, s, keyOf(t, s, "other", "user:admin"), "helper", "from-other")
	return s, cfg
}

// movable is an export of an org with rows in every table, which several tests import.
var movable struct {
	once              sync.Once
	key               string // of its admin
	data, bare, whole []byte // the export, one without credentials, and a back-up of the store
	made              BackedUp
}

func movableOrg(t *testing.T) (data []byte, key string) {
	t.Helper()
	movable.once.Do(func() {
		s, cfg := filledServer(t, "sqlite")
		key := s.First().Secret
		if err := s.Shutdown(); err != nil {
			t.Fatal(err)
		}
		movable.data, _ = exported(t, cfg, "main", true)
		movable.bare, movable.made = exported(t, cfg, "main", false)
		movable.whole, _ = backedUp(t, cfg)
		movable.key = key
	})
	if movable.key == "" {
		t.Fatal("the store for the export could not be made; see the other tests")
	}
	return movable.data, movable.key
}

// keyOf makes a key with all scopes.
func keyOf(t *testing.T, s *Server, org, ref string) string {
	t.Helper()
	p, err := identity.ParseRef(org, ref)
	if err != nil {
		t.Fatal(err)
	}
	var scopes []string
	for _, scope := range identity.AllScopes {
		scopes = append(scopes, string(scope))
	}
	operator := identity.NewOperator(s.store.IdentityStores(), Now, newIDs(Now).next)
	_, secret, err := operator.CreateKey(t.Context(), identity.KeyRequest{Principal: p, Name: "a key", Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func sendTask(t *testing.T, s *Server, key, agent, id string) {
	t.Helper()
	if code, body := post(t, s.URL()+"/a2a/"+agent, key, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tasks/send",
		"params":{"id":%q,"message":{"role":"user","parts":[{"type":"text","text":"hello"}]}}}`, id)); code != 200 ||
		strings.Contains(body, `"error"`) {
		t.Fatal(code, body)
	}
}

func exported(t *testing.T, cfg config.Config, org string, secrets bool) ([]byte, BackedUp) {
	t.Helper()
	var b bytes.Buffer
	out, err := ExportOrg(t.Context(), cfg.Store, org, secrets, BackupTo{Dest: "-", Stdout: &b}, still)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), out
}

func mustImport(t *testing.T, cfg config.Config, data []byte, how OrgImport) Imported {
	t.Helper()
	out, err := ImportOrg(t.Context(), cfg.Store, bytes.NewReader(data), how, still)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// inOrder fails the test if a check finds anything.
func inOrder(t *testing.T, cfg config.Config) {
	t.Helper()
	c, err := Check(t.Context(), cfg.Store, false, func(string) {})
	if err != nil || len(c.Findings) > 0 {
		t.Errorf("check found %+v, %v", c.Findings, err)
	}
}

// storeWith returns a configuration with a store that has one org.
func storeWith(t *testing.T, engine, org string) config.Config {
	t.Helper()
	cfg := fixtureConfig(t, engine)
	op, err := OpenOperator(t.Context(), cfg.Store, true)
	if err != nil {
		t.Fatal(err)
	}
	p := identity.Principal{Org: org, Kind: identity.User, ID: "someone"}
	if _, err = op.Identity.CreateOrg(t.Context(), org, ""); err == nil {
		_, err = op.Identity.CreateMember(t.Context(), p, "", true)
	}
	if err == nil {
		err = op.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

var otherEngine = map[string]string{"sqlite": "postgres", "postgres": "sqlite"}

// TestOrgMoves takes an org with rows in every table to a store of the other engine that has another
// org: everything of it, and nothing else.
func TestOrgMoves(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s, cfg := filledServer(t, engine)
			key := s.First().Secret
			paths := backupReads(t, s, key)
			want := readAll(t, s, key, paths)
			if err := s.Shutdown(); err != nil {
				t.Fatal(err)
			}
			data, made := exported(t, cfg, "main", true)
			stay := []string{"login_links", "account_links", "sessions", "oauth_requests", "identity_epoch", "secrets", "agent_usage"}
			for table, n := range made.Tables {
				if left := slices.Contains(stay, table); left != (n == 0) && table != "invitations" {
					t.Errorf("the export has %d rows of %s", n, table)
				}
			}
			target := cfg
			target.Store = storeWith(t, otherEngine[engine], "elsewhere").Store
			before, _ := exported(t, target, "elsewhere", true)
			if r := mustImport(t, target, data, OrgImport{}); r.Org.ID != "main" || r.Rows != made.Rows {
				t.Errorf("imported %+v", r)
			}
			inOrder(t, target)
			again, _ := exported(t, target, "main", true)
			rows := rowsOf(t, data)
			for i, row := range rows { // the senders of another org are marked
				if strings.HasPrefix(row, `{"table":"tasks"`) {
					rows[i] = strings.ReplaceAll(row, `,"other",`, `,"~other",`)
				}
			}
			slices.Sort(rows)
			got := rowsOf(t, again)
			if lost := missing(rows, got); len(lost) > 0 {
				t.Errorf("%d rows are lost: %.2000q", len(lost), lost)
			}
			if more := missing(got, rows); len(more) != 1 || !strings.Contains(more[0], "org.import") {
				t.Errorf("%d rows are new, want the audit entry of the import: %.2000q", len(more), more)
			}
			if after, _ := exported(t, target, "elsewhere", true); !slices.Equal(rowsOf(t, after), rowsOf(t, before)) {
				t.Error("the other org has changed")
			}
			moved := startServer(t, target)
			defer func() { _ = moved.Shutdown() }()
			now := readAll(t, moved, key, paths)
			for path := range want {
				if strings.HasSuffix(path, "/audit") || strings.HasSuffix(path, "/invitations") {
					continue // has the import; has no links that wait
				}
				if at := lacks("", decoded(t, want[path]), decoded(t, now[path])); at != "" {
					t.Errorf("%s differs: %s", path, at)
				}
			}
			checkCounters(t, moved, key)
			checkFound(t, moved, key)
			forgetsSenders(t, cfg, data)
		})
	}
}

// TestOrgImportWhileServing: a running server notices the new org at once, and writes go on.
func TestOrgImportWhileServing(t *testing.T) {
	t.Parallel()
	data, key := movableOrg(t)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			target := fixtureConfig(t, engine)
			target.RateLimit = 0
			serving := startServer(t, target)
			defer func() { _ = serving.Shutdown() }()
			own := serving.First().Secret
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			done := make(chan error, 1)
			go func() { done <- submitUntil(ctx, serving, own) }()
			mustImport(t, target, data, OrgImport{As: "moved"})
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
			var page struct{ Total int }
			code, body := get(t, serving.URL()+"/api/v1/orgs/moved/proposals?status=all&q=fails", key)
			if err := json.Unmarshal([]byte(body), &page); err != nil || code != 200 || page.Total != 4 {
				t.Errorf("%d, found %d, want the 4 of the moved org: %s", code, page.Total, body)
			}
			if code, _ := get(t, serving.URL()+"/api/v1/orgs/main/proposals", key); code != 404 {
				t.Errorf("a key of the moved org reads the other: %d", code)
			}
			if code, body := post(t, serving.URL()+"/a2a/helper", own, `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":
				{"id":"x","message":{"role":"user","parts":[{"type":"text","text":"hello"}]}}}`); code != 200 ||
				strings.Contains(body, `"error"`) {
				t.Errorf("the public agent of the moved org cannot be reached: %d %s", code, body)
			}
			inOrder(t, target)
		})
	}
}

// submitUntil submits proposals until the context ends. None may fail.
func submitUntil(ctx context.Context, s *Server, key string) error {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost,
			s.URL()+"/api/v1/orgs/main/proposals", strings.NewReader(
				`{"title":"Meanwhile","category":"process","problem":"It waits.","suggested_fix":"Do not wait."}`))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusCreated {
			return fmt.Errorf("submit: %s", res.Status)
		}
	}
	return nil
}

// TestOrgImportRefusals: an import that cannot be whole changes nothing.
func TestOrgImportRefusals(t *testing.T) {
	t.Parallel()
	data, _ := movableOrg(t)
	bare, whole, made := movable.bare, movable.whole, movable.made
	for _, table := range []string{"keys", "passwords", "identities", "oauth_grants", "webhooks", "idempotency"} {
		if made.Tables[table] != 0 {
			t.Errorf("without credentials, the export has %d rows of %s", made.Tables[table], table)
		}
	}
	if _, err := Restore(t.Context(), fixtureConfig(t, "sqlite").Store, bytes.NewReader(data), false, still); err == nil ||
		!strings.Contains(err.Error(), "parley org import") {
		t.Errorf("restore of an export: %v", err)
	}
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			target := storeWith(t, engine, "elsewhere")
			_, err := ExportOrg(t.Context(), target.Store, "nope", true, BackupTo{Dest: "-"}, still)
			if errs.KindOf(err) != errs.NotFound {
				t.Errorf("export of no org: %v", err)
			}
			try := func(data []byte, how OrgImport) error {
				_, err := ImportOrg(t.Context(), target.Store, bytes.NewReader(data), how, still)
				return err
			}
			rows := func() []string { b, _ := backedUp(t, target); return rowsOf(t, b) }
			empty := rows()
			for _, c := range []struct {
				want string
				data []byte
				how  OrgImport
			}{
				{"exists already", data, OrgImport{As: "elsewhere"}},
				{"cannot be the id", data, OrgImport{As: "Not An Id"}},
				{"use \"parley restore\"", whole, OrgImport{}},
				{"cut short", data[:len(data)-30], OrgImport{}},
				{"not a back-up", []byte("hello"), OrgImport{}},
			} {
				if err := try(c.data, c.how); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want an error with %q", err, c.want)
				}
			}
			if now := rows(); !slices.Equal(now, empty) {
				t.Errorf("refused imports have left %.1000q", missing(now, empty))
			}
			if err := try(data, OrgImport{}); err != nil {
				t.Fatal(err)
			}
			full := rows()
			for _, c := range []struct {
				want string
				data []byte
				how  OrgImport
			}{
				{"org \"main\" exists already", data, OrgImport{}},
				{"public agent \"helper\"", data, OrgImport{As: "copy"}},
				{"public agent \"helper\"", bare, OrgImport{As: "copy"}},
				{"public agent \"helper\"", forged(t, bare, "main", func(table *backup.Table, row []any) {
					if i := slices.Index(table.Columns, "public_name"); table.Name == "agents" {
						row[i] = int64(0)
					}
				}), OrgImport{As: "copy"}},
				{"changed by hand", forged(t, data, "~main", nil), OrgImport{As: "copy"}},
			} {
				if err := try(c.data, c.how); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want an error with %q", err, c.want)
				}
			}
			if now := rows(); !slices.Equal(now, full) {
				t.Errorf("refused imports have left %.1000q", missing(now, full))
			}
			inOrder(t, target)
		})
	}
}

// forged returns an export that was changed by hand, with a valid checksum.
func forged(t *testing.T, data []byte, org string, edit func(table *backup.Table, row []any)) []byte {
	t.Helper()
	r, err := backup.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h := r.Header()
	h.Org = org
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, h)
	if err != nil {
		t.Fatal(err)
	}
	for {
		table, err := r.NextTable()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = w.Table(table)
		}
		for err == nil {
			var row []any
			if row, err = r.Row(); err == nil {
				if edit != nil {
					edit(&table, row)
				}
				err = w.Row(row)
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestOrgImportIsInterrupted: an import that ends in the middle leaves nothing that anyone sees, and the
// next one completes.
func TestOrgImportIsInterrupted(t *testing.T) {
	t.Parallel()
	data, key := movableOrg(t)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			target := storeWith(t, engine, "elsewhere")
			whole, _ := backedUp(t, target)
			for stopAt := 40; stopAt < 75; stopAt += 11 { // the first 35 tables are read into the stage
				ctx, stop := context.WithCancel(t.Context())
				n := 0
				_, err := ImportOrg(ctx, target.Store, bytes.NewReader(data), OrgImport{}, func(string, int64) {
					if n++; n == stopAt {
						stop()
					}
				})
				stop()
				if err == nil {
					break
				}
				if now, _ := backedUp(t, target); !slices.Equal(rowsOf(t, now), rowsOf(t, whole)) {
					t.Fatalf("stopped at step %d: %.500q is left", stopAt, missing(rowsOf(t, now), rowsOf(t, whole)))
				}
			}
			if _, err := ExportOrg(t.Context(), target.Store, "main", true, BackupTo{Dest: "-", Stdout: new(bytes.Buffer)},
				still); errs.KindOf(err) == errs.NotFound {
				mustImport(t, target, data, OrgImport{})
			}
			inOrder(t, target)
			again := startServer(t, target)
			defer func() { _ = again.Shutdown() }()
			checkFound(t, again, key)
		})
	}
}

// TestOrgImportOfAnOlderSchema imports an export of the oldest store that is kept.
func TestOrgImportOfAnOlderSchema(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(storesFolder, "0011")
			var want kept
			text, err := os.ReadFile(filepath.Join(folder, engine+".json"))
			if err == nil {
				err = json.Unmarshal(renamed(text), &want)
			}
			if err != nil {
				t.Fatal(err)
			}
			old := fixtureConfig(t, engine)
			restoreStore(t, filepath.Join(folder, engine+".sql.gz"), filepath.Join(folder, engine+".db.gz"), old)
			data, made := exported(t, old, "main", true)
			if made.Schema != 11 {
				t.Errorf("the export has schema %d", made.Schema)
			}
			target := old
			target.Store = storeWith(t, otherEngine[engine], "elsewhere").Store
			mustImport(t, target, data, OrgImport{})
			inOrder(t, target)
			s := startServer(t, target)
			defer func() { _ = s.Shutdown() }()
			want.check(t, s)
		})
	}
}

// TestOrgDelete deletes an org while a server runs, with an interruption. Nothing of it remains, and
// another org is as it was.
func TestOrgDelete(t *testing.T) {
	t.Parallel()
	data, key := movableOrg(t)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cfg := storeWith(t, engine, "keep")
			unused := rawFiles(t, cfg)
			before, _ := exported(t, cfg, "keep", true)
			empty, _ := backedUp(t, cfg)
			mustImport(t, cfg, data, OrgImport{As: "quagga"})
			full, _ := exported(t, cfg, "quagga", true)
			s := startServer(t, cfg)
			defer func() { _ = s.Shutdown() }()
			const path = "/api/v1/orgs/quagga/proposals"
			if code, body := get(t, s.URL()+path, key); code != 200 {
				t.Fatal(code, body)
			}
			stream := openStream(t, s.URL()+"/api/v1/orgs/quagga/events", key)

			ctx, stop := context.WithCancel(t.Context())
			n := 0
			if err := DeleteOrg(ctx, cfg.Store, "quagga", func(string, int64) {
				if n++; n == 5 {
					stop()
				}
			}); err == nil {
				t.Fatal("the deletion was not interrupted")
			}
			stop()
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
				if code, _ := get(t, s.URL()+path, key); code == 401 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the key of an org that is being deleted still works")
				}
			}
			if c, err := Check(t.Context(), cfg.Store, false, func(string) {}); err != nil || len(c.Findings) == 0 ||
				!strings.Contains(c.Findings[0].Text, "parley org delete quagga") {
				t.Errorf("check found %+v, %v, want the deletion that was interrupted", c.Findings, err)
			}
			if _, err := ImportOrg(t.Context(), cfg.Store, bytes.NewReader(data), OrgImport{As: "quagga"}, still); err == nil {
				t.Error("an org that is being deleted was imported again")
			}
			if err := DeleteOrg(t.Context(), cfg.Store, "quagga", still); err != nil {
				t.Fatal(err)
			}
			stream.ended(t)
			// A request that a busy server began before may write a row late, which the next call removes.
			err := DeleteOrg(t.Context(), cfg.Store, "quagga", still)
			for tries := 0; err == nil && tries < 3; tries++ {
				err = DeleteOrg(t.Context(), cfg.Store, "quagga", still)
			}
			if errs.KindOf(err) != errs.NotFound {
				t.Errorf("deleted again: %v, want that it is not found", err)
			}
			inOrder(t, cfg)
			after, _ := exported(t, cfg, "keep", true)
			if got, want := rowsOf(t, after), rowsOf(t, before); !slices.Equal(got, want) {
				t.Errorf("the other org has changed: lost %.500q, new %.500q", missing(want, got), missing(got, want))
			}
			nothingOf(t, cfg, full, empty, unused)

			mustImport(t, cfg, data, OrgImport{As: "quagga"}) // the server is the same
			if code, body := get(t, s.URL()+path, key); code != 200 {
				t.Errorf("imported again: %d %s", code, body)
			}
			inOrder(t, cfg)
		})
	}
}

// A request that goes on without rights ends before a deletion removes rows for the last time.
func TestDeletionOutlastsLongRequests(t *testing.T) {
	t.Parallel()
	if noticed := httpx.RecheckEvery + keyPoll; settleTime <= noticed {
		t.Errorf("a deletion waits %s, and a request may run for %s without rights", settleTime, noticed)
	}
}

// nothingOf searches the store for every longer text of an export that was not there before. Only the
// entry that says that the org was deleted has its id.
func nothingOf(t *testing.T, cfg config.Config, export, before, unused []byte) {
	t.Helper()
	now, _ := backedUp(t, cfg)
	was := strings.Join(rowsOf(t, before), "\n")
	var rows []string
	for _, row := range rowsOf(t, now) {
		if !strings.Contains(row, `"org.delete"`) && !strings.HasPrefix(row, `{"table":"secrets"`) {
			rows = append(rows, row)
		}
	}
	raw := rawFiles(t, cfg)
	texts := map[string]bool{"quagga": true}
	for _, row := range rowsOf(t, export) {
		_, values, _ := strings.Cut(row, "}[")
		for i, part := range strings.Split(values, `"`) {
			if i%2 == 1 && len(part) >= 12 && !strings.Contains(part, `\`) && !strings.Contains(was, part) {
				texts[part] = true
			}
		}
	}
	if len(texts) < 100 {
		t.Fatalf("%d texts to look for, want more", len(texts))
	}
	for text := range texts {
		if i := slices.IndexFunc(rows, func(row string) bool { return strings.Contains(row, text) }); i >= 0 {
			t.Errorf("%q is still in the store: %.300s", text, rows[i])
		}
		// The entry of the deletion has the id.
		if text != "quagga" && bytes.Contains(raw, []byte(text)) && !bytes.Contains(unused, []byte(text)) {
			t.Errorf("%q is still in the files", text)
		}
	}
	// A word of the proposals, in lower case, is in the text index only.
	if word := []byte("repair"); bytes.Contains(raw, word) && !bytes.Contains(unused, word) {
		t.Error("a word of a proposal is still in the files")
	}
	for table, n := range countRows(t, cfg) {
		if strings.HasPrefix(table, "search_") && n != 0 {
			t.Errorf("%s has %d rows", table, n)
		}
	}
}

// rawFiles returns the files of a SQLite store.
func rawFiles(t *testing.T, cfg config.Config) (raw []byte) {
	t.Helper()
	if cfg.Database != "" {
		return nil
	}
	for _, name := range []string{"parley.db", "parley.db-wal"} {
		data, err := os.ReadFile(filepath.Join(cfg.Data, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		raw = append(raw, data...)
	}
	return raw
}

// openedStream is a response that does not end by itself.
type openedStream struct{ done chan struct{} }

func openStream(t *testing.T, url, key string) openedStream {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != 200 {
		t.Fatal(res, err)
	}
	s := openedStream{make(chan struct{})}
	go func() {
		defer close(s.done)
		_, _ = new(bytes.Buffer).ReadFrom(res.Body)
		_ = res.Body.Close()
	}()
	return s
}

func (s openedStream) ended(t *testing.T) {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(30 * time.Second):
		t.Error("the stream of the org has not ended")
	}
}

// forgetsSenders: what a deleted org sent to agents of others stays with them, without its name.
func forgetsSenders(t *testing.T, cfg config.Config, before []byte) {
	t.Helper()
	if err := DeleteOrg(t.Context(), cfg.Store, "other", still); err != nil {
		t.Fatal(err)
	}
	after, _ := exported(t, cfg, "main", true)
	for _, row := range rowsOf(t, after) {
		if strings.Contains(row, `"other"`) || strings.Contains(row, `other/`) {
			t.Errorf("the name of the org is still in %.300s", row)
		}
	}
	a, b := rowsOf(t, after), rowsOf(t, before)
	if len(a) != len(b) || !strings.Contains(strings.Join(a, "\n"), `"~deleted-`) {
		t.Errorf("main has %d rows, want %d, with the task that the other org had sent", len(a), len(b))
	}
	inOrder(t, cfg)
}
