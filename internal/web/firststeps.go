package web

import (
	"net/http"
	"strings"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

func (p *Pages) mountFirstSteps() {
	p.orgPages(map[string]handler{
		"GET /start":       (*visit).firstSteps,
		"POST /start/hide": (*visit).hideSteps,
	})
}

// orgStart redirects to the first page of the org: the overview, but for admins the first steps,
// until all are done or the list is hidden.
func (v *visit) orgStart() error {
	to := v.base() + "/overview"
	if v.may(identity.ManageAgents) && !v.stepsHidden() {
		steps, err := v.steps()
		if err != nil {
			return err
		}
		if stepsLeft(steps) > 0 {
			to = v.base() + "/start"
		}
	}
	http.SetCookie(v.w, v.cookie(orgCookie, v.member.Org, "/login"))
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// step is an entry of the checklist. Whether it is done follows from the data of the org.
type step struct {
	ID    string
	Title string
	Text  string // explanation
	Href  string // page to do it
	Do    string // text of the link
	See   string // page of the result
	Done  bool
	Next  bool // the first step that is not done
}

func stepsLeft(steps []step) int {
	n := 0
	for i := range steps {
		if !steps[i].Done {
			n++
		}
	}
	return n
}

// startView is the checklist.
type startView struct {
	Steps  []step
	Done   int
	Hidden bool
}

// All reports whether all steps are done.
func (s startView) All() bool { return s.Done == len(s.Steps) }

func (v *visit) firstSteps() error {
	if _, err := v.access(identity.ManageAgents); err != nil {
		return err
	}
	steps, err := v.steps()
	if err != nil {
		return err
	}
	view := startView{Steps: steps, Done: len(steps) - stepsLeft(steps), Hidden: v.stepsHidden()}
	return render(v, http.StatusOK, "start", "First steps", view)
}

// hideCookie remembers in the browser that the user hid the checklist.
const hideCookie = "parley_start"

func (v *visit) stepsHidden() bool {
	c, err := v.r.Cookie(hideCookie)
	return err == nil && c.Value == "hidden"
}

// hideSteps hides or shows the checklist.
func (v *visit) hideSteps() error {
	if _, err := v.access(identity.ManageAgents); err != nil {
		return err
	}
	c := v.cookie(hideCookie, "hidden", v.base())
	if v.value("show") != "" {
		c.MaxAge = -1
		http.SetCookie(v.w, c)
		return v.done(v.base()+"/start", "")
	}
	http.SetCookie(v.w, c)
	return v.done(v.base()+"/overview", "The first steps are hidden. You find them at "+v.base()+"/start.")
}

const aYear = 365 * 24 * 60 * 60

// cookie returns a cookie for a preference.
func (p *Pages) cookie(name, value, path string) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: path, MaxAge: aYear, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: strings.HasPrefix(p.PublicURL, "https://"),
	}
}

// steps returns the checklist with the progress of the org.
func (v *visit) steps() ([]step, error) {
	invited, err := v.invited()
	if err != nil {
		return nil, err
	}
	own, err := v.ownAgents()
	if err != nil {
		return nil, err
	}
	connected, sent, err := v.firstAgent(own)
	if err != nil {
		return nil, err
	}
	filed, err := v.filed()
	if err != nil {
		return nil, err
	}
	agents, one := v.base()+"/agents", ""
	if len(own) > 0 {
		one = v.agentPath(own[0].ID)
	}
	at := func(path, otherwise string) string {
		if one == "" {
			return otherwise
		}
		return one + path
	}
	list := []step{
		{
			ID: "invite", Title: "Invite people", Done: invited, Href: v.base() + "/members", Do: "Invite",
			See:  v.base() + "/members",
			Text: "Proposals are decided by people. An invitation is a link that works once.",
		},
		{
			ID: "agent", Title: "Register an agent", Done: len(own) > 0, Href: agents + "/new", Do: "Register",
			See:  agents,
			Text: "An agent has a name, a URL and a card that describes what it can do.",
		},
		{
			ID: "connect", Title: "Connect its worker", Done: connected, Href: at("/connect", agents+"/new"),
			Do: "Connect", See: at("/connect", agents),
			Text: "A worker is your program that does the agent's tasks. It needs a key and ten lines of code.",
		},
		{
			ID: "task", Title: "Send it a task", Done: sent, Href: at("#send", agents+"/new"), Do: "Send a task",
			See:  at("", agents),
			Text: "Tasks wait for a worker, survive restarts, and return text or files.",
		},
		{
			ID: "proposal", Title: "File the first proposal", Done: filed, Href: v.base() + "/proposals/new",
			Do: "Write one", See: v.base() + "/proposals",
			Text: "A problem and a suggested fix. Members vote, an admin decides, and approval creates a follow-up.",
		},
	}
	for i := range list {
		if !list[i].Done {
			list[i].Next = true
			break
		}
	}
	return list, nil
}

// invited reports whether the org has a second user or an open invitation.
func (v *visit) invited() (bool, error) {
	a, err := v.access(identity.ReadMembers)
	if err != nil {
		return false, err
	}
	ctx := v.r.Context()
	people, err := v.OrgAdmin.Members(ctx, a, identity.MemberFilter{Kind: identity.User, Limit: 2})
	if err != nil || len(people) > 1 {
		return err == nil, err
	}
	list, err := v.OrgAdmin.Invitations(ctx, a, "", 20)
	for i := range list {
		if s := list[i].State(v.Now()); s == identity.InvitationOpen || s == identity.InvitationAccepted {
			return true, err
		}
	}
	return false, err
}

// ownAgents returns the agents that workers of the org serve.
func (v *visit) ownAgents() ([]agent.Agent, error) {
	a, err := v.access(identity.ReadAgents)
	if err != nil {
		return nil, err
	}
	all, err := v.Agents.Visible(v.r.Context(), a)
	if err != nil {
		return nil, err
	}
	var own []agent.Agent
	for i := range all {
		if all[i].Builtin == "" {
			own = append(own, all[i])
		}
	}
	return own, nil
}

// maxLooked limits the number of agents that the checklist reads.
const maxLooked = 20

// firstAgent reports whether one of the agents ever had a worker, and whether one was ever sent a
// task.
func (v *visit) firstAgent(own []agent.Agent) (connected, sent bool, err error) {
	a, err := v.access(identity.ReadTasks)
	if err != nil {
		return false, false, err
	}
	for i := range own {
		if i == maxLooked || connected && sent {
			break
		}
		list, err := v.Tasks.OrgTasks(v.r.Context(), a, dispatch.Filter{Agent: own[i].ID, Limit: 1})
		if err != nil {
			return false, false, err
		}
		sent = sent || len(list) > 0
		if !connected {
			if connected, err = v.everConnected(&own[i]); err != nil {
				return false, false, err
			}
		}
	}
	return connected, sent, nil
}

// filed reports whether the org has a proposal of any status.
func (v *visit) filed() (bool, error) {
	a, err := v.access(identity.ListProposals)
	if err != nil {
		return false, err
	}
	page, err := v.Proposals.List(v.r.Context(), a, proposal.Query{Status: proposal.All, Limit: 1})
	return page.Total > 0, err
}
