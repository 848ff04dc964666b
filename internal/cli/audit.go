package cli

import (
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

type auditCmd struct {
	serverFlags `embed:""`
	cursorFlags `embed:""`
	Actor       string    `help:"Only actions of this principal; operator is the command line on the store." placeholder:"REF"`
	Action      string    `help:"Only this action, e.g. key.create." placeholder:"ACTION"`
	Target      string    `help:"Only actions on this id or principal." placeholder:"ID"`
	From        time.Time `help:"Only entries at this time or later, e.g. 2026-03-02T10:00:00Z." placeholder:"TIME"`
	To          time.Time `help:"Only entries before this time." placeholder:"TIME"`
}

// Help is shown by --help.
func (auditCmd) Help() string {
	return "Newest first. " + needsAdmin + examples(
		"parley audit",
		"parley audit --actor user:ada --from 2026-03-01T00:00:00Z",
		"parley audit --target agent:scout",
		"parley audit --action key.create --json | jq -r '.entries[].target'",
	)
}

func (c *auditCmd) Run(e *env) error {
	filter := client.AuditListParams{Actor: c.Actor, Action: c.Action, Target: c.Target, From: c.From, To: c.To}
	list, done, err := ask(e, &c.serverFlags, aboutOrg,
		func(api *client.Client, raw client.Option) (*client.Page[client.AuditEntry], error) {
			return api.Audit.List(e.ctx, filter, client.WithQuery(c.query()), raw)
		})
	if done {
		return err
	}
	t := table{
		head: []string{"AT (UTC)", "ACTOR", "ACTION", "TARGET", "OUTCOME", "FROM", "DETAIL"},
		drop: []string{"FROM", "OUTCOME", "DETAIL"},
		wide: c.Wide,
	}
	for _, r := range list.Items {
		outcome := r.Outcome
		if r.Code != "" {
			outcome += ": " + r.Code
		}
		t.add(r.At.UTC().Format("2006-01-02 15:04:05"), r.Actor, r.Action, r.Target, outcome, r.Address, r.Detail)
	}
	return e.pages(&t, "no entries", list.Next)
}
