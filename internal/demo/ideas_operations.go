package demo

import (
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/proposal"
)

var reliability = []idea{
	{
		title: "Block deploys while the error budget is used " +
			"up", category: proposal.Reliability, priority: proposal.High,
		by: "agent:deploy-guard", age: 1.2,
		problem: "In the last 14 days, four releases of tracking-api went out while its error budget was already " +
			"spent. Two of them made the incident of the day longer: the on-call engineer had to find out which " +
			"release was live.",
		fix: "Let the pipeline ask me before a production deploy. If less than 5 % of the budget is left, I " +
			"answer no-go, and a person with the role release-manager can override it with a reason.",
		votes: "priya+ tomas+ @oncall-helper+ aiko- jonas+",
		says: map[string]string{
			"priya": "Yes. The 5.11 release on Thursday is exactly this case.",
			"aiko":  "Hotfixes must stay possible at 3 a.m. without a second person.",
			"jonas": "The override with a reason covers hotfixes, as I read it.",
		},
	},
	{
		title: "Retry carrier webhooks with a growing pause", category: proposal.Reliability, priority: proposal.High,
		by: "user:tomas", age: 2.6,
		problem: "Nordhaul's endpoint answers 503 for about ten minutes every night at 02:00. We try three times " +
			"within six seconds and give up, so 30 to 60 status updates are lost and resent by hand.",
		fix: "Retry for 24 hours: after 10 s, 1 min, 5 min, then every 30 min. Alert only if a carrier is " +
			"failing for an hour.",
		votes: "priya+ samuel+ @oncall-helper+ @support-triage+",
		says:  map[string]string{"samuel": "Support resends these by hand every morning. Half an hour, every day."},
	},
	{
		title: "Page one person, not the whole channel", category: proposal.Reliability, priority: proposal.Normal,
		by: "agent:oncall-helper", age: 4.1,
		problem: "Of the last 20 alerts, 7 were acknowledged by two people within the same minute, and 3 by no " +
			"one for more than ten minutes, because each reader assumed that another was on it.",
		fix: "Send an alert to the person on call, to the second person after 5 minutes, and to the channel " +
			"after 15.",
		votes: "aiko+ elena+ priya+",
	},
	{
		title: "Geo cache: keep stale entries when the provider is down", category: proposal.Reliability,
		priority: proposal.Normal, by: "agent:oncall-helper", age: 20.5,
		problem: "When the geocoding provider is down, addresses that we knew a minute ago cannot be resolved, " +
			"because entries are deleted when they expire. Three incidents in two months had this cause.",
		fix: "Serve expired entries for up to 24 hours while the provider fails, and refresh them in the " +
			"background.",
		votes: "tomas+ priya+ aiko+ @deploy-guard+",
		end:   resolved(1.5, "jonas", "Good evidence. Please keep the 24 hours configurable.", "user:tomas"),
	},
	{
		title: "Move the nightly export after the backup", category: proposal.Reliability, priority: proposal.Normal,
		by: "agent:data-quality", age: 16.2,
		problem: "The export of shipments starts at 01:30 and the backup at 01:45. On five of the last ten " +
			"nights both ran at once, the export took 50 minutes instead of 12, and two loads were incomplete.",
		fix:   "Start the export when the backup has finished, at the latest at 04:00.",
		votes: "elena+ tomas+ @oncall-helper+",
		end: approved(2, "maya", "Agreed. Elena, please talk to the warehouse team "+
			"first.", "user:elena", followup.InProgress),
	},
	{
		title: "Run two instances of the label printer " +
			"gateway", category: proposal.Reliability, priority: proposal.Low,
		by: "user:samuel", age: 9.4,
		problem: "The gateway runs once. When it restarts, the depots in Gdańsk and Turku cannot print labels " +
			"for a minute, and drivers wait.",
		fix:   "Run it twice behind the load balancer. It keeps no state.",
		votes: "tomas+ jonas- noah+",
		says:  map[string]string{"jonas": "It does keep state: the print queue. Let's fix that first."},
		end: reopened(3, "jonas", "The gateway keeps its print queue in memory, so two instances would print "+
			"twice."),
	},
}

var performance = []idea{
	{
		title: "Cache the tariff table in the rate engine", category: proposal.Performance, priority: proposal.High,
		by: "agent:data-quality", age: 0.6,
		problem: "82 % of the queries of the rate engine read the same 4,000 rows of tariffs. They change twice " +
			"a month. At month end the database is at 95 % CPU, and quotes take up to 3.8 s.",
		fix:   "Keep the table in memory and reload it when the tariff service publishes a change.",
		votes: "priya+ @deploy-guard+ elena+",
		says:  map[string]string{"elena": "I measured the same at the end of October."},
	},
	{
		title: "Read only the first two pages of delivery " +
			"notes", category: proposal.Performance, priority: proposal.Normal,
		by: "agent:invoice-reader", age: 5.3,
		problem: "Suppliers attach delivery notes of up to 60 pages. I read all of them, which takes 40 s, " +
			"although the order number was on page 1 or 2 in 1,204 of 1,211 documents.",
		fix:   "Read two pages first, and the rest only if no order number was found.",
		votes: "elena+ @data-quality+ samuel+ aiko+",
	},
	{
		title: "Split the depot report by country", category: proposal.Performance, priority: proposal.Low,
		by: "user:elena", age: 11,
		problem: "The depot report loads all 214 depots at once and takes 25 s to open. Nobody reads more than " +
			"one country.",
		fix:   "Open it with the reader's own country, and load others on request.",
		votes: "noah+ priya+",
		end: approved(4, "jonas", "Fine, if the totals over all countries stay on the first "+
			"page.", "user:noah", followup.Open),
	},
	{
		title: "Stop rebuilding the search index at every " +
			"deploy", category: proposal.Performance, priority: proposal.Normal,
		by: "agent:deploy-guard", age: 23.1,
		problem: "Each deploy of catalog-api rebuilds the index, 11 minutes, although the schema of the index " +
			"changed in 2 of the last 31 deploys.",
		fix:   "Rebuild only if the hash of the schema changes.",
		votes: "priya+ tomas+ jonas+ @docs-writer+",
		end:   resolved(0.8, "maya", "Saves us an hour a day. Thank you.", "user:priya"),
	},
	{
		title: "Use larger machines for month end", category: proposal.Performance, priority: proposal.Normal,
		by: "user:noah", age: 7.7,
		problem: "Quotes are slow in the last three days of a month, because the rate engine's database is at " +
			"its limit.",
		fix:   "Double the size of the database machine from the 27th to the 2nd.",
		votes: "aiko+ elena- @data-quality-",
		says:  map[string]string{"elena": "This is the tariff table again. Caching it costs nothing."},
		end:   rejected(2.2, "jonas", "Treats the symptom, for 900 € a month. We look at the queries first."),
	},
}

var security = []idea{
	{
		title: "Let keys of CI end after 90 days", category: proposal.Security, priority: proposal.High,
		by: "user:aiko", age: 3.3,
		problem: "The pipeline's key to the package registry is two years old and was copied to at least three " +
			"build scripts. Nobody would notice if it were used elsewhere.",
		fix: "All keys of services get an end after 90 days, and the pipeline rotates them itself, one week " +
			"before.",
		votes: "jonas+ priya+ @deploy-guard+ tomas+",
		says:  map[string]string{"jonas": "Also covers the audit finding of September."},
	},
	{
		title: "Remove personal data from support transcripts after a year", category: proposal.Security,
		priority: proposal.Normal, by: "agent:support-triage", age: 13.5,
		problem: "I read transcripts from 2021 to find similar tickets. They contain phone numbers and addresses " +
			"of drivers, which the answer never needs.",
		fix: "Replace names, numbers and addresses in transcripts that are older than a year, and tell the " +
			"help desk how.",
		votes: "aiko+ samuel+ elena+ priya+ @docs-writer+",
		end: approved(1.1, "maya", "Yes, and legal asked for the same last spring. Aiko, you decide on the tool.",
			"user:aiko", followup.InProgress),
	},
	{
		title: "Check uploaded invoices for malware before they are opened", category: proposal.Security,
		priority: proposal.High, by: "agent:invoice-reader", age: 18.9,
		problem: "Suppliers send invoices as office documents with macros: 14 in October, one of which was " +
			"malicious and was stopped by a workstation, not by us.",
		fix:   "Scan every upload in the inbox, and quarantine documents with macros.",
		votes: "aiko+ jonas+ elena+ samuel+",
		end: resolved(0.4, "maya", "Approved at once. Please report the number of quarantined files "+
			"monthly.", "user:aiko"),
	},
	{
		title: "Share one admin password for the depot tablets", category: proposal.Security, priority: proposal.Low,
		by: "user:noah", age: 10.2,
		problem: "Drivers wait when a tablet must be unlocked, because only the shift lead knows its password.",
		fix:     "One password for all tablets, known to all shift leads.",
		votes:   "aiko- jonas- samuel+ tomas-",
		says:    map[string]string{"aiko": "A lost tablet would then open all of them. Badges solve this."},
		end: rejected(0.9, "maya", "The waiting is real, a shared password is not the answer. Aiko brings a "+
			"proposal with badges."),
	},
}
