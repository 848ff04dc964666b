package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// made is the result of a command: a record and, for some commands, a secret.
type made struct {
	Record any
	Secret string
}

// repeatable returns the commands of admins that an idempotency key makes safe to repeat.
func (w *world) repeatable() map[string]func(ctx context.Context) (made, error) {
	m, ann := w.manage()
	clients := w.oauth()
	ctx := w.Context()
	key, _, err := m.CreateKey(ctx, ann, identity.KeyRequest{
		Principal: principal("service:crm"), Scopes: []string{"svc:tasks:read"},
	})
	w.must(err)
	client, _, err := clients.CreateClient(ctx, ann, oauth.ClientRequest{
		Name: "Old", RedirectURIs: []string{"https://old.example/cb"}, Method: oauth.SecretBasic,
	})
	w.must(err)
	disabled := true
	with := func(record any, secret string, err error) (made, error) { return made{record, secret}, err }
	return map[string]func(ctx context.Context) (made, error){
		"create a member": func(ctx context.Context) (made, error) {
			r, err := m.CreateMember(ctx, ann, identity.User, "bob", "Bob", true)
			return made{Record: r}, err
		},
		"disable a member": func(ctx context.Context) (made, error) {
			r, err := m.UpdateMember(ctx, ann, principal("agent:scout"), identity.MemberEdit{Disabled: &disabled})
			return made{Record: r}, err
		},
		"create an agent": func(ctx context.Context) (made, error) {
			r, err := w.agents.Create(ctx, agent.Agent{
				ID: "late", Org: "acme", Name: "Late", Skills: []string{"x"}, Public: true,
			})
			return made{Record: r}, err
		},
		"change an agent": func(ctx context.Context) (made, error) {
			name := "Renamed"
			r, err := w.agents.Update(ctx, "acme", "scout", agent.Edit{Name: &name})
			return made{Record: r}, err
		},
		"create a key": func(ctx context.Context) (made, error) {
			return with(m.CreateKey(ctx, ann, identity.KeyRequest{
				Principal: principal("service:crm"), Scopes: []string{"svc:tasks:read"}, Name: "n",
			}))
		},
		"rotate a key": func(ctx context.Context) (made, error) { return with(m.RotateKey(ctx, ann, key.ID, time.Minute)) },
		"make a link": func(ctx context.Context) (made, error) {
			token, l, err := w.people().ResetLink(ctx, w.as(ann, identity.ManageMembers), principal("user:ann"), time.Hour)
			return with(l, token, err)
		},
		"create an own key": func(ctx context.Context) (made, error) {
			return with(m.CreateOwnKey(ctx, ann.Caller(), identity.KeyRequest{Scopes: []string{"svc:tasks:read"}}))
		},
		"invite": func(ctx context.Context) (made, error) {
			return with(m.Invite(ctx, ann, identity.InvitationRequest{User: "cy", Admin: true}))
		},
		"create a client": func(ctx context.Context) (made, error) {
			return with(clients.CreateClient(ctx, ann, oauth.ClientRequest{
				Name: "New", RedirectURIs: []string{"https://new.example/cb"}, Method: oauth.SecretBasic,
			}))
		},
		"rotate a client": func(ctx context.Context) (made, error) {
			return with(clients.RotateClient(ctx, ann, client.ID, time.Minute))
		},
	}
}

// once puts an idempotency key of ann into the context.
func (w *world) once(operation, body, credential string) (context.Context, *idempotency.Once) {
	k, err := idempotency.New(operation, "k1", []byte(body))
	w.must(err)
	ctx, once, err := idempotency.Begin(w.Context(), k, "acme", "user:ann", credential)
	w.must(err)
	return ctx, once
}

func testManageOnce(w *world) {
	for name, do := range w.repeatable() {
		ctx, once := w.once(name, "body", "credential")
		first, err := do(ctx)
		if err != nil || once.Replayed() {
			w.Errorf("%s: replayed = %v, %v, want false", name, once.Replayed(), err)
			continue
		}
		ctx, once = w.once(name, "body", "credential")
		again, err := do(ctx)
		if err != nil || !once.Replayed() {
			w.Errorf("%s again: replayed = %v, %v, want true", name, once.Replayed(), err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			w.Errorf("%s: diff of the replay (-want +got):\n%s", name, diff)
		}
		ctx, _ = w.once(name, "another body", "credential")
		if _, err := do(ctx); err != idempotency.ErrReused {
			w.Errorf("%s with another body = %v, want %v", name, err, idempotency.ErrReused)
		}
		if first.Secret == "" {
			continue
		}
		ctx, _ = w.once(name, "body", "another credential")
		if got, err := do(ctx); errs.KindOf(err) != errs.Conflict || errs.As(err).Code != idempotency.ErrSealed.Code {
			w.Errorf("%s with another credential = %v, %v, want code %s", name, got, err, idempotency.ErrSealed.Code)
		}
	}
}

// audited returns the number of entries in the org's audit log.
func (w *world) audited() int {
	entries, err := w.store.Audit().List(w.Context(), "acme", identity.AuditFilter{Limit: 1000})
	w.must(err)
	return len(entries)
}

// testRacingManageOnce sends each command several times concurrently. It runs once, all callers
// get its outcome, and the audit log has one entry.
func testRacingManageOnce(w *world) {
	for name, do := range w.repeatable() {
		const many = 6
		before := w.audited()
		var wg sync.WaitGroup
		got := make([]made, many)
		fresh := make([]bool, many)
		for i := range many {
			ctx, once := w.once(name, "body", "credential")
			wg.Go(func() {
				var err error
				if got[i], err = do(ctx); err != nil {
					w.Errorf("%s = %v, want no error", name, err)
				}
				fresh[i] = !once.Replayed()
			})
		}
		wg.Wait()
		n := 0
		for i := range got {
			if diff := cmp.Diff(got[0], got[i]); diff != "" {
				w.Errorf("%s: diff of the replay (-want +got):\n%s", name, diff)
			}
			if fresh[i] {
				n++
			}
		}
		if n != 1 {
			w.Errorf("%s ran %d times, want 1", name, n)
		}
		if n := w.audited() - before; n != 1 {
			w.Errorf("%s: audit entries = %d, want 1", name, n)
		}
	}
}
