package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
)

// Agents stores agents.
type Agents struct{ *db }

// Agents returns the implementation of agent.Store.
func (s *Store) Agents() Agents { return Agents{s.db} }

// Create implements agent.Store.
func (s Agents) Create(
	ctx context.Context, a agent.Agent, m identity.Member, e identity.AuditEntry, l agent.Limits,
) (agent.Agent, error) {
	if a.Skills == nil {
		a.Skills = []string{}
	}
	skills, err := json.Marshal(a.Skills)
	if err != nil {
		return a, fmt.Errorf("encode skills: %w", err)
	}
	profile, err := encodeProfile(&a.Profile)
	if err != nil {
		return a, err
	}
	policy, err := encodePolicy(a.Policy)
	if err != nil {
		return a, err
	}
	err = s.writeOnce(ctx, &a, func(t *tx) error {
		taken, err := t.exists(ctx, `SELECT 1 FROM agents WHERE org_id = $1 AND id = $2`, a.Org, a.ID)
		if err != nil {
			return err
		}
		if taken {
			return errs.New(errs.Conflict, "agent.exists", "the org has an agent %q already; choose another id", a.ID)
		}
		if err := t.createMember(ctx, m); err != nil {
			return err
		}
		if err := t.withinQuota(ctx, a.Org, []identity.Quota{l.Agents}, func(q identity.Quota) (int, error) {
			return countUpTo(ctx, t, q.Most, `agents WHERE org_id = $1`, a.Org)
		}); err != nil {
			return err
		}
		if a.PublicName {
			if err := t.takePublicName(ctx, &a, l); err != nil {
				return err
			}
		}
		words := agent.WordsOf(&a)
		t.exec(`INSERT INTO agents (id, org_id, name, description, skills, public, disabled, pinned, builtin, created_at,
				updated_at, public_name, profile, policy, quota_tasks, quota_per, words_names, words_text, words_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $11)`,
			a.ID, a.Org, a.Name, a.Description, string(skills), flag(a.Public), flag(a.Disabled), a.Pinned, a.Builtin,
			micros(a.CreatedAt), micros(a.UpdatedAt), flag(a.PublicName), profile, policy, a.Quota.Tasks,
			string(a.Quota.Per), words.Names, words.Text)
		t.putRelay(&a)
		t.audit(e)
		t.emitFor(&e, a.Org, event.AgentRegistered, agentSubject(a.ID), event.Members,
			t.hooks.records.Agent(&a, statusOf(&a, dispatch.Load{})))
		return nil
	})
	return a, err
}

// takePublicName returns an error if another agent holds the public name, or if the org has
// reached its quota of public names. The unique index decides a race for a name.
func (t *tx) takePublicName(ctx context.Context, a *agent.Agent, l agent.Limits) error {
	taken, err := t.exists(ctx, `SELECT 1 FROM agents WHERE id = $1 AND public_name = 1`, a.ID)
	if err != nil {
		return err
	}
	if taken {
		return agent.ErrPublicName(a.ID)
	}
	return t.withinQuota(ctx, a.Org, []identity.Quota{l.PublicNames}, func(q identity.Quota) (int, error) {
		return countUpTo(ctx, t, q.Most, `agents WHERE org_id = $1 AND public_name = 1`, a.Org)
	})
}

// Update implements agent.Store. Disabling an agent takes rights away, so the caches of all
// nodes are invalidated.
func (s Agents) Update(
	ctx context.Context, org, id string, l agent.Limits,
	edit func(agent.Agent) (agent.Agent, []identity.AuditEntry, error),
) (agent.Agent, error) {
	var out agent.Agent
	err := s.writeOnce(ctx, &out, func(t *tx) error {
		found, err := agentsWhere(ctx, t, `id = $1 AND org_id = $2`+t.d.forUpdate, id, org)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return errs.ErrNotFound
		}
		if found[0].Profile, err = profileOf(ctx, t, org, id); err != nil {
			return err
		}
		if found[0].Relay, err = t.relayOf(ctx, &found[0]); err != nil {
			return err
		}
		var entries []identity.AuditEntry
		if out, entries, err = edit(found[0]); err != nil {
			return err
		}
		if out.Relay != found[0].Relay {
			t.putRelay(&out)
		}
		if out.PublicName && !found[0].PublicName {
			if err := t.takePublicName(ctx, &out, l); err != nil {
				return err
			}
		}
		skills, err := json.Marshal(out.Skills)
		if err != nil {
			return fmt.Errorf("encode skills: %w", err)
		}
		profile, err := encodeProfile(&out.Profile)
		if err != nil {
			return err
		}
		policy, err := encodePolicy(out.Policy)
		if err != nil {
			return err
		}
		words := agent.WordsOf(&out)
		t.exec(`UPDATE agents SET name = $3, description = $4, skills = $5, public = $6, disabled = $7, pinned = $8,
				updated_at = $9, public_name = $10, profile = $11, policy = $12, quota_tasks = $13, quota_per = $14,
				words_names = $15, words_text = $16, words_at = $9
			WHERE id = $1 AND org_id = $2`,
			id, org, out.Name, out.Description, string(skills), flag(out.Public), flag(out.Disabled), out.Pinned,
			micros(out.UpdatedAt), flag(out.PublicName), profile, policy, out.Quota.Tasks, string(out.Quota.Per),
			words.Names, words.Text)
		t.exec(`UPDATE principals SET name = $3, disabled = $4 WHERE org_id = $1 AND kind = 'agent' AND id = $2`,
			org, id, out.Name, flag(out.Disabled))
		t.newEpoch(org)
		t.audit(entries...)
		return t.emitAgentChanges(ctx, entries, &out)
	})
	return out, err
}

// List implements agent.Store.
func (s Agents) List(ctx context.Context, org string) ([]agent.Agent, error) {
	return agentsWhere(ctx, s.eng, `org_id = $1 ORDER BY id`, org)
}

// Builtin implements agent.Store.
func (s Agents) Builtin(ctx context.Context) ([]agent.Agent, error) {
	return agentsWhere(ctx, s.eng, `builtin <> '' AND disabled = 0 ORDER BY id, org_id`)
}

// Page implements agent.Store.
func (s Agents) Page(ctx context.Context, p agent.Page) ([]agent.Agent, error) {
	if p.Others {
		return agentsWhere(ctx, s.eng, `public = 1 AND disabled = 0 AND org_id <> $1 AND id > $2
			ORDER BY id`+limit(p.Limit), p.Org, p.After)
	}
	return agentsWhere(ctx, s.eng, `org_id = $1 AND id > $2 AND disabled = 0 ORDER BY id`+limit(p.Limit), p.Org, p.After)
}

// Reached implements agent.Store. Each half reads one row by its own index, so the cost does
// not grow with the number of orgs that use the id.
func (s Agents) Reached(ctx context.Context, org, id string) (agent.Reached, error) {
	var out agent.Reached
	found, err := agentsWhere(ctx, s.eng, `org_id = $1 AND id = $2
		UNION ALL SELECT `+agentColumns+` FROM agents
			WHERE id = $2 AND public = 1 AND disabled = 0 AND org_id <> $1`, org, id)
	for i := range found {
		if a := &found[i]; a.Org == org {
			out.Own = a
		} else {
			out.Public = a
		}
	}
	return out, err
}

// IDs implements agent.Store.
func (s Agents) IDs(ctx context.Context, org string) ([]string, error) {
	var out []string
	err := each(ctx, s.eng, func(r rows) error {
		var id string
		err := r.Scan(&id)
		out = append(out, id)
		return err
	}, `SELECT id FROM agents WHERE org_id = $1`, org)
	return out, err
}

const agentColumns = `id, org_id, name, description, skills, public, public_name, disabled, pinned, builtin,
	created_at, updated_at, policy, quota_tasks, quota_per`

func agentsWhere(ctx context.Context, q reader, where string, args ...any) ([]agent.Agent, error) {
	list := []agent.Agent{}
	err := each(ctx, q, func(r rows) error {
		a, err := scanAgent(r)
		list = append(list, a)
		return err
	}, `SELECT `+agentColumns+` FROM agents WHERE `+where, args...)
	return list, err
}

// scanAgent scans the agentColumns, and further columns into more.
func scanAgent(r rows, more ...any) (agent.Agent, error) {
	var a agent.Agent
	var skills, policy, per string
	var public, name, disabled, created, updated int64
	dest := []any{
		&a.ID, &a.Org, &a.Name, &a.Description, &skills, &public, &name, &disabled, &a.Pinned, &a.Builtin,
		&created, &updated, &policy, &a.Quota.Tasks, &per,
	}
	if err := r.Scan(append(dest, more...)...); err != nil {
		return a, err
	}
	if err := json.Unmarshal([]byte(skills), &a.Skills); err != nil {
		return a, fmt.Errorf("decode the skills of %s: %w", a.ID, err)
	}
	a.Public, a.PublicName, a.Disabled = public != 0, name != 0, disabled != 0
	a.CreatedAt, a.UpdatedAt, a.Quota.Per = fromMicros(created), fromMicros(updated), agent.Period(per)
	var err error
	a.Policy, err = decodePolicy(policy)
	return a, err
}
