package web

import (
	"slices"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/webhook"
)

// typedWebhook has the values of the form of a webhook.
type typedWebhook struct {
	URL, Description       string
	Types                  []event.Type
	Categories, Priorities []string
	Format                 webhook.Format
}

func typedOf(w *webhook.Webhook) typedWebhook {
	return typedWebhook{
		URL: w.URL, Description: w.Description, Types: w.Types, Categories: w.Categories, Priorities: w.Priorities,
		Format: w.Format,
	}
}

func (v *visit) typedWebhook() typedWebhook {
	t := typedWebhook{
		URL: v.value("url"), Description: v.value("description"), Categories: v.r.PostForm["categories"],
		Priorities: v.r.PostForm["priorities"], Format: webhook.Format(v.value("format")),
	}
	for _, name := range v.r.PostForm["types"] {
		t.Types = append(t.Types, event.Type(name))
	}
	return t
}

// webhookForm has the choices of the form.
type webhookForm struct {
	Typed      typedWebhook
	Groups     []typeGroup
	Categories []box
	Priorities []box
	Formats    []formatBox
	MaxURL     int
	MaxText    int
}

// Some reports whether the form selects a part of the events.
func (f webhookForm) Some() bool {
	return len(f.Typed.Types)+len(f.Typed.Categories)+len(f.Typed.Priorities) > 0
}

// box is a choice that can be checked.
type box struct {
	Value   string
	Text    string
	Checked bool
}

// formatBox is a format, in words.
type formatBox struct {
	Value      webhook.Format
	Name, Text string
	Checked    bool
}

var formatWords = map[webhook.Format]formatBox{
	webhook.Standard:    {Name: "Standard Webhooks", Text: "The event as JSON; for programs. The usual choice."},
	webhook.CloudEvents: {Name: "CloudEvents", Text: "The event in a CloudEvents 1.0 envelope; for event gateways."},
	webhook.Slack:       {Name: "Chat", Text: "One line of text; for incoming webhooks of Slack, Mattermost and Discord."},
}

func newWebhookForm(typed typedWebhook) webhookForm {
	f := webhookForm{
		Typed: typed, Groups: typeGroups(typed.Types), Categories: boxes(proposal.Categories, typed.Categories),
		Priorities: boxes(proposal.Priorities, typed.Priorities), MaxURL: webhook.MaxURL, MaxText: webhook.MaxDescription,
	}
	for _, format := range webhook.Formats {
		words := formatWords[format]
		words.Value, words.Checked = format, format == typed.Format
		f.Formats = append(f.Formats, words)
	}
	return f
}

func boxes[T ~string](all []T, chosen []string) []box {
	out := make([]box, len(all))
	for i, value := range all {
		out[i] = box{Value: string(value), Checked: slices.Contains(chosen, string(value))}
	}
	return out
}

// typeGroup has the types of events about one kind of record.
type typeGroup struct {
	About  string // kind of the record
	Name   string
	Types  []box
	Chosen int
}

// typeGroups returns the types of events, grouped by what they are about.
func typeGroups(chosen []event.Type) []typeGroup {
	var out []typeGroup
	for _, about := range event.Subjects {
		g := typeGroup{About: about, Name: groupNames[about]}
		for _, k := range event.Kinds {
			if k.About != about {
				continue
			}
			b := box{Value: string(k.Type), Text: k.Text, Checked: slices.Contains(chosen, k.Type)}
			if b.Checked {
				g.Chosen++
			}
			g.Types = append(g.Types, b)
		}
		out = append(out, g)
	}
	return out
}

// groupNames are the names of the groups of types, by the kind of their subject.
var groupNames = map[string]string{
	"proposal": "Proposals", "followup": "Follow-ups", "friction": "Friction", "task": "Tasks", "agent": "Agents",
	"member": "Members", "key": "Keys", "client": "Clients", "invitation": "Invitations", "webhook": "Webhooks",
}
