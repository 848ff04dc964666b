package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// CreateAgent implements agent.Store.
func (s *Store) CreateAgent(ctx context.Context, a agent.Agent, m identity.Member, e identity.AuditEntry, limits ...identity.Quota) error {
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
		if err := t.withinQuota(ctx, a.Org, limits, func(q identity.Quota) (int, error) {
			return countUpTo(ctx, t, q.Most, `agents WHERE org_id = $1`, a.Org)
		}); err != nil {
			return err
		}
		t.exec(`INSERT INTO agents (id, org_id, name, description, skills, public, disabled, pinned, builtin, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			a.ID, a.Org, a.Name, a.Description, string(skills), flag(a.Public), flag(a.Disabled), a.Pinned, a.Builtin, micros(a.CreatedAt),
			micros(a.UpdatedAt))
		t.audit(e)
		return nil
	})
}

// UpdateAgent implements agent.Store. Disabling an agent takes rights away, so the
// caches of all nodes are told.
func (s *Store) UpdateAgent(
	ctx context.Context, org, id string, edit func(agent.Agent) (agent.Agent, []identity.AuditEntry, error),
) (agent.Agent, error) {
	var out agent.Agent
	err := s.eng.write(ctx, func(t *tx) error {
		found, err := agentsWhere(ctx, t, `id = $1 AND org_id = $2`+t.d.forUpdate, id, org)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return errs.ErrNotFound
		}
		var entries []identity.AuditEntry
		if out, entries, err = edit(found[0]); err != nil {
			return err
		}
		skills, err := json.Marshal(out.Skills)
		if err != nil {
			return fmt.Errorf("encode skills: %w", err)
		}
		t.exec(`UPDATE agents SET name = $3, description = $4, skills = $5, public = $6, disabled = $7, pinned = $8, updated_at = $9
			WHERE id = $1 AND org_id = $2`,
			id, org, out.Name, out.Description, string(skills), flag(out.Public), flag(out.Disabled), out.Pinned, micros(out.UpdatedAt))
		t.exec(`UPDATE principals SET name = $3, disabled = $4 WHERE org_id = $1 AND kind = 'agent' AND id = $2`,
			org, id, out.Name, flag(out.Disabled))
		t.newEpoch(org)
		t.audit(entries...)
		return nil
	})
	return out, err
}

// Agents implements agent.Store.
func (s *Store) Agents(ctx context.Context, org string) ([]agent.Agent, error) {
	return agentsWhere(ctx, s.eng, `org_id = $1 ORDER BY id`, org)
}

// BuiltinAgents implements agent.Store.
func (s *Store) BuiltinAgents(ctx context.Context) ([]agent.Agent, error) {
	return agentsWhere(ctx, s.eng, `builtin <> '' AND disabled = 0 ORDER BY id`)
}

// AgentsPage implements agent.Store.
func (s *Store) AgentsPage(ctx context.Context, p agent.Page) ([]agent.Agent, error) {
	if p.Others {
		return agentsWhere(ctx, s.eng, `public = 1 AND disabled = 0 AND org_id <> $1 AND id > $2 ORDER BY id`+limit(p.Limit), p.Org, p.After)
	}
	return agentsWhere(ctx, s.eng, `org_id = $1 AND id > $2 AND disabled = 0 ORDER BY id`+limit(p.Limit), p.Org, p.After)
}

// Agent implements agent.Store.
func (s *Store) Agent(ctx context.Context, id string) (agent.Agent, error) {
	found, err := agentsWhere(ctx, s.eng, `id = $1`, id)
	if err != nil || len(found) == 0 {
		return agent.Agent{}, cmp.Or(err, error(errs.ErrNotFound))
	}
	return found[0], nil
}

func agentsWhere(ctx context.Context, q reader, where string, args ...any) ([]agent.Agent, error) {
	list := []agent.Agent{}
	err := each(ctx, q, func(r rows) error {
		var a agent.Agent
		var skills string
		var public, disabled, created, updated int64
		if err := r.Scan(&a.ID, &a.Org, &a.Name, &a.Description, &skills, &public, &disabled, &a.Pinned, &a.Builtin, &created, &updated); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(skills), &a.Skills); err != nil {
			return fmt.Errorf("decode the skills of %s: %w", a.ID, err)
		}
		a.Public, a.Disabled, a.CreatedAt, a.UpdatedAt = public != 0, disabled != 0, fromMicros(created), fromMicros(updated)
		list = append(list, a)
		return nil
	}, `SELECT id, org_id, name, description, skills, public, disabled, pinned, builtin, created_at, updated_at FROM agents WHERE `+where, args...)
	return list, err
}
