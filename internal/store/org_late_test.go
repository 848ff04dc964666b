package store

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
)

// lateStore is a store with the org "other", in which tests create and delete "acme".
type lateStore struct {
	*testing.T
	*Store
	o Options
}

func onBothEngines(t *testing.T, test func(s lateStore)) {
	t.Helper()
	t.Parallel()
	for name, o := range map[string]Options{"sqlite": {Dir: t.TempDir()}, "postgres": {URL: pgtest.URL(t)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := lateStore{t, openFor(t, o), o}
			s.create("other")
			test(s)
		})
	}
}

func (s lateStore) create(org string) {
	s.Helper()
	ctx, now := s.Context(), time.Now().UTC()
	if err := s.Identity().CreateOrg(ctx, identity.Org{ID: org, Name: org, CreatedAt: now},
		identity.NewEntry(ctx, now, org, identity.OrgCreate, org, "")); err != nil {
		s.Fatalf("create %s: %v", org, err)
	}
}

func (s lateStore) delete(progress func(table string, rows int64)) error {
	d := OrgDeletion{Entry: identity.NewEntry(s.Context(), time.Now(), "", identity.OrgDelete, "acme", "")}
	return DeleteOrg(s.Context(), s.o, "acme", d, progress)
}

func (s lateStore) mustDelete() {
	s.Helper()
	if err := s.delete(func(string, int64) {}); err != nil {
		s.Fatalf("delete acme: %v", err)
	}
}

func (s lateStore) run(sql ...string) {
	s.Helper()
	if err := s.eng.write(s.Context(), func(x *tx) error {
		for _, text := range sql {
			x.exec(text)
		}
		return nil
	}); err != nil {
		s.Fatal(err)
	}
}

func (s lateStore) list(sql string) string {
	s.Helper()
	found, err := strs(s.Context(), s.eng, sql)
	if err != nil {
		s.Fatal(err)
	}
	return strings.Join(found, " ")
}

const (
	lateVote = `INSERT INTO votes (org_id, proposal_id, voter, choice, comment, voted_at)
		VALUES ('acme', 'prop-1', 'user:ada', 'for', '', 0)`
	lateHead    = `INSERT INTO event_heads (org_id, seq) VALUES ('acme', 7)`
	lateMessage = `INSERT INTO messages (org_id, agent_id, id, sender_org, sender, at, data)
		VALUES ('other', 'bot', 'm1', 'acme', 'user:ada', 0, '{}')`
)

// An org does not get what a server wrote after an earlier org with its id was deleted.
func TestNewOrgHasNoLateRows(t *testing.T) {
	onBothEngines(t, func(s lateStore) {
		s.create("acme")
		s.mustDelete()
		s.run(lateVote, lateHead)
		s.create("acme")
		if left := s.list(`SELECT voter FROM votes`); left != "" {
			s.Errorf("the new org has the vote of %s", left)
		}
		if left := s.list(`SELECT org_id FROM event_heads WHERE org_id = 'acme' AND seq = 7`); left != "" {
			s.Error("the new org has the events of the old one")
		}
	})
}

// A deletion removes rows without an org, and finds nothing if there are none.
func TestDeleteRemovesLateRows(t *testing.T) {
	onBothEngines(t, func(s lateStore) {
		s.create("acme")
		s.mustDelete()
		s.run(lateVote, lateHead)
		s.mustDelete()
		if left := s.list(`SELECT org_id FROM votes`) + s.list(`SELECT org_id FROM event_heads`); left != "other" {
			s.Errorf("left are rows of %q, want only the head of other", left)
		}
		if err := s.delete(func(string, int64) {}); errs.KindOf(err) != errs.NotFound {
			s.Errorf("deleted again: %v, want that it is not found", err)
		}
	})
}

// An agent that runs in a server is seen every few seconds, also after its org was deleted.
func TestDeletedOrgHasNoWorkers(t *testing.T) {
	onBothEngines(t, func(s lateStore) {
		s.create("acme")
		s.mustDelete()
		w := dispatch.Worker{Org: "acme", Agent: "bot", Name: "node-1", Capacity: 1, SeenAt: time.Now()}
		if err := errors.Join(s.Workers().See(s.Context(), w, 10), s.Workers().SeeAgain(s.Context(), w)); err != nil {
			s.Error(err)
		}
		if left := s.list(`SELECT name FROM workers`); left != "" {
			s.Errorf("the worker %s was stored", left)
		}
	})
}

// A server that starts with an empty store creates its first org also if rows of an earlier one are left.
func TestBootstrapHasNoLateRows(t *testing.T) {
	onBothEngines(t, func(s lateStore) {
		s.run(`DELETE FROM event_heads`, `DELETE FROM orgs`, lateVote, lateHead)
		now := time.Now().UTC()
		p := identity.Principal{Org: "acme", Kind: identity.User, ID: "admin"}
		entry := identity.NewEntry(s.Context(), now, "acme", identity.OrgCreate, "acme", "")
		created, err := s.Identity().Bootstrap(s.Context(), identity.Org{ID: "acme", CreatedAt: now},
			identity.Member{Principal: p, CreatedAt: now}, identity.Key{ID: "k", Principal: p, CreatedAt: now},
			identity.Hash{}, []identity.AuditEntry{entry})
		if err != nil || !created {
			s.Fatalf("created %v, %v", created, err)
		}
		if left := s.list(`SELECT voter FROM votes`); left != "" {
			s.Errorf("the first org has the vote of %s", left)
		}
	})
}

// A row that refers to the org, and is written just before the org goes, goes too.
func TestDeleteSurvivesALateMember(t *testing.T) {
	onBothEngines(t, func(s lateStore) {
		s.create("acme")
		var once sync.Once
		if err := s.delete(func(table string, _ int64) {
			if table == "events" { // all tables of the org are empty
				once.Do(func() {
					s.run(`INSERT INTO principals (org_id, kind, id, name, admin, disabled, created_at)
						VALUES ('acme', 'user', 'ada', 'Ada', 0, 0, 0)`)
				})
			}
		}); err != nil {
			s.Fatal(err)
		}
		if left := s.list(`SELECT id FROM orgs`) + s.list(`SELECT id FROM principals`); left != "other" {
			s.Errorf("left are %q, want other", left)
		}
	})
}

// A deletion that another one has overtaken leaves the next org with that id alone.
func TestOvertakenDeletionStops(t *testing.T) {
	for _, at := range []string{"sessions", "events"} {
		t.Run(at, func(t *testing.T) {
			onBothEngines(t, func(s lateStore) {
				s.create("acme")
				var once sync.Once
				err := s.delete(func(table string, _ int64) {
					if table == at {
						once.Do(func() {
							s.mustDelete()
							s.create("acme")
							s.run(lateMessage)
						})
					}
				})
				if errs.KindOf(err) != errs.Conflict {
					s.Errorf("the overtaken deletion returned %v, want a conflict", err)
				}
				if orgs := s.list(`SELECT id FROM orgs ORDER BY id`); orgs != "acme other" {
					s.Errorf("the orgs are %s, want acme and other", orgs)
				}
				if sender := s.list(`SELECT sender_org FROM messages`); sender != "acme" {
					s.Errorf("the sender of the new org became %s", sender)
				}
			})
		})
	}
}

// Pseudonyms without a salt could be guessed.
func TestSendersNeedASalt(t *testing.T) {
	onBothEngines(t, func(s lateStore) {
		s.run(lateMessage)
		r := &orgRun{db: s.db, org: "acme", searched: map[string]int64{}, progress: func(string, int64) {}}
		r.allowed = func(context.Context, *tx) error { return nil }
		if err := r.forgetSenders(s.Context()); err == nil {
			s.Error("senders were replaced without a salt")
		}
	})
}

// addPack adds a pack of events to the org "other".
func (s lateStore) addPack(last int64, text string) {
	s.Helper()
	if err := s.eng.write(s.Context(), func(x *tx) error {
		x.exec(`INSERT INTO events (org_id, last_seq, n, at, types, data) VALUES ('other', $1, 1, 0, 0, '')`, last)
		x.setPack("other", last, text)
		return nil
	}); err != nil {
		s.Fatal(err)
	}
}

// Two commands that replace names in the same events keep each other's changes.
func TestRewritesKeepEachOther(t *testing.T) {
	onBothEngines(t, func(s lateStore) {
		s.addPack(1, "ada and bob")
		replace := func(from, to string) func(string) string {
			return func(text string) string { return strings.ReplaceAll(text, from, to) }
		}
		var once sync.Once
		if _, n, err := s.rewriteEvents(s.Context(), "other", 0, func(text string) string {
			once.Do(func() {
				if _, _, err := s.rewriteEvents(s.Context(), "other", 0, replace("bob", "former-2")); err != nil {
					s.Error(err)
				}
			})
			return replace("ada", "former-1")(text)
		}); err != nil || n != 1 {
			s.Fatalf("%d packs were rewritten, %v", n, err)
		}
		text := s.list(`SELECT ` + s.d.packText + ` FROM events WHERE org_id = 'other'`)
		if text != "former-1 and former-2" {
			s.Errorf("the events say %q", text)
		}
	})
}

// The second pass of a deletion reads only the events that were added since the first.
func TestSendersAreSearchedOnce(t *testing.T) {
	onBothEngines(t, func(s lateStore) {
		r := &orgRun{
			db: s.db, org: "acme", salt: "x", searched: map[string]int64{}, progress: func(string, int64) {},
			allowed: func(context.Context, *tx) error { return nil },
		}
		const sender = "\tacme/user:ada\t"
		s.addPack(1, "first")
		if err := r.forgetSenders(s.Context()); err != nil {
			s.Fatal(err)
		}
		s.run(`DELETE FROM events`)
		s.addPack(1, sender)
		s.addPack(2, sender)
		if err := r.forgetSenders(s.Context()); err != nil {
			s.Fatal(err)
		}
		packs, err := strs(s.Context(), s.eng, `SELECT `+s.d.packText+` FROM events ORDER BY last_seq`)
		if err != nil || len(packs) != 2 || packs[0] != sender || packs[1] == sender {
			s.Errorf("the packs are %q, %v, want that only the second was read", packs, err)
		}
	})
}

// A new org is not the sender of a task that an earlier one with its id sent late to another org.
func TestNewOrgSentNoLateTask(t *testing.T) {
	onBothEngines(t, func(s lateStore) {
		s.run(`INSERT INTO tasks (org_id, uid, agent_id, sender_org, sender, id, context_id, state, queued, seq, size, lease,
				lease_worker, lease_expires, delivered, last_turn, created_at, updated_at)
			VALUES ('other', 'u1', 'bot', 'acme', 'user:ada', 't1', '', 'completed', 0, 0, 0, '', '', 0, 0, '', 0, 0)`)
		s.create("acme")
		if sender := s.list(`SELECT sender_org || '/' || sender FROM tasks`); !strings.HasPrefix(sender, "~deleted-") ||
			!strings.Contains(sender, "/user:former-") {
			s.Errorf("the sender of the task is %q, want a pseudonym", sender)
		}
	})
}

// The command that check advises needs the org, because a store may have several.
func TestCheckNamesTheOrgOfAnErasure(t *testing.T) {
	onBothEngines(t, func(s lateStore) {
		s.run(`INSERT INTO org_settings (org_id, name, value) VALUES ('other', '` + settingErasing + `former-1', '{}')`)
		snapshot, err := OpenSnapshot(s.Context(), s.o)
		if err != nil {
			s.Fatal(err)
		}
		defer func() { _ = snapshot.Close() }()
		found, err := checkOrgs(s.Context(), snapshot)
		if err != nil || len(found) != 1 || !strings.Contains(found[0].Text, "erase user:former-1 --org other\"") {
			s.Errorf("check found %+v, %v, want the command with its org", found, err)
		}
	})
}
