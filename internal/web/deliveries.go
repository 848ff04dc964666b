package web

import (
	"net/http"
	"slices"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// deliveriesView is the list of push configurations.
type deliveriesView struct {
	Tabs  []tab
	State delivery.State
	Rows  []deliveryRow
	Pager cursorLinks
}

// deliveryRow is a push configuration without the parts that may be secret.
type deliveryRow struct {
	dispatch.Push
	To       string
	Waiting  int64 // number of undelivered events
	Failures int64
	Dead     bool
}

func newDeliveryRow(p *dispatch.Push) deliveryRow {
	return deliveryRow{
		Push: *p, To: p.Receiver(), Waiting: p.Head - p.Cursor, Failures: int64(p.Attempts), Dead: p.State == delivery.Dead,
	}
}

var deliveryViews = []struct {
	state       delivery.State
	value, name string
}{{delivery.Dead, "", "Given up"}, {delivery.Active, "active", "Active"}, {delivery.Done, "done", "Done"}}

// deliveriesPage lists the push configurations in one state.
func (v *visit) deliveriesPage() error {
	a, err := v.access(identity.ReadTasks)
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	var out deliveriesView
	f := dispatch.PushFilter{State: delivery.State(q.Get("state")), Limit: adminPerPage + 1}
	if f.State == "" {
		f.State = delivery.Dead
	} else if !slices.Contains(delivery.States, f.State) {
		return fieldError("state", "must be one of the tabs")
	}
	if c := q.Get("cursor"); c != "" && !f.Continue(c) {
		return fieldError("cursor", "is not a cursor of this list; open the list again")
	}
	for _, d := range deliveryViews {
		out.Tabs = append(out.Tabs, tab{
			Name: d.name, Href: link(v.base()+"/settings/deliveries", "state", d.value),
			Current: d.state == f.State,
		})
	}
	out.State = f.State
	list, err := v.Tasks.OrgPushes(v.r.Context(), a, f)
	if err != nil {
		return err
	}
	next := ""
	if len(list) > adminPerPage {
		list = list[:adminPerPage]
		next = f.Cursor(&list[adminPerPage-1])
	}
	out.Pager = v.cursorPager(next)
	for i := range list {
		out.Rows = append(out.Rows, newDeliveryRow(&list[i]))
	}
	return render(v, http.StatusOK, "deliveries", "Deliveries", out)
}

// retryDelivery resumes a push configuration that was given up.
func (v *visit) retryDelivery() error {
	a, err := v.access(identity.ManageAgents)
	if err != nil {
		return err
	}
	// The sender chose the id, which may contain any character, so it is in a field and not in the path.
	uid, id := v.value("task"), v.r.PostFormValue("push")
	if !task.ValidUID(uid) || !task.ValidID(id) {
		return errs.ErrNotFound
	}
	ctx, _, err := v.begin()
	if err == nil {
		_, err = v.Tasks.RetryPush(ctx, a, uid, id)
	}
	page := v.base() + "/settings/deliveries"
	if errs.KindOf(err) == errs.Conflict { // the next page shows its state
		return v.back(page, refusal(sentence(err)))
	}
	if err != nil {
		return err
	}
	return v.back(page, "It is tried again now, starting with the event that failed.")
}
