package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-dev/parley/internal/agent"
)

// Search implements agent.CatalogueStore. The agents of the org and the public ones are read by an
// index each, so that the private agents of other orgs cost nothing. Without words, both indexes are
// in the order of the result; with words, all these agents are compared and one page is kept.
func (s Agents) Search(ctx context.Context, q agent.Search) ([]agent.Match, error) {
	var f finding
	f.prepare(s.d, &q)
	own := f.branch(&q, `a.org_id = `+f.org)
	query := own
	if !q.Own {
		// An agent of the org hides the public one with the same id, even if it is disabled.
		query = `SELECT * FROM (` + own + `) own UNION ALL SELECT * FROM (` + f.branch(&q, `a.public = 1
			AND a.org_id <> `+f.org+` AND NOT EXISTS (SELECT 1 FROM agents o WHERE o.org_id = `+f.org+` AND o.id = a.id)`) + `) others`
	}
	out := []agent.Match{}
	err := each(ctx, s.eng, func(r rows) error {
		var m agent.Match
		var profile string
		var err error
		if m.Agent, err = scanAgent(r, &profile, &m.Rank); err != nil {
			return err
		}
		m.Agent.Profile.Provider, err = decodeProvider(profile)
		out = append(out, m)
		return err
	}, `SELECT * FROM (`+query+`) found ORDER BY rank, id`+limit(q.Limit), f.args...)
	return out, err
}

// columnsOfA are the agentColumns of the table a.
var columnsOfA = "a." + strings.Join(strings.Fields(agentColumns), " a.")

// finding builds the query of a search.
type finding struct {
	args       []any
	org, rank  string
	conditions []string
}

// arg adds a parameter and returns its mark.
func (f *finding) arg(v any) string {
	f.args = append(f.args, v)
	return fmt.Sprintf("$%d", len(f.args))
}

func (f *finding) and(condition string) { f.conditions = append(f.conditions, condition) }

// prepare makes the conditions that both branches have. Terms contain neither spaces nor the special
// characters of LIKE, which are ASCII symbols.
func (f *finding) prepare(d *dialect, q *agent.Search) {
	f.org, f.rank = f.arg(q.Org), "0"
	var named []string
	for i, term := range q.Words {
		pattern := "% " + term
		if i < len(q.Words)-1 {
			pattern += " "
		}
		mark := f.arg(pattern + "%")
		f.and(`(a.words_names LIKE ` + mark + ` OR a.words_text LIKE ` + mark + `)`)
		named = append(named, `a.words_names LIKE `+mark)
	}
	if len(named) > 0 {
		f.rank = `CASE WHEN a.id = ` + f.arg(strings.ToLower(strings.TrimSpace(q.Exact))) + ` THEN 0 WHEN ` +
			strings.Join(named, " AND ") + ` THEN 1 ELSE 2 END`
	}
	if q.Skill != "" {
		f.and(d.position + `(a.skills, ` + f.arg(encodedTag(q.Skill)) + `) > 0`)
	}
	if q.IDs != nil {
		marks := make([]string, len(q.IDs))
		for i, id := range q.IDs {
			marks[i] = f.arg(id)
		}
		f.and(`a.id IN (` + strings.Join(marks, ", ") + `)`)
	}
	switch q.Presence {
	case "":
	case "offline":
		f.and(`a.pinned IN ('', 'offline')`)
	default: // which agents are busy is not in the store
		f.and(`(a.pinned = ` + f.arg(q.Presence) + ` OR a.pinned = '' AND a.online = 1)`)
	}
	switch after := q.After; {
	case after.ID == "":
	case len(named) == 0:
		f.and(`a.id > ` + f.arg(after.ID))
	default:
		rank := f.arg(after.Rank)
		f.and(`(` + f.rank + ` > ` + rank + ` OR ` + f.rank + ` = ` + rank + ` AND a.id > ` + f.arg(after.ID) + `)`)
	}
}

// branch returns the query of a page of agents on a condition.
func (f *finding) branch(q *agent.Search, condition string) string {
	order := `a.id`
	if len(q.Words) > 0 {
		order = `rank, a.id`
	}
	return `SELECT ` + columnsOfA + `, a.profile, ` + f.rank + ` AS rank FROM agents a
		WHERE a.disabled = 0 AND ` + strings.Join(append([]string{condition}, f.conditions...), " AND ") + `
		ORDER BY ` + order + limit(q.Limit)
}

// encodedTag returns a tag as it is in the column skills.
func encodedTag(tag string) string {
	text, _ := json.Marshal(tag) // a string has a form in JSON
	return string(text)
}

// decodeProvider returns the provider of an encoded profile.
func decodeProvider(profile string) (agent.Provider, error) {
	if profile == "" {
		return agent.Provider{}, nil
	}
	var row struct {
		Provider *providerRow `json:"provider"`
	}
	if err := json.Unmarshal([]byte(profile), &row); err != nil || row.Provider == nil {
		return agent.Provider{}, err
	}
	return agent.Provider(*row.Provider), nil
}

// IndexWords implements agent.Store. An agent that changes meanwhile is found again.
func (s Agents) IndexWords(ctx context.Context, most int) (int, error) {
	const old = `words_at <> updated_at`
	n := 0
	if found, err := one(ctx, s.eng, []any{&n}, `SELECT 1 FROM agents WHERE `+old+limit(1)); err != nil || !found {
		return 0, err // the rule: a write would cost a commit
	}
	err := s.eng.write(ctx, func(t *tx) error {
		list, err := agentsWhere(ctx, t, old+` ORDER BY org_id, id`+limit(most)+t.d.skipLocked)
		if err != nil {
			return err
		}
		for i := range list {
			a := &list[i]
			if a.Profile, err = profileOf(ctx, t, a.Org, a.ID); err != nil {
				return err
			}
			words := agent.WordsOf(a)
			t.exec(`UPDATE agents SET words_names = $3, words_text = $4, words_at = updated_at WHERE org_id = $1 AND id = $2`,
				a.Org, a.ID, words.Names, words.Text)
		}
		n = len(list)
		return nil
	})
	return n, err
}
