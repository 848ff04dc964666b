package cli

import (
	"net/http"
	"time"
)

type auditCmd struct {
	serverFlags `embed:""`
	pageFlags   `embed:""`
	Actor       string    `help:"Only what this principal did; operator is the command line on the store." placeholder:"REF"`
	Action      string    `help:"Only this action, e.g. key.create." placeholder:"ACTION"`
	Target      string    `help:"Only what was done to this id or principal." placeholder:"ID"`
	From        time.Time `help:"Only entries at this time or later, e.g. 2026-03-02T10:00:00Z." placeholder:"TIME"`
	To          time.Time `help:"Only entries before this time." placeholder:"TIME"`
}

// Help is shown by --help.
func (auditCmd) Help() string {
	return "Newest first. Needs the scope svc:admin:admin.\n\n" + examples(
		"parley audit",
		"parley audit --actor user:ada --from 2026-03-01T00:00:00Z",
		"parley audit --target agent:scout",
		"parley audit --action key.create --json | jq -r '.entries[].target'",
	)
}

func (c *auditCmd) Run(e *env) error {
	query := c.query()
	for name, value := range map[string]*string{
		"actor": &c.Actor, "action": &c.Action, "target": &c.Target, "from": timestamp(c.From), "to": timestamp(c.To),
	} {
		if value != nil && *value != "" {
			query.Set(name, *value)
		}
	}
	var list struct {
		Entries []struct {
			At      time.Time `json:"at"`
			Actor   string    `json:"actor"`
			Action  string    `json:"action"`
			Target  string    `json:"target"`
			Detail  string    `json:"detail"`
			Outcome string    `json:"outcome"`
			Code    string    `json:"code"`
			Address string    `json:"address"`
		} `json:"entries"`
		Next *string `json:"next_cursor"`
	}
	if done, err := c.ask(e, call{method: http.MethodGet, path: "/audit", query: query}, &list); done {
		return err
	}
	t := table{head: []string{"AT (UTC)", "ACTOR", "ACTION", "TARGET", "OUTCOME", "FROM", "DETAIL"}}
	for _, r := range list.Entries {
		outcome := r.Outcome
		if r.Code != "" {
			outcome += ": " + r.Code
		}
		t.add(r.At.UTC().Format("2006-01-02 15:04:05"), r.Actor, r.Action, r.Target, outcome, r.Address, r.Detail)
	}
	return e.pages(&t, "no entries", list.Next)
}
