package webhook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/text"
)

// Discord takes messages of at most 2,000 characters. An escaped name can be five times as long.
const (
	maxName = 150 // characters of a title or a name
	maxLink = 800 // bytes of a URL
)

// encodeLine returns a chat message. "text" is for Slack, Mattermost and the Slack-compatible URLs
// of Discord (those that end with /slack), "content" and "allowed_mentions" are for the other URLs
// of Discord. Each of the three ignores members that it does not know.
func encodeLine(e *event.Event, base string) []byte {
	r := recordOf(e)
	link := r.link(base)
	chat, discord := r.line(escapeChat), r.line(escapeDiscord)
	if link != "" {
		chat += " <" + link + "|Open>"
		discord += " [Open](<" + link + ">)"
	}
	b := appendMember([]byte{'{'}, "text", chat)
	b = appendMember(append(b, ','), "content", discord)
	return append(b, `,"allowed_mentions":{"parse":[]}}`...)
}

// Say describes an event in one line of plain text: who did what to which record.
func Say(e *event.Event) string { return recordOf(e).line(func(s string) string { return s }) }

// Page returns the path of the dashboard's page about the record of an event, below the org; "" if
// it has none.
func Page(e *event.Event) string {
	path := recordOf(e).page()
	if len(path) == 0 {
		return ""
	}
	return join("", path...)
}

// phrases say what the actor did; %s is the name of the record.
var phrases = map[event.Type]string{
	event.ProposalDrafted:       "saved the draft %s",
	event.ProposalSubmitted:     "submitted the proposal %s",
	event.ProposalEdited:        "edited the proposal %s",
	event.ProposalVoted:         "voted on the proposal %s",
	event.ProposalVoteWithdrawn: "withdrew a vote on the proposal %s",
	event.ProposalOpened:        "opened the proposal %s",
	event.ProposalApproved:      "approved the proposal %s",
	event.ProposalRejected:      "rejected the proposal %s",
	event.ProposalReopened:      "reopened the proposal %s",
	event.ProposalResolved:      "resolved the proposal %s",

	event.FollowupCreated:  "created the follow-up %s",
	event.FollowupAssigned: "assigned the follow-up %s",
	event.FollowupStarted:  "started the follow-up %s",
	event.FollowupDone:     "finished the follow-up %s",
	event.FollowupCanceled: "canceled the follow-up %s",
	event.FollowupReopened: "reopened the follow-up %s",
	event.FollowupEdited:   "edited the follow-up %s",

	event.FrictionReported: "reported the friction %s",
	event.FrictionFiled:    "filed a proposal for the friction %s",

	event.TaskCreated:       "sent the task %s",
	event.TaskInputRequired: "waits for the sender of the task %s",
	event.TaskCompleted:     "completed the task %s",
	event.TaskFailed:        "reported a failure of the task %s",
	event.TaskCanceled:      "canceled the task %s",
	event.TaskRejected:      "rejected the task %s",

	event.AgentRegistered: "registered the agent %s",
	event.AgentChanged:    "changed the profile of the agent %s",
	event.AgentDisabled:   "disabled the agent %s",
	event.AgentEnabled:    "enabled the agent %s",
	event.AgentPresence:   "noticed a change of the agent %s",

	event.MemberCreated:  "added the member %s",
	event.MemberChanged:  "changed the member %s",
	event.MemberDisabled: "disabled the member %s",
	event.MemberEnabled:  "enabled the member %s",
	event.MemberErased:   "erased the member who is now %s",

	event.KeyCreated: "created the key %s",
	event.KeyRotated: "replaced the key %s",
	event.KeyRevoked: "revoked the key %s",

	event.ClientCreated: "created the OAuth client %s",
	event.ClientChanged: "changed the OAuth client %s",
	event.ClientDeleted: "deleted the OAuth client %s",

	event.InvitationCreated:  "invited %s",
	event.InvitationRevoked:  "revoked the invitation of %s",
	event.InvitationAccepted: "accepted the invitation of %s",

	event.WebhookCreated: "created the webhook %s",
	event.WebhookChanged: "changed the webhook %s",
	event.WebhookDeleted: "deleted the webhook %s",
	event.WebhookFailed:  "stopped the webhook %s, because its deliveries failed",

	Ping: "sent a ping to the webhook %s",
}

// record is an event with the members of its data.
type record struct {
	*event.Event
	kind, id string // of the subject
	data     map[string]json.RawMessage
}

func recordOf(e *event.Event) record {
	r := record{Event: e}
	r.kind, r.id, _ = strings.Cut(e.Subject, ":")
	_ = json.Unmarshal(e.Data, &r.data) // without members the line has the id
	return r
}

// text returns a member that is a string, or "".
func (r record) text(name string) string {
	var s string
	_ = json.Unmarshal(r.data[name], &s)
	return s
}

// number returns a member that is a number, or 0.
func (r record) number(name string) int64 {
	var n int64
	_ = json.Unmarshal(r.data[name], &n)
	return n
}

// name returns what people call the record. The URL of a webhook is not a name: it is a secret if
// the webhook is one of a chat.
func (r record) name() string {
	switch r.kind {
	case "proposal", "followup", "friction":
		return cmp.Or(r.text("title"), r.id)
	case "task":
		return cmp.Or(r.text("id"), r.id)
	case "webhook":
		return cmp.Or(r.text("description"), r.id)
	case "invitation":
		return cmp.Or(r.text("name"), r.text("user"), r.id)
	}
	return cmp.Or(r.text("name"), r.id)
}

// line says in one line who did what to which record. escape is applied to what users wrote.
func (r record) line(escape func(string) string) string {
	say := func(s string) string { return escape(shorten(s)) }
	name := quote(escape(cmp.Or(shorten(r.name()), shorten(r.id))))
	if r.Type == event.AgentPresence {
		if status := r.text("status"); status != "" {
			return "The agent " + name + " is now " + say(status)
		}
	}
	phrase, ok := phrases[r.Type]
	if r.Type == event.FollowupAssigned && r.text("assignee") == "" {
		phrase = "unassigned the follow-up %s"
	}
	if !ok { // a type that this version does not know
		phrase = "caused the event " + string(r.Type) + " of %s"
	}
	return r.actor(say) + " " + fmt.Sprintf(phrase, name) + r.details(say)
}

func (r record) actor(say func(string) string) string {
	switch r.Actor {
	case event.System, "":
		return "Parley"
	case "operator":
		return "The operator"
	}
	return say(r.Actor)
}

// details returns the end of a line.
func (r record) details(say func(string) string) string {
	switch r.Type {
	case event.ProposalVoted, event.ProposalVoteWithdrawn:
		return fmt.Sprintf(" (%d for, %d against)", r.number("votes_for"), r.number("votes_against"))
	case event.FollowupAssigned:
		if to := r.text("assignee"); to != "" {
			return " to " + say(to)
		}
	case event.FrictionReported:
		if n := r.number("count"); n > 1 {
			return fmt.Sprintf(" (%d reports)", n)
		}
	}
	if agent := r.text("agent"); r.kind == "task" && agent != "" {
		return " (agent " + say(agent) + ")"
	}
	return ""
}

// link returns the page of the record in the dashboard, or "" if it has none.
func (r record) link(base string) string {
	path := r.page()
	if base == "" || len(path) == 0 {
		return ""
	}
	link := join(base, append([]string{"orgs", r.Org}, path...)...)
	if len(link) > maxLink {
		return ""
	}
	return link
}

// page returns the path of the page of the record, below the org.
func (r record) page() []string {
	if r.id == "" || r.Type == event.ClientDeleted || r.Type == event.WebhookDeleted {
		return nil
	}
	switch r.kind {
	case "proposal":
		return []string{"proposals", r.id}
	case "followup":
		return []string{"followups", r.id}
	case "friction":
		return []string{"friction", r.id}
	case "agent":
		return agentPage(r.id)
	case "task": // its page differs for admins and its sender, and a reader of a chat may be neither
		return agentPage(r.text("agent"))
	case "member":
		return []string{"members", r.id}
	case "key":
		return []string{"keys", r.id}
	case "client":
		return []string{"clients", r.id}
	case "invitation":
		return []string{"members", "invitations"}
	case "webhook":
		return []string{"webhooks", r.id}
	}
	return nil
}

// agentPage returns the page of an agent. "new" is the page that registers one.
func agentPage(id string) []string {
	switch id {
	case "":
		return nil
	case "new":
		id = "~new"
	}
	return []string{"agents", id}
}

// shorten makes text one line of bounded length, without characters that change the direction of
// what follows.
func shorten(s string) string {
	s = strings.Map(func(r rune) rune {
		if !text.Line.Allows(r) {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	return text.Clean(s, maxName)
}

// quote puts a name in quotation marks. A name in a script that runs from right to left is
// isolated, so that it does not reorder the rest of the line.
func quote(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool {
		return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko)
	}) {
		name = "\u2068" + name + "\u2069"
	}
	return "“" + name + "”"
}

// chatEscapes makes text plain for Slack and Mattermost. Slack's control sequences start with "<".
// Mattermost takes "@all" for a mention and "[text](url)" for a link; neither can be escaped in a
// way that Slack understands, so an invisible space separates their characters.
var chatEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@\u200b", "](", "]\u200b(")

func escapeChat(s string) string { return chatEscapes.Replace(s) }

// discordEscapes makes text plain in the Markdown of Discord.
var discordEscapes = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, "<", `\<`,
	">", `\>`, "[", `\[`, "]", `\]`, "#", `\#`, "@", "@\u200b")

func escapeDiscord(s string) string { return discordEscapes.Replace(s) }
