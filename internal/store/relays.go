package store

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/relay"
	"github.com/parley-dev/parley/internal/task"
)

// Relays stores relays, and the links of their tasks (relays_links.go).
type Relays struct{ *db }

// Relays returns the implementation of relay.Store.
func (s *Store) Relays() Relays { return Relays{s.db} }

const relayColumns = `r.org_id, r.agent_id, r.url, r.credential_type, r.credential, r.credential_set_at, r.card,
	r.checked_at, r.problem, r.updated_at`

func relaysWhere(ctx context.Context, q reader, where string, args ...any) ([]relay.Relay, error) {
	var out []relay.Relay
	err := each(ctx, q, func(rs rows) error {
		var r relay.Relay
		var set, checked, updated int64
		err := rs.Scan(&r.Org, &r.Agent, &r.URL, &r.CredentialType, &r.Credential, &set, &r.Card, &checked, &r.Problem,
			&updated)
		r.CredentialSetAt, r.CheckedAt, r.UpdatedAt = fromMicros(set), fromMicros(checked), fromMicros(updated)
		out = append(out, r)
		return err
	}, `SELECT `+relayColumns+` FROM relays r `+where, args...)
	return out, err
}

// Relays implements relay.Store.
func (s Relays) Relays(ctx context.Context) ([]relay.Relay, error) {
	return relaysWhere(ctx, s.eng, `JOIN agents a ON a.org_id = r.org_id AND a.id = r.agent_id WHERE a.disabled = 0`)
}

// Relay implements relay.Store.
func (s Relays) Relay(ctx context.Context, org, id string) (relay.Relay, error) {
	found, err := relaysWhere(ctx, s.eng, `WHERE r.org_id = $1 AND r.agent_id = $2`, org, id)
	if err == nil && len(found) == 0 {
		err = errs.ErrNotFound
	}
	if err != nil {
		return relay.Relay{}, err
	}
	return found[0], nil
}

// BeginCheck implements relay.Store.
func (s Relays) BeginCheck(ctx context.Context, k task.AgentKey, last, now time.Time) (bool, error) {
	mine := false
	err := s.eng.write(ctx, func(t *tx) (err error) {
		mine, err = t.exists(ctx, `SELECT 1 FROM relays WHERE org_id = $1 AND agent_id = $2 AND checked_at <= $3`+t.d.forUpdate,
			k.Org, k.ID, micros(last))
		if mine && err == nil {
			t.exec(`UPDATE relays SET checked_at = $3 WHERE org_id = $1 AND agent_id = $2`, k.Org, k.ID, micros(now))
		}
		return err
	})
	return mine, err
}

// SetHealth implements relay.Store.
func (s Relays) SetHealth(ctx context.Context, k task.AgentKey, problem string, at time.Time) error {
	return s.eng.add(ctx, func(t *tx) error {
		t.exec(`UPDATE relays SET problem = $3, checked_at = $4 WHERE org_id = $1 AND agent_id = $2`,
			k.Org, k.ID, problem, micros(at))
		return nil
	})
}

// relayOf returns the registration of a relay, or nil for an ordinary agent.
func (t *tx) relayOf(ctx context.Context, a *agent.Agent) (*agent.Relay, error) {
	if a.Builtin != agent.Relayed {
		return nil, nil
	}
	found, err := relaysWhere(ctx, t, `WHERE r.org_id = $1 AND r.agent_id = $2`, a.Org, a.ID)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0].Relay, nil
}

// putRelay writes the registration of a relay. An ordinary agent has none.
func (t *tx) putRelay(a *agent.Agent) {
	r := a.Relay
	if r == nil {
		return
	}
	t.exec(`INSERT INTO relays (org_id, agent_id, url, credential_type, credential, credential_set_at, card, checked_at,
			updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
		ON CONFLICT (org_id, agent_id) DO UPDATE SET url = excluded.url, credential_type = excluded.credential_type,
			credential = excluded.credential, credential_set_at = excluded.credential_set_at, card = excluded.card,
			checked_at = excluded.checked_at, updated_at = excluded.updated_at`,
		a.Org, a.ID, r.URL, r.CredentialType, r.Credential, micros(r.CredentialSetAt), r.Card, micros(a.UpdatedAt))
}
