package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// CreateAgent implements agent.Store.
func (s *Store) CreateAgent(ctx context.Context, a agent.Agent, m identity.Member) error {
	if a.Skills == nil {
		a.Skills = []string{}
	}
	skills, err := json.Marshal(a.Skills)
	if err != nil {
		return fmt.Errorf("encode skills: %w", err)
	}
	return s.eng.write(ctx, func(t *tx) error {
		taken, err := t.exists(ctx, `SELECT 1 FROM agents WHERE id = $1`, a.ID)
		if err != nil {
			return err
		}
		if taken {
			return errs.New(errs.Conflict, "agent.exists", "the agent id %q is taken; agent ids are unique across the platform", a.ID)
		}
		if err := t.createMember(ctx, m); err != nil {
			return err
		}
		t.exec(`INSERT INTO agents (id, org_id, name, description, skills, public, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			a.ID, a.Org, a.Name, a.Description, string(skills), flag(a.Public), micros(a.CreatedAt))
		return nil
	})
}

// Agents implements agent.Store.
func (s *Store) Agents(ctx context.Context, org string) ([]agent.Agent, error) {
	list := []agent.Agent{}
	err := each(ctx, s.eng, func(r rows) error {
		var a agent.Agent
		var skills string
		var public, at int64
		if err := r.Scan(&a.ID, &a.Org, &a.Name, &a.Description, &skills, &public, &at); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(skills), &a.Skills); err != nil {
			return fmt.Errorf("decode the skills of %s: %w", a.ID, err)
		}
		a.Public, a.CreatedAt = public != 0, fromMicros(at)
		list = append(list, a)
		return nil
	}, `SELECT id, org_id, name, description, skills, public, created_at FROM agents WHERE org_id = $1 ORDER BY id`, org)
	return list, err
}
