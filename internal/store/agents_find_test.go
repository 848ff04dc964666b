package store

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/agent"
)

// A search among 5,000 public agents, beside as many private ones, reads one page into
// memory and takes a bounded time.
func TestSearchAmongManyAgentsIsBounded(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		ctx := t.Context()
		const agents = 10_000 // every second one is public
		if err := s.eng.write(ctx, func(x *tx) error {
			x.exec(`INSERT INTO orgs (id, name, created_at) VALUES ('many', 'Many', 1)`)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		describe := strings.Repeat("words of a description that is as long as those that people write ", 6)
		for at := 0; at < agents; at += 500 {
			if err := s.eng.write(ctx, func(x *tx) error {
				for n := at; n < at+500; n++ {
					a := agent.Agent{
						ID: fmt.Sprintf("agent-%05d", n), Org: "many", Name: fmt.Sprint("Agent number ", n),
						Description: describe, Skills: []string{"common", fmt.Sprint("skill", n%100)}, Public: n%2 == 0,
					}
					words := agent.WordsOf(&a)
					x.exec(`INSERT INTO agents (id, org_id, name, description, skills, public, disabled, pinned, builtin, created_at,
							updated_at, public_name, profile, words_names, words_text, words_at)
						VALUES ($1, $2, $3, $4, $5, $6, 0, '', '', 1, 1, $6, '', $7, $8, 1)`,
						a.ID, a.Org, a.Name, a.Description, jsonList(a.Skills), flag(a.Public), words.Names, words.Text)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		for name, q := range map[string]agent.Search{
			"first page":   {},
			"last page":    {After: agent.Position{ID: "agent-09980"}},
			"common words": {Words: []string{"description", "people", "numb"}},
			"rare word":    {Words: []string{"9998"}},
			"deep page":    {Words: []string{"numb"}, After: agent.Position{Rank: 1, ID: "agent-09000"}},
			"no match":     {Words: []string{"absent"}},
			"skill":        {Skill: "skill98"},
		} {
			q.Org, q.Limit = "a", 20
			slowest, heaviest := time.Duration(0), uint64(0)
			var found []agent.Match
			for range 5 {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				start := time.Now()
				var err error
				if found, err = s.Agents().Search(ctx, q); err != nil {
					t.Fatal(err)
				}
				slowest = max(slowest, time.Since(start))
				runtime.ReadMemStats(&after)
				heaviest = max(heaviest, after.TotalAlloc-before.TotalAlloc)
			}
			t.Logf("%s: %d found, %s, %d KiB at most", name, len(found), slowest, heaviest>>10)
			if name == "rare word" && len(found) != 1 || name == "no match" && len(found) != 0 || len(found) > 20 {
				t.Errorf("%s: got %d agents", name, len(found))
			}
			// Other tests run at the same time, so the bounds are generous.
			if slowest > 2*time.Second || heaviest > 16<<20 {
				t.Errorf("%s took %s and %d KiB, want less", name, slowest, heaviest>>10)
			}
		}
	})
}
