package cli

import (
	"time"

	"github.com/parley-dev/parley/internal/policy"
	"github.com/parley-dev/parley/sdk/client"
)

// retryFlags say how often a task is tried again.
type retryFlags struct {
	Retries *int           `help:"Try a task that fails again, up to N times; 0 tries it once." placeholder:"N"`
	Backoff *time.Duration `help:"Wait before the first retry; doubles with each further one." placeholder:"DURATION"`
}

// retry returns the retry policy of the flags; nil if none is given.
func (f *retryFlags) retry() (*client.RetryPolicy, error) {
	if f.Retries == nil && f.Backoff == nil {
		return nil, nil
	}
	out := &client.RetryPolicy{}
	if n := f.Retries; n != nil {
		if *n < 0 || *n >= policy.MaxAttempts {
			return nil, usage("--retries must be from 0 to %d", policy.MaxAttempts-1)
		}
		out.MaxAttempts = *n + 1
	}
	if d := f.Backoff; d != nil {
		if *d < 0 || *d > policy.MaxBackoff {
			return nil, usage("--backoff must be from 0 to %s", policy.MaxBackoff)
		}
		out.Backoff = *d
	}
	return out, nil
}

// policy returns the policy of a task; nil if none is given.
func (f *retryFlags) policy(deadline string) (*client.TaskPolicy, error) {
	retry, err := f.retry()
	if err != nil || retry == nil && deadline == "" {
		return nil, err
	}
	out := &client.TaskPolicy{Retry: retry}
	if deadline == "" {
		return out, nil
	}
	if out.Deadline, err = time.Parse(time.RFC3339, deadline); err == nil {
		return out, nil
	}
	out.Deadline = time.Time{}
	if out.Timeout, err = parseDuration(deadline); err != nil || out.Timeout <= 0 || out.Timeout > policy.MaxTimeout {
		return nil, usage("--deadline must be a duration up to 30d, such as 10m, or a time such as 2026-03-02T10:00:00Z")
	}
	return out, nil
}

// policyFlags set the policy of an agent.
type policyFlags struct {
	Timeout    *time.Duration `help:"Tasks without a deadline of their own fail after this time; 0 removes it." placeholder:"DURATION"`
	retryFlags `embed:""`
}

// given reports whether there is such a flag.
func (f *policyFlags) given() bool { return f.Timeout != nil || f.Retries != nil || f.Backoff != nil }

// fields adds the flags to the body of a request. The server replaces the whole policy, so what the
// flags do not set stays as it was before.
func (f *policyFlags) fields(before *client.TaskPolicy, out map[string]any) error {
	if !f.given() {
		return nil
	}
	var p client.TaskPolicy
	if before != nil {
		p = *before
	}
	if d := f.Timeout; d != nil {
		if *d < 0 || *d > policy.MaxTimeout {
			return usage("--timeout must be from 0 to 30d")
		}
		p.Timeout = *d
	}
	retry, err := f.retry()
	if err != nil {
		return err
	}
	if retry != nil {
		if old := p.Retry; old != nil {
			retry.On = old.On
			if f.Retries == nil {
				retry.MaxAttempts = old.MaxAttempts
			}
			if f.Backoff == nil {
				retry.Backoff = old.Backoff
			}
		}
		p.Retry = retry
	}
	out["policy"] = p
	return nil
}

// policy returns the flags for a new agent in a store.
func (f *policyFlags) policy() (policy.Policy, error) {
	out := map[string]any{}
	if err := f.fields(nil, out); err != nil || len(out) == 0 {
		return policy.Policy{}, err
	}
	given := out["policy"].(client.TaskPolicy)
	p := policy.Policy{Timeout: given.Timeout}
	if r := given.Retry; r != nil {
		p.Retry = policy.Retry{Attempts: policy.DefaultAttempts, Backoff: r.Backoff, Lost: true, Failed: true}
		if r.MaxAttempts > 0 {
			p.Retry.Attempts = r.MaxAttempts
		}
	}
	return p, nil
}

type taskRerunCmd struct {
	serverFlags `embed:""`
	quietFlag   `embed:""`
	Agent       string `arg:"" optional:"" help:"Id of the agent."`
	ID          string `arg:"" optional:"" help:"Id of the task that you sent."`
	UID         string `help:"Send a task of any sender to an agent of your org again, by the uid that task list --json shows." placeholder:"UID"`
}

// Help is shown by --help.
func (taskRerunCmd) Help() string {
	return "The new task has the messages, the context and the policy of the old one. Its id is that of the old one with " +
		".2, .3 and so on; its metadata names the old one. --uid needs the scope svc:admin:admin; the new task belongs to " +
		"the sender of the old one.\n\n" + examples(
		"parley task rerun scout cli-4k7…", "parley task watch scout \"$(parley task rerun scout cli-4k7… --quiet)\"",
		"parley task rerun --uid 01k5xb7d2n8f4j6s0a9g3r5w1c",
	)
}

func (c *taskRerunCmd) Run(e *env) error {
	if (c.UID != "") == (c.ID != "") {
		return usage("give the agent and the id of a task, or --uid")
	}
	old := c.ID
	if c.UID != "" {
		old = c.UID
	}
	r, err := c.client(e)
	if err != nil {
		return err
	}
	if err := r.checkOrg(e); err != nil {
		return err
	}
	t, done, err := askAt(e, r, c.JSON, about("task", &old), func(api *client.Client, raw client.Option) (*client.OrgTask, error) {
		if c.UID != "" {
			return api.OrgTasks.Rerun(e.ctx, c.UID, raw)
		}
		return api.Agent(c.Agent).Rerun(e.ctx, c.ID, raw)
	})
	if done {
		return err
	}
	if c.Quiet {
		return e.say("%s", cleanLine(t.ID))
	}
	return e.say("sent task %s to agent %s again as %s", cleanLine(old), cleanLine(t.Agent), cleanLine(t.ID))
}
