package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/sdk/client"
)

type agentFindCmd struct {
	serverFlags `embed:""`
	wideFlag    `embed:""`
	Words       []string `arg:"" optional:"" help:"Words of the id, the name, the description and the skills; all must match."`
	Skill       string   `help:"Only agents with this skill tag." placeholder:"TAG"`
	Presence    string   `help:"Only agents that are available, busy or offline." placeholder:"STATUS"`
	Limit       int      `help:"Agents to list, up to 100; ${default} if not given." default:"20"`
	Cursor      string   `help:"Start after this page: next_cursor in the JSON of the page before." placeholder:"CURSOR"`
}

// Help is shown by --help.
func (agentFindCmd) Help() string {
	return "Finds agents that you may call: those of your org, and the public ones of others. Without words it lists " +
		"all. The best matches come first. LEFT is how many tasks your org may still send in this period.\n\n" + examples(
		"parley agent find customs tariff",
		"parley agent find --skill triage --presence available",
		"parley agent find --json | jq -r '.agents[].id'",
	)
}

func (c *agentFindCmd) Run(e *env) error {
	r, err := c.client(e)
	if err != nil {
		return err
	}
	if err := r.checkOrg(e); err != nil {
		return err
	}
	page, done, err := askAt(e, r, c.JSON, aboutOrg,
		func(api *client.Client, raw client.Option) (*client.Page[client.FoundAgent], error) {
			return api.Agents.Find(e.ctx, client.FindParams{
				Words: strings.Join(c.Words, " "), Skill: c.Skill, Presence: client.AgentStatus(c.Presence),
				Cursor: c.Cursor, Limit: c.Limit,
			}, raw)
		})
	if done {
		return err
	}
	t := table{
		head:   []string{"ID", "STATUS", "LEFT", "NAME", "SKILLS", "DESCRIPTION"},
		colour: map[int]func(string) string{1: e.palette().status},
		drop:   []string{"SKILLS", "NAME", "LEFT"},
		wide:   c.Wide,
	}
	for _, a := range page.Items {
		left := ""
		if a.Quota != nil {
			left = fmt.Sprintf("%d of %d", a.Quota.Left, a.Quota.Tasks)
		}
		t.add(a.ID, string(a.Status), left, a.Name, strings.Join(a.Skills, ", "), a.Description)
	}
	return e.list(&t, "agent", "agents", len(page.Items), 1, page.Next != "")
}

type agentUsageCmd struct {
	serverFlags `embed:""`
	wideFlag    `embed:""`
	ID          string `arg:"" optional:"" help:"Id of an agent of your org: what other orgs have used of its quota."`
	Cursor      string `help:"Start after this page: next_cursor in the JSON of the page before." placeholder:"CURSOR"`
}

// Help is shown by --help.
func (agentUsageCmd) Help() string {
	return "Without an id: what your org has used of the quotas of other orgs' agents in the current period. " +
		"With an id, for admins: what other orgs have used of the quota of your agent.\n\n" +
		examples("parley agent usage", "parley agent usage tariffs")
}

func (c *agentUsageCmd) Run(e *env) error {
	t := table{head: []string{"AGENT", "USED", "LEFT", "PER", "RESETS (UTC)"}, wide: c.Wide}
	add := func(name string, u *client.QuotaUsage) {
		t.add(name, strconv.FormatInt(u.Used, 10), strconv.FormatInt(u.Left, 10), string(u.Per), when(u.ResetsAt))
	}
	if c.ID != "" {
		t.head[0] = "ORG"
		got, done, err := ask(e, &c.serverFlags, about("agent", &c.ID),
			func(api *client.Client, raw client.Option) (*client.AgentCallers, error) {
				return api.Agents.Callers(e.ctx, c.ID, raw)
			})
		if done {
			return err
		}
		if got.Quota == nil {
			return e.say("agent %q has no quota, so calls are not counted; set one with parley agent update %s --quota 100/day",
				c.ID, c.ID)
		}
		for i := range got.Callers {
			add(got.Callers[i].Org, &got.Callers[i].QuotaUsage)
		}
		return e.list(&t, "org", "orgs", len(got.Callers), 1, false)
	}
	r, err := c.client(e)
	if err != nil {
		return err
	}
	if err := r.checkOrg(e); err != nil {
		return err
	}
	page, done, err := askAt(e, r, c.JSON, aboutOrg,
		func(api *client.Client, raw client.Option) (*client.Page[client.AgentUsage], error) {
			return api.Agents.Usage(e.ctx, client.UsageParams{Cursor: c.Cursor, Limit: agent.MaxFound}, raw)
		})
	if done {
		return err
	}
	for i := range page.Items {
		add(page.Items[i].Agent, &page.Items[i].QuotaUsage)
	}
	return e.list(&t, "agent", "agents", len(page.Items), 1, page.Next != "")
}

// quotaFlag is --quota: TASKS/PERIOD, or none.
type quotaFlag struct {
	Quota *string `help:"Tasks that each other org may send, such as 100/day, 10/hour or 2/minute; none removes the limit." placeholder:"N/PERIOD"`
}

// parse returns the quota; the zero value is none.
func (f *quotaFlag) parse() (agent.Quota, error) {
	if f.Quota == nil || *f.Quota == "none" {
		return agent.Quota{}, nil
	}
	tasks, per, ok := strings.Cut(*f.Quota, "/")
	n, err := strconv.ParseInt(tasks, 10, 64)
	if !ok || err != nil || n < 1 || n > agent.MaxQuota || !slices.Contains(agent.Periods, agent.Period(per)) {
		return agent.Quota{}, usage("--quota %q must be a number of tasks and minute, hour or day, such as 100/day, or none", *f.Quota)
	}
	return agent.Quota{Tasks: n, Per: agent.Period(per)}, nil
}

// field adds the flag to the body of a request.
func (f *quotaFlag) field(out map[string]any) error {
	q, err := f.parse()
	switch {
	case err != nil || f.Quota == nil:
	case q == (agent.Quota{}):
		out["quota"] = nil
	default:
		out["quota"] = map[string]any{"tasks": q.Tasks, "per": q.Per}
	}
	return err
}
