package web

import (
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/webhook"
)

// attention is something that an admin should look at.
type attention struct {
	ID, Icon, Text string
	At             time.Time // zero: none
	Href           string
}

const (
	overviewAgents = 5
	overviewCounts = 20 // rows that are counted
)

// attention lists what needs an admin: agents without a worker, deliveries that were given up, and
// keys that end soon.
func (v *visit) attention() ([]attention, error) {
	var out []attention
	for _, find := range []func(*visit) ([]attention, error){
		(*visit).unattended, (*visit).deadPushes, (*visit).deadWebhooks, (*visit).endingKeys,
	} {
		list, err := find(v)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// unattended returns the agents with waiting tasks and no worker.
func (v *visit) unattended() ([]attention, error) {
	a, err := v.access(identity.ReadTasks)
	if err != nil {
		return nil, err
	}
	list, err := v.Workers.Unattended(v.r.Context(), a)
	if err != nil {
		return nil, err
	}
	var out []attention
	for i, g := range list {
		if i == overviewAgents {
			more := plural(int64(len(list)-i), "more agent has", "more agents have") + " tasks waiting and no worker"
			out = append(out, attention{ID: "agents", Icon: "agent", Text: more, Href: v.base() + "/agents"})
			break
		}
		waiting := plural(int64(g.Waiting), "task waits", "tasks wait")
		if g.Waiting == dispatch.MaxUnattended {
			waiting = fmt.Sprintf("%d or more tasks wait", g.Waiting)
		}
		out = append(out, attention{
			ID: "agent-" + g.ID, Icon: "agent", Text: waiting + " for " + g.ID + ", which is offline", Href: v.agentPath(g.ID),
		})
	}
	return out, nil
}

// upTo formats a number that was counted up to overviewCounts.
func upTo(n int, one, many string) string {
	if n > overviewCounts {
		return fmt.Sprintf("More than %d %s", overviewCounts, many)
	}
	return plural(int64(n), one, many)
}

// deadPushes returns the push notifications of tasks that were given up.
func (v *visit) deadPushes() ([]attention, error) {
	a, err := v.access(identity.ReadTasks)
	if err != nil {
		return nil, err
	}
	list, err := v.Tasks.OrgPushes(v.r.Context(), a, dispatch.PushFilter{State: delivery.Dead, Limit: overviewCounts + 1})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return []attention{{
		ID: "pushes", Icon: "task", Href: v.base() + "/settings/deliveries",
		Text: upTo(len(list), "push notification was given up", "push notifications were given up"),
	}}, nil
}

// deadWebhooks returns the webhooks that were given up.
func (v *visit) deadWebhooks() ([]attention, error) {
	a, err := v.access(identity.ManageWebhooks)
	if err != nil {
		return nil, err
	}
	list, err := v.Webhooks.List(v.r.Context(), a)
	if err != nil {
		return nil, err
	}
	n := 0
	for i := range list {
		if list[i].State == webhook.Failed {
			n++
		}
	}
	if n == 0 {
		return nil, nil
	}
	return []attention{{
		ID: "webhooks", Icon: "webhook", Href: link(v.base()+"/webhooks", "state", string(webhook.Failed)),
		Text: plural(int64(n), "webhook was given up", "webhooks were given up"),
	}}, nil
}

// endingKeys returns the keys that end soon.
func (v *visit) endingKeys() ([]attention, error) {
	a, err := v.access(identity.ReadKeys)
	if err != nil {
		return nil, err
	}
	list, err := v.OrgAdmin.Keys(v.r.Context(), a, identity.KeyFilter{
		State: identity.KeyLive, EndsWithin: endsSoon, Limit: overviewCounts + 1,
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	first := list[0].ExpiresAt
	for i := range list {
		if list[i].ExpiresAt.Before(first) {
			first = list[i].ExpiresAt
		}
	}
	return []attention{{
		ID: "keys", Icon: "key", At: first, Href: link(v.base()+"/keys", "view", "ends"),
		Text: upTo(len(list), "key ends", "keys end") + " within 14 days",
	}}, nil
}
