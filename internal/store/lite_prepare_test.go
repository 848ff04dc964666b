package store

import (
	"sync/atomic"
	"testing"

	"zombiezen.com/go/sqlite"

	"github.com/parley-dev/parley/internal/proposal"
)

// TestStatementsArePreparedOnce runs lists with different limits and offsets. SQLite asks the
// authorizer whenever it prepares a statement, and also when it prepares one again by itself.
func TestStatementsArePreparedOnce(t *testing.T) {
	t.Parallel()
	s := openAt(t, Options{Dir: t.TempDir(), ReadConns: 1})
	addProposals(t, s, "acme", 5)
	var asked atomic.Int64
	conn := <-s.eng.(*lite).readers.conns
	if err := conn.conn.SetAuthorizer(sqlite.AuthorizeFunc(func(sqlite.Action) sqlite.AuthResult {
		asked.Add(1)
		return sqlite.AuthResultOK
	})); err != nil {
		t.Fatal(err)
	}
	s.eng.(*lite).readers.conns <- conn
	read := func(n int) {
		for _, sort := range proposal.Sorts {
			if _, _, err := s.Proposals().List(t.Context(), proposal.Filter{
				Org: "acme", Viewer: proposal.Viewer{Principal: annOf("acme"), Admin: true}, Sort: sort,
				Limit: n, Offset: int64(n - 1),
			}); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := s.Proposals().Votes(t.Context(), "acme", propID(1), int64(n), n); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Tasks().Events(t.Context(), "acme", "none", 0, n); err != nil {
			t.Fatal(err)
		}
	}
	read(1)
	if asked.Swap(0) == 0 {
		t.Fatal("the first reads prepared nothing")
	}
	for n := 2; n < 5; n++ {
		read(n)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("SQLite prepared statements again: %d questions to the authorizer, want 0", n)
	}
}
