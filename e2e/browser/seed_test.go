package browser

import (
	"fmt"
	"strings"
	"time"
)

// seeded holds ids of a seed, for the pages of single objects.
type seeded struct {
	root, scout, fixer api // an admin's key, and those of two agents

	open     string // ids of proposals: one with votes, evidence and history
	mine     string // one of the member bob
	approved string
	rejected string
	resolved string
	decided  string // one with a hostile note
	hostile  string // one with every field hostile
	long     string // one with a title of 200 characters without a space
	followup string
	keyID    string // id of a key that expires soon
	client   string
	invited  string // id of an invitation
	hook     string // id of a webhook with deliveries

	worker      api    // key of the agent runner
	taskUID     string // uid of a task with two attempts
	hostileTask string // id of a task with hostile texts and files, and its uid
	hostileUID  string

	marks []string // hostile texts; each must show as text
}

const (
	read, write, administer = "svc:tasks:read", "svc:tasks:write", "svc:admin:admin"
	sendTasks, serveTasks   = "svc:a2a:write", "svc:a2a:serve"
)

// subjects are proposals of agents: title, category, problem, fix.
var subjects = [][4]string{
	{
		"Retry failed webhook deliveries",
		"reliability",
		"A delivery that fails once is lost.",
		"Retry with backoff for a day.",
	},
	{
		"Cache the package index between builds",
		"performance",
		"Every build downloads 400 MB.",
		"Keep the index in a shared cache.",
	},
	{
		"Rotate the deploy token each month",
		"security",
		"The token is two years old.",
		"Let the pipeline make a short-lived one.",
	},
	{
		"Say who reviews what",
		"process",
		"Reviews wait for days because nobody feels asked.",
		"Name an owner for each folder.",
	},
	{"Export reports as CSV", "feature", "People copy numbers by hand.", "Add a button next to the table."},
	{
		"Describe how to restore a backup",
		"documentation",
		"The last drill took four hours.",
		"Write the steps down, and test them.",
	},
}

// seeding makes calls until one fails.
type seeding struct {
	*seeded
	s   *site
	err error
}

func (d *seeding) do(a api, line string, body any) object {
	if d.err != nil {
		return object{}
	}
	status, out, err := a.call(line, body)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("%s: %d %v", line, status, out)
	}
	d.err = err
	return out
}

func (d *seeding) id(a api, line string, body any) string {
	id, _ := d.do(a, line, body)["id"].(string)
	return id
}

func (d *seeding) keyOf(principal string, scopes ...string) api {
	a, err := d.s.keyOf(principal, scopes...)
	if d.err == nil {
		d.err = err
	}
	return a
}

// seed fills the org like a busy one; more adds to it, such as hostile texts.
func (s *site) seed(more ...func(*seeding)) (*seeded, error) {
	d := &seeding{seeded: &seeded{}, s: s}
	d.calm()
	for _, add := range more {
		add(d)
	}
	return d.seeded, d.err
}

func (d *seeding) calm() {
	d.root = d.keyOf("user:admin", read, write, administer, sendTasks)
	for _, a := range [][3]string{
		{"scout", "Scout", "Finds what is slow."},
		{"fixer", "Fixer", "Mends what broke."},
		{"idle", "Idle", ""},
	} {
		d.do(
			d.root,
			"POST /agents",
			object{"id": a[0], "name": a[1], "description": a[2], "skills": []string{"review", "build"}},
		)
	}
	d.scout, d.fixer = d.keyOf("agent:scout", read, write), d.keyOf("agent:fixer", read, write, serveTasks)
	d.people()
	d.proposals()
	d.frictions()
	d.work()
	d.access()
	d.hooks()
	d.tasks()
	d.do(d.root, "POST /agents", object{"id": relayed, "relay": object{"url": remoteAgent().URL}})
}

// hooks adds a webhook with deliveries; it is paused, so that nothing changes by itself.
func (d *seeding) hooks() {
	d.hook = d.id(d.root, "POST /webhooks", object{
		"url": receiver().URL + "/hooks/secret", "description": "Tickets", "state": "paused",
		"types": []string{"proposal.approved", "proposal.rejected", "webhook.failed", "agent.presence"},
	})
	d.do(d.root, "POST /webhooks/"+d.hook+"/ping", nil)
	d.do(d.root, "POST /webhooks", object{
		"url": "https://chat.example.com/T0/B0", "format": "slack", "state": "paused", "priorities": []string{"high"},
	})
}

func (d *seeding) people() {
	for _, m := range []object{
		{"kind": "user", "id": "bob", "name": "Bob Example"},
		{"kind": "user", "id": "carol", "name": "Carol Shaw"},
		{"kind": "user", "id": "dan", "name": "Dan Ingalls", "admin": true},
		{"kind": "service", "id": "ci", "name": "Build server"},
		{"kind": "user", "id": "gone", "name": "Gone Person"},
	} {
		d.do(d.root, "POST /members", m)
	}
	d.do(d.root, "PATCH /members/user:gone", object{"disabled": true})
	d.invited = d.id(d.root, "POST /invitations", object{"user": "erin", "name": "Erin Example"})
	d.do(d.root, "POST /invitations", object{"user": "frank", "admin": true, "expires_in_seconds": 3600})
	if old := d.id(d.root, "POST /invitations", object{"user": "grace"}); d.err == nil {
		d.do(d.root, "DELETE /invitations/"+old, nil)
	}
}

func (d *seeding) proposals() {
	carol, dan := d.keyOf("user:carol", read, write), d.keyOf("user:dan", read, write)
	voters := []api{d.root, carol, dan, d.scout, d.fixer}
	for i := range 50 {
		s := subjects[i%len(subjects)]
		by := []api{d.scout, d.scout, d.fixer, carol}[i%4]
		priority := "normal"
		if i%7 == 0 {
			priority = "high"
		}
		title := s[0]
		if i >= len(subjects) {
			title = fmt.Sprintf("%s (part %d)", s[0], i/len(subjects)+1)
		}
		id := d.id(by, "POST /proposals", object{
			"title": title, "category": s[1], "problem": s[2] + "\n\nSeen " + fmt.Sprint(i+2) + " times.", "suggested_fix": s[3],
			"priority": priority,
		})
		for n, v := range voters {
			if (i+n)%3 == 0 || i == 0 {
				vote := []string{"for", "for", "against"}[(i+n)%3]
				d.do(
					v,
					"POST /proposals/"+id+"/vote",
					object{"vote": vote, "comment": []string{"", "I lost an hour to this last week."}[n%2]},
				)
			}
		}
		if i == 0 {
			d.open = id
		}
	}
	d.do(
		d.scout,
		"PATCH /proposals/"+d.open,
		object{
			"suggested_fix": "Retry with backoff for a day.\n\n1. after a minute\n2. after an hour\n\n`max_attempts = 12`",
		},
	)
	bob := d.keyOf("user:bob", read, write)
	d.mine = d.id(
		bob,
		"POST /proposals",
		object{
			"title":         "Keep the minutes",
			"category":      "process",
			"problem":       "Nobody knows what was said.",
			"suggested_fix": "Write it down.",
		},
	)
	d.long = d.id(d.scout, "POST /proposals", object{
		"title": strings.Repeat(
			"w",
			200,
		), "category": "process", "problem": strings.Repeat("x", 3000), "suggested_fix": strings.Repeat("y", 300),
	})
}

// decide submits a proposal and moves it through statuses.
func (d *seeding) decide(title string, to ...string) string {
	id := d.id(
		d.fixer,
		"POST /proposals",
		object{"title": title, "category": "process", "problem": "It is so.", "suggested_fix": "Let it be otherwise."},
	)
	for _, status := range to {
		d.do(
			d.root,
			"PATCH /proposals/"+id,
			object{"status": status, "resolution_note": "Decided in the weekly round: " + status + "."},
		)
	}
	return id
}

func (d *seeding) frictions() {
	for i := range 4 {
		d.do(d.scout, "POST /friction", object{
			"fingerprint": "registry:timeout", "title": "The registry times out", "category": "reliability",
			"problem":  "Pulls of large images fail.",
			"evidence": fmt.Sprintf("504 after 60 s in job %d", i), "occurrence": fmt.Sprintf("run-%d", i),
		})
	}
	d.do(d.fixer, "POST /friction", object{
		"fingerprint": "tests:flaky", "title": "A test fails now and then", "category": "reliability",
		"problem": "TestClock fails on Mondays.", "evidence": "exit status 1",
	})
}

func (d *seeding) work() {
	for i := range 3 {
		d.approved = d.decide(fmt.Sprintf("Move the nightly job to 03:00 (%d)", i+1), "approved")
	}
	d.do(d.root, "POST /notes", object{"title": "Out of scope", "text": "This is out of scope for this quarter."})
	d.rejected = d.decide("Rewrite everything", "rejected")
	d.decide("Paint the office", "rejected")
	d.resolved = d.decide("Pin the compiler's version", "approved", "resolved")
	for _, status := range []string{"", "in_progress", "done", "canceled"} {
		id := d.id(
			d.root,
			"POST /followups",
			object{"title": "By hand: " + status, "description": "Ask the team first.", "assignee": "user:carol"},
		)
		if status == "" {
			d.followup = id
			continue
		}
		d.do(d.root, "PATCH /followups/"+id, object{"status": status})
	}
	d.do(d.root, "POST /followups", object{"title": "For an agent", "description": "Do it.", "assignee": "agent:fixer"})
}

func (d *seeding) access() {
	soon := time.Now().Add(50 * time.Hour).UTC().Format(time.RFC3339)
	d.keyID = d.id(
		d.root,
		"POST /keys",
		object{"principal": "agent:scout", "scopes": []string{read, write}, "name": "staging", "expires_at": soon},
	)
	if old := d.id(d.root, "POST /keys", object{
		"principal": "agent:fixer", "scopes": []string{read},
		"name": "rotated",
	}); d.err == nil {
		d.do(d.root, "POST /keys/"+old+"/rotate", object{"overlap_seconds": 86400})
	}
	if old := d.id(d.root, "POST /keys", object{
		"principal": "service:ci", "scopes": []string{read},
		"name": "revoked",
	}); d.err == nil {
		d.do(d.root, "DELETE /keys/"+old, nil)
	}
	d.do(
		d.root,
		"POST /clients",
		object{"name": "Reports", "redirect_uris": []string{"com.example.reports:/done"}, "scopes": []string{read}},
	)
	d.client = d.id(d.root, "POST /clients", object{
		"name": "Billing", "redirect_uris": []string{"com.example.billing:/done"}, "scopes": []string{read, write},
		"method": "client_secret_basic",
	})
	// A refused call, for the audit log.
	if d.err == nil {
		_, _, d.err = d.scout.call("POST /members", object{"kind": "user", "id": "mallory"})
	}
}

// Hostile texts. Each has its own word, by which a test finds it on a page.
const (
	scriptText = `<script>window.pwned=1</script><img src=x onerror="window.pwned=1">`
	markText   = "[press](javascript:window.pwned=1) ![x](//evil.example/p.png) <svg onload=window.pwned=1> " +
		"[a](data:text/html,<script>window.pwned=1</script>) <javascript:window.pwned=1> [ref]: javascript:window.pwned=1\n\n" +
		"<details open ontoggle=window.pwned=1>\n\n```html\n</code></pre><script>window.pwned=1</script>\n```\n\n" +
		"# A heading <b onclick=\"window.pwned=1\">bold</b>\n\n<style>body{display:none}</style>\n\n<base href=//evil.example>\n\n" +
		"<form action=//evil.example><input name=password></form>\n\n<meta http-equiv=refresh content=\"0;url=//evil.example\">"
	rightToLeft = "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 (1) <b>"
	bidiText    = "abc \u202egnp.exe\u202c \u2066iso\u2069 \u05e9\u05dc\u05d5\u05dd \u200f\u0645\u0631\u062d\u0628\u0627"
	quoteText   = `"><script>window.pwned=1</script><a title='x' "{{.}} ${1} {{constructor.constructor('window.pwned=1')()}}`
)

func (d *seeding) attack() {
	say := func(where, text string) string {
		mark := "mark-" + where
		d.marks = append(d.marks, mark)
		return mark + " " + text
	}
	long := func(where string) string {
		return say(where, scriptText+"\n\n"+markText+"\n\n"+quoteText+"\n\n"+bidiText)
	}
	d.do(
		d.root,
		"POST /agents",
		object{
			"id":          "hostile",
			"name":        say("agent", "<script>window.pwned=1</script>"),
			"description": say("agent-text", quoteText),
		},
	)
	mallory := d.keyOf("agent:hostile", read, write)
	d.do(
		d.root,
		"POST /members",
		object{"kind": "user", "id": "hostile-user", "name": say("user", `"><img src=x onerror=window.pwned=1>`)},
	)
	d.do(
		d.root,
		"POST /invitations",
		object{"user": "hostile-guest", "name": say("guest", `"><svg onload=window.pwned=1>`)},
	)
	d.hostile = d.id(mallory, "POST /proposals", object{
		"title": "Edited below " + scriptText + rightToLeft, "category": "security", "problem": long("problem"),
		"suggested_fix": long("fix"), "priority": "high",
	})
	d.do(mallory, "POST /proposals/"+d.hostile+"/vote", object{"vote": "for", "comment": long("comment")})
	d.do(mallory, "PATCH /proposals/"+d.hostile, object{"title": say("edited", quoteText+rightToLeft)})
	for i := range 3 {
		d.do(mallory, "POST /friction", object{
			"fingerprint": "hostile:x", "title": say("friction", scriptText), "category": "security",
			"problem":  long("friction-problem"),
			"evidence": long("evidence"), "occurrence": fmt.Sprint(i),
		})
	}
	decided := d.decide("mark-decided", "approved")
	d.decided = decided
	d.do(d.root, "PATCH /proposals/"+decided, object{"status": "resolved", "resolution_note": long("note")})
	d.do(
		d.root,
		"POST /followups",
		object{"title": say("task", quoteText), "description": long("task-text"), "assignee": "user:hostile-user"},
	)
	d.do(
		d.root,
		"POST /keys",
		object{
			"principal": "agent:hostile",
			"scopes":    []string{read},
			"name":      say("key", `"><script>window.pwned=1</script>`),
		},
	)
	d.do(
		d.root,
		"POST /notes",
		object{"title": say("saved", `"><script>window.pwned=1</script>`), "text": long("saved-text")},
	)
	d.do(
		d.root,
		"POST /clients",
		object{"name": say("client", `"><script>window.pwned=1</script>`), "redirect_uris": []string{"com.example.x:/done"}},
	)
	d.attackTasks()
}
