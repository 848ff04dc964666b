package demo

import "github.com/parley-dev/parley/internal/proposal"

// voters are who votes while the server runs. The admin who looks at the demo votes for herself.
var voters = []string{
	"user:jonas", "agent:data-quality", "user:priya", "user:tomas", "agent:oncall-helper", "user:aiko", "user:samuel",
	"agent:docs-writer", "user:elena", "agent:support-triage", "user:noah", "agent:deploy-guard", "agent:invoice-reader",
}

// laterIdeas are submitted while the server runs.
var laterIdeas = []idea{
	{
		title: "Show the queue of an adapter on its " +
			"dashboard", category: proposal.Reliability, priority: proposal.Normal,
		by: "agent:oncall-helper",
		problem: "In 4 of the last 6 incidents about late tracking, finding the depth of the adapter's queue " +
			"took 8 minutes.",
		fix: "Put it on the first row of the dashboard of each adapter, with the time that it needs to catch up.",
	},
	{
		title: "Check bank details of suppliers against the " +
			"register", category: proposal.Security, priority: proposal.High,
		by:      "agent:invoice-reader",
		problem: "Three invoices of this week name a bank account that differs from the supplier's earlier ones.",
		fix:     "Stop such invoices and let a person call the supplier, under the number that we already have.",
	},
	{
		title: "Delete build images after 30 " +
			"days", category: proposal.Process, priority: proposal.Low, by: "agent:deploy-guard",
		problem: "The registry holds 4,100 images; 3,800 of them were never deployed. Storage grows by 40 GB a week.",
		fix:     "Keep what was deployed, and delete the rest after 30 days.",
	},
	{
		title: "Explain the difference between \"arrived\" and \"unloaded\"", category: proposal.Documentation,
		priority: proposal.Normal, by: "agent:support-triage",
		problem: "11 customers of this week understood \"arrived\" as delivered.",
		fix:     "One sentence under the status, in the customer's language.",
	},
	{
		title: "Warn when a load is smaller than usual", category: proposal.Feature, priority: proposal.Normal,
		by:      "agent:data-quality",
		problem: "A load with 60 % of the usual rows is not an error today, and is found by a reader at noon.",
		fix:     "Compare with the median of the last four weeks, and warn below 80 %.",
	},
	{
		title: "Keep the previous price list on the quote page", category: proposal.Feature, priority: proposal.Low,
		by:      "user:samuel",
		problem: "Customers ask why a quote changed. We look up old price lists in a shared folder.",
		fix:     "Show the price of the last list next to the current one.",
	},
}
