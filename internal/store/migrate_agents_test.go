package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// oldAgents are agents as in schema 0012, with ids that are unique across the platform.
const oldAgents = `INSERT INTO agents (id, org_id, name, description, skills, public, created_at, disabled, pinned,
	updated_at, builtin) VALUES
	('echo', 'acme', 'Echo', 'Says it again.', '["echo"]', 1, 1000000, 0, '', 2000000, 'echo'),
	('own', 'acme', 'Own', '', '[]', 0, 3000000, 0, 'busy', 4000000, ''),
	('gone', 'globex', 'Gone', '', '["a","b"]', 1, 5000000, 1, '', 6000000, '')`

func TestAgentsOfOlderStoresKeepTheirIDs(t *testing.T) {
	t.Parallel()
	eachOlderStore(t, 12, []string{
		`INSERT INTO orgs (id, name, created_at) VALUES ('acme', 'Acme', 1), ('globex', 'Globex', 1)`, oldAgents,
	}, func(t *testing.T, s *Store) {
		at := func(sec int64) time.Time { return time.Unix(sec, 0).UTC() }
		want := map[string][]agent.Agent{
			"acme": {
				{
					ID: "echo", Org: "acme", Name: "Echo", Description: "Says it again.", Skills: []string{"echo"},
					Public: true, PublicName: true,
					Builtin: "echo", CreatedAt: at(1), UpdatedAt: at(2),
				},
				{ID: "own", Org: "acme", Name: "Own", Skills: []string{}, Pinned: "busy", CreatedAt: at(3), UpdatedAt: at(4)},
			},
			"globex": {{
				ID: "gone", Org: "globex", Name: "Gone", Skills: []string{"a", "b"}, Public: true, PublicName: true,
				Disabled:  true,
				CreatedAt: at(5), UpdatedAt: at(6),
			}},
		}
		for org, list := range want {
			got, err := s.Agents().List(t.Context(), org)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(list, got); diff != "" {
				t.Error(diff)
			}
		}
		create := func(org, id string, public bool) error {
			a := agent.Agent{ID: id, Org: org, Name: id, Public: public, PublicName: public}
			m := identity.Member{Principal: identity.Principal{Org: org, Kind: identity.Agent, ID: id}, Name: id}
			_, err := s.Agents().Create(t.Context(), a, m, identity.AuditEntry{Org: org, ID: org + id}, agent.Limits{})
			return err
		}
		for _, c := range []struct {
			org, id string
			public  bool
			code    string
		}{
			{"acme", "own", false, "agent.exists"},
			{"acme", "gone", true, "agent.public_id_taken"},
			{"globex", "echo", true, "agent.public_id_taken"},
			{"globex", "echo", false, ""},
			{"globex", "own", true, ""},
		} {
			if err := create(c.org, c.id, c.public); err != nil && errs.As(err).Code != c.code || err == nil && c.code != "" {
				t.Errorf("create %+v = %v, want code %q", c, err, c.code)
			}
		}
		if got, want := s.agentIndexes(t), []string{"agents_online", "agents_public", "agents_public_name", "agents_words_old"}; !slices.Equal(got, want) {
			t.Errorf("indexes %q, want %q", got, want)
		}
	})
}

// agentIndexes returns the indexes of the table of agents except that of its primary key.
func (s *Store) agentIndexes(t *testing.T) []string {
	t.Helper()
	sql := `SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'agents' ORDER BY name`
	if s.d == &postgresDialect {
		sql = `SELECT indexname FROM pg_indexes WHERE tablename = 'agents' ORDER BY indexname`
	}
	var out []string
	err := each(t.Context(), s.eng, func(r rows) error {
		var name string
		err := r.Scan(&name)
		out = append(out, name)
		return err
	}, sql)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(out, func(name string) bool {
		return name == "agents_pkey" || strings.HasPrefix(name, "sqlite_autoindex_")
	})
}
