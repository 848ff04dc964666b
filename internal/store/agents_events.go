package store

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
)

func agentSubject(id string) string { return "agent:" + id }

// agentEvents are the events of the audited changes of an agent, and of its member. Members that
// are agents have no events of their own, so that one change is reported once.
var agentEvents = map[identity.AuditAction]event.Type{
	identity.AgentUpdate:   event.AgentChanged,
	identity.AgentDisable:  event.AgentDisabled,
	identity.AgentEnable:   event.AgentEnabled,
	identity.MemberUpdate:  event.AgentChanged,
	identity.MemberDisable: event.AgentDisabled,
	identity.MemberEnable:  event.AgentEnabled,
}

// emitAgentChanges adds an event for each audited change of an agent, whose profile is known.
func (t *tx) emitAgentChanges(ctx context.Context, entries []identity.AuditEntry, a *agent.Agent) error {
	if len(entries) == 0 {
		return nil
	}
	load, err := t.loadOf(ctx, a, a.UpdatedAt, "")
	if err != nil {
		return err
	}
	data := t.hooks.records.Agent(a, statusOf(a, load))
	for i := range entries {
		if kind, ok := agentEvents[entries[i].Action]; ok && entries[i].Outcome == identity.Done {
			t.emitFor(&entries[i], a.Org, kind, agentSubject(a.ID), event.Members, data)
		}
	}
	return nil
}

// emitAgentMember adds the events of the change of a member that is an agent. Without a record of
// the agent they are events of the member.
func (t *tx) emitAgentMember(
	ctx context.Context, entries []identity.AuditEntry, m *identity.Member, at time.Time,
) error {
	found, err := agentsWhere(ctx, t, `id = $1 AND org_id = $2`+t.d.forUpdate, m.ID, m.Org)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		t.emitMemberChanges(entries, m)
		return nil
	}
	a := &found[0]
	if a.Profile, err = profileOf(ctx, t, a.Org, a.ID); err != nil {
		return err
	}
	a.Name, a.Disabled, a.UpdatedAt = m.Name, m.Disabled, at
	return t.emitAgentChanges(ctx, entries, a)
}

// loadOf reads the load of an agent, without the worker of the given name.
func (t *tx) loadOf(ctx context.Context, a *agent.Agent, at time.Time, without string) (dispatch.Load, error) {
	var l dispatch.Load
	_, err := one(ctx, t, []any{&l.Capacity}, `SELECT CAST(coalesce(sum(capacity), 0) AS BIGINT) FROM workers
		WHERE org_id = $1 AND agent_id = $2 AND seen_at > $3 AND name <> $4`,
		a.Org, a.ID, micros(at.Add(-dispatch.GoneAfter)), without)
	if err != nil {
		return l, err
	}
	_, err = one(ctx, t, []any{&l.Leased}, `SELECT count(*) FROM tasks`+t.d.by("tasks_leases")+`
		WHERE lease_expires > 0 AND org_id = $1 AND agent_id = $2`, a.Org, a.ID)
	return l, err
}

// statusOf returns the status that others see.
func statusOf(a *agent.Agent, l dispatch.Load) string {
	if a.Pinned != "" {
		return a.Pinned
	}
	return string(l.Presence())
}

// setOnline records whether an agent has a worker, and adds the event of the change. A pinned
// status hides the change, so there is no event.
func (t *tx) setOnline(ctx context.Context, a *agent.Agent, online bool, l dispatch.Load, at time.Time) (err error) {
	t.exec(`UPDATE agents SET online = $3 WHERE org_id = $1 AND id = $2`, a.Org, a.ID, flag(online))
	if a.Pinned != "" {
		return nil
	}
	if a.Profile, err = profileOf(ctx, t, a.Org, a.ID); err != nil {
		return err
	}
	t.emit(event.New(a.Org, event.AgentPresence, at, agentSubject(a.ID), event.System, event.Members,
		t.hooks.records.Agent(a, statusOf(a, l))))
	return nil
}

// joined makes the agent of a worker online, unless it is.
func (t *tx) joined(ctx context.Context, w *dispatch.Worker) error {
	found, err := agentsWhere(ctx, t, `org_id = $1 AND id = $2 AND online = 0`+t.d.forUpdate, w.Org, w.Agent)
	if err != nil || len(found) == 0 {
		return err
	}
	l, err := t.loadOf(ctx, &found[0], w.SeenAt, w.Name)
	if err != nil {
		return err
	}
	l.Capacity += w.Capacity // its row is not written yet
	return t.setOnline(ctx, &found[0], true, l, w.SeenAt)
}

const maxPresences = 100

// presenceChanges returns the conditions of agents that went online and offline. A worker that
// works on a task need not ask for more, so a lease is a sign of life.
//
// Most agents may have no worker. So the search for agents that went online starts with the
// workers, and the other one with the agents that are online, which have an index.
func (d *dialect) presenceChanges() map[bool]string {
	leased := `EXISTS (SELECT 1 FROM tasks t` + d.by("tasks_leases") + `
		WHERE t.lease_expires > 0 AND t.org_id = agents.org_id AND t.agent_id = agents.id)`
	return map[bool]string{
		true: `online = 0 AND (org_id, id) IN (SELECT w.org_id, w.agent_id FROM workers w WHERE w.seen_at > $1)`,
		false: `online = 1 AND NOT EXISTS (SELECT 1 FROM workers w
			WHERE w.org_id = agents.org_id AND w.agent_id = agents.id AND w.seen_at > $1) AND NOT ` + leased,
	}
}

// UpdatePresences implements dispatch.WorkerStore. Of several nodes that notice a change, one
// locks the row and reports it; the others skip it or no longer find it.
func (ws Workers) UpdatePresences(ctx context.Context, at time.Time) (int, error) {
	since, changed := micros(at.Add(-dispatch.GoneAfter)), 0
	for online, where := range ws.d.presenceChanges() {
		var n int
		found, err := one(ctx, ws.eng, []any{&n}, `SELECT 1 FROM agents WHERE `+where+limit(1), since)
		if err != nil {
			return changed, err
		}
		if !found { // the rule: a write would cost a commit
			continue
		}
		var list []agent.Agent
		err = ws.eng.write(ctx, func(x *tx) (err error) {
			list, err = agentsWhere(ctx, x, where+` ORDER BY org_id, id`+limit(maxPresences)+x.d.skipLocked, since)
			for i := 0; i < len(list) && err == nil; i++ {
				var l dispatch.Load
				if l, err = x.loadOf(ctx, &list[i], at, ""); err == nil {
					err = x.setOnline(ctx, &list[i], online, l, at)
				}
			}
			return err
		})
		if err != nil {
			return changed, err
		}
		changed += len(list)
	}
	return changed, nil
}
