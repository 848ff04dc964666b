package demo

import (
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/identity"
)

const day = 24 * time.Hour

// The company and its admin. The sign-in page suggests the org "main".
var Founding = identity.Founding{
	Org: "main", OrgName: "Northpier Logistics", Admin: "maya", AdminName: "Maya Lindqvist",
}

// Age is how long the company has been using Parley.
const Age = 29 * day

// person is a user, or an external system.
type person struct {
	kind     identity.Kind
	id, name string
	admin    bool
	joined   time.Duration // before now
}

var people = []person{
	{identity.User, "jonas", "Jonas Weber", true, 29*day - time.Hour},
	{identity.User, "priya", "Priya Raman", false, 29*day - 2*time.Hour},
	{identity.User, "tomas", "Tomás Herrera", false, 28 * day},
	{identity.User, "aiko", "Aiko Tanaka", false, 28*day - 3*time.Hour},
	{identity.User, "samuel", "Samuel Okafor", false, 26 * day},
	{identity.User, "elena", "Elena Petrova", false, 21 * day},
	{identity.User, "noah", "Noah Jensen", false, 12 * day},
	{identity.Service, "helpdesk", "Help desk", false, 28 * day},
	{identity.Service, "billing", "Billing system", false, 28*day - time.Hour},
	{identity.Service, "ci", "CI pipeline", false, 27 * day},
}

// leftCompany is a person who was disabled.
var leftCompany = person{identity.User, "oskar", "Oskar Nyman", false, 28 * day}

// offline is the agent without a worker.
const offline = "contract-reader"

// worker names the processes that do the work of agents; the first did the work of the past.
var workers = map[string][]string{
	"support-triage": {"triage-7c9f", "triage-d41a"},
	"invoice-reader": {"invoices-1"},
	"deploy-guard":   {"guard-eu-west", "guard-us-east"},
	"docs-writer":    {"docs-1"},
	"data-quality":   {"dq-nightly"},
	"oncall-helper":  {"oncall-1"},
	offline:          {"contracts-1"},
}

var agents = []agent.Agent{
	{
		ID: "support-triage", Name: "Support triage",
		Description: "Reads new support tickets, finds the product area and the urgency, and drafts a first reply.",
		Profile: profile("2.4.0", skill("triage", "Triage a ticket",
			"Finds area, urgency and known issues of a ticket.", "support", "Triage ticket 48213: label prints blank"),
			skill("draft-reply", "Draft a reply", "Writes a first reply in the customer's language.", "support",
				"Draft a reply to ticket 48190 in German")),
	},
	{
		ID: "invoice-reader", Name: "Invoice reader",
		Description: "Extracts supplier, lines and totals from invoices, and matches them with purchase orders.",
		Profile: profile("1.9.3", skill("extract", "Read an invoice", "Returns the fields of an invoice as JSON.",
			"finance", "Read invoice INV-2291 of Baltic Pallets")),
	},
	{
		ID: "deploy-guard", Name: "Deploy guard",
		Description: "Checks a release before it goes out: migrations, feature flags, error budget, open incidents.",
		Profile: profile("3.1.1", skill("preflight", "Check a release", "Says go or no-go, with the reasons.",
			"release", "May tracking-api 5.12 go to production?"),
			skill("rollback-plan", "Plan a rollback", "Lists the steps that undo a release.", "release",
				"How do we roll back tracking-api 5.12?")),
	},
	{
		ID: "docs-writer", Name: "Docs writer",
		Description: "Turns merged changes into release notes, and keeps the handbook and the runbooks current.",
		Profile: profile("1.2.0", skill("release-notes", "Write release notes", "From the titles of merged changes.",
			"docs", "Release notes for rate-engine 2.8")),
	},
	{
		ID: "data-quality", Name: "Data quality",
		Description: "Compares the nightly loads of the warehouse with their sources and explains what differs.",
		Profile: profile("0.8.2", skill("compare", "Compare a load", "Counts, sums and samples of a table.", "warehouse",
			"Compare shipments_daily with the source")),
	},
	{
		ID: "oncall-helper", Name: "On-call helper",
		Description: "Gathers what the person on call needs: recent deploys, similar incidents, the runbook, first steps.",
		Profile: profile("2.0.5", skill("brief", "Brief an incident", "A one-page summary with links.", "incident",
			"Brief me on the alert geo-cache-hit-rate")),
	},
	{
		ID: offline, Name: "Contract reader",
		Description: "Finds notice periods, price clauses and liability limits in carrier contracts.",
		Profile: profile("0.3.0", skill("clauses", "Find clauses", "Quotes the clauses that matter, with page numbers.",
			"legal", "Which notice period has the contract with Nordhaul?")),
	},
}

func profile(version string, skills ...agent.Skill) agent.Profile {
	return agent.Profile{
		Skills: skills, Version: version,
		Provider: agent.Provider{Organization: Founding.OrgName, URL: "https://northpier.example"},
	}
}

func skill(id, name, description, tag, example string) agent.Skill {
	return agent.Skill{ID: id, Name: name, Description: description, Tags: []string{tag, id}, Examples: []string{example}}
}

// key is an API key of the company.
type key struct {
	owner, name string
	scopes      []string
	made        time.Duration // before now
	ends        time.Duration // after now; 0: never
	used        time.Duration // before now; 0: never
	revoked     time.Duration // before now; 0: it was not
}

var keys = []key{
	{"agent:support-triage", "triage workers", serveAndPropose, 27 * day, 0, 2 * time.Minute, 0},
	{"agent:invoice-reader", "invoice worker", serveAndPropose, 27 * day, 60 * day, 4 * time.Minute, 0},
	{"agent:deploy-guard", "guard workers", serveAndPropose, 26 * day, 0, time.Minute, 0},
	{"agent:docs-writer", "docs worker", serveAndPropose, 26 * day, 9 * day, 7 * time.Minute, 0},
	{"agent:data-quality", "nightly", serveAndPropose, 25 * day, 0, 3 * time.Minute, 0},
	{"agent:oncall-helper", "on-call worker", serveAndPropose, 24 * day, 0, 5 * time.Minute, 0},
	{"agent:" + offline, "pilot", []string{"svc:a2a:serve"}, 18 * day, 0, 2 * day, 0},
	{"service:helpdesk", "ticket hook", []string{"svc:a2a:write", "agent:support-triage"}, 27 * day, 0, time.Minute, 0},
	{
		"service:billing", "invoice inbox",
		[]string{"svc:a2a:write", "agent:invoice-reader"},
		26 * day, 11 * day, 8 * time.Minute, 0,
	},
	{"service:ci", "release pipeline", []string{"svc:a2a:write", "svc:tasks:read"}, 20 * day, 0, 6 * time.Minute, 0},
	{"service:ci", "release pipeline (old)", []string{"svc:a2a:write"}, 26 * day, 0, 21 * day, 20 * day},
	{"agent:docs-writer", "laptop test", []string{"svc:tasks:read"}, 9 * day, 0, 0, 0},
}

var serveAndPropose = []string{"svc:a2a:serve", "svc:tasks:read", "svc:tasks:write"}
