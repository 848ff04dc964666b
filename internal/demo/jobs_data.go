package demo

var jobs = []job{
	{
		agent: "support-triage", sender: "service:helpdesk",
		text: "Triage ticket #: the label prints blank in Turku", number: 48213,
		progress: "Reading the ticket and 12 similar ones.",
		result: []string{
			"Area: label printing\nUrgency: high, drivers are waiting\n",
			"Known issue: yes, LP-311 (thermal head of the TX-40 after an update)\n",
			"\nFirst reply (Finnish and English):\n\nThank you for reporting this. Please turn the printer off, " +
				"hold FEED, and turn it on again. This restores the head's calibration.\n",
		},
	},
	{
		agent: "deploy-guard", sender: "service:ci",
		text: "Preflight for tracking-api, build #", number: 20611,
		progress: "Checking migrations, flags, budget and incidents.",
		result: []string{
			"migrations   1 new, compatible with the running version\n",
			"flags        eta-v2 is on for 20 %\n",
			"error budget 61 % left\n",
			"incidents    none open\n\nGo.\n",
		},
	},
	{
		agent: "invoice-reader", sender: "service:billing",
		text: "Read invoice INV-# of Baltic Pallets", number: 2291,
		progress: "Reading 2 pages.",
		result: []string{
			"Supplier: Baltic Pallets OÜ\nOrder: PO-77120\n",
			"Lines: 3\nTotal: 1,482.40 € net, 22 % VAT\n",
			"The order has the same lines and total. Ready to approve.\n",
		},
		file: textFile("invoice.json", "application/json",
			`{"supplier":"Baltic Pallets","order":"PO-77120","net":1482.40,"currency":"EUR","matches":true}`),
	},
	{
		agent: "oncall-helper", sender: "user:tomas",
		text: "Brief me on alert #: geo-cache-hit-rate below 60 %", number: 911,
		progress: "Gathering deploys, similar incidents and the runbook.",
		result: []string{
			"Since 09:42 UTC. Two depots report slow address search.\n",
			"Last deploy: geo-service 3.4, 31 minutes before the alert. It changed the cache key.\n",
			"Similar: incident 874 in September, same cause, solved by a rollback in 6 minutes.\n",
			"\nFirst steps: 1. compare the hit rate per version, 2. roll back 3.4, 3. warm the cache with the " +
				"nightly list.\n",
		},
	},
	{
		agent: "support-triage", sender: "service:helpdesk",
		text: "Triage ticket #: refund for a damaged pallet", number: 48230,
		progress: "Reading the ticket and its photos.",
		result: []string{
			"Area: claims\nUrgency: normal\n", "The photos show a broken corner board. The carrier's note says " +
				"\"received intact\".\n",
		},
		question: "The customer asks for 240 €. The handbook allows 150 € without the regional lead. Shall I " +
			"draft the reply with 150 €, or ask the lead first?",
		answer: "Ask the regional lead first, and tell the customer that we answer by tomorrow.",
	},
	{
		agent: "data-quality", sender: "user:elena",
		text: "Compare shipments_daily with the source, run #", number: 318,
		progress: "Counting 24 hours of both sides.",
		result: []string{
			"rows      1,204,881 in the source, 1,204,881 loaded\n",
			"weight    equal\n",
			"samples   200 of 200 equal\n\nNo difference.\n",
		},
		file: textFile("hours.csv", "text/csv", "hour,source,loaded\n00,48112,48112\n01,39087,39087\n02,35551,35551\n"),
	},
	{
		agent: "docs-writer", sender: "user:priya",
		text:     "Release notes for rate-engine 2.8, 17 changes",
		progress: "Reading the titles of the merged changes.",
		result: []string{
			"# Rate engine 2.8\n\n", "- Quotes for pallets with mixed heights\n- Tariffs of Nordhaul are updated " +
				"daily\n",
			"- Fixed: the fuel surcharge was rounded twice\n",
		},
		file: textFile("release-notes.md", "text/markdown", "# Rate engine 2.8\n\n- Quotes for pallets with "+
			"mixed heights\n"),
	},
	{
		agent: "invoice-reader", sender: "service:billing",
		text: "Read invoice INV-# of Kotka Terminal", number: 2304,
		progress: "Reading 1 page.", result: []string{"Supplier: Kotka Terminal Oy\n"},
		failure: "The scan is not readable: page 1 is rotated, and the confidence stayed below 0.4 after three " +
			"attempts.",
	},
	{
		agent: "deploy-guard", sender: "service:ci",
		text: "Preflight for rate-engine, build #", number: 20618,
		progress: "Checking migrations, flags, budget and incidents.",
		result: []string{
			"migrations   none\n", "error budget 3 % left\n", "incidents    1 open: quotes are slow\n\nNo-go: " +
				"wait for the incident.\n",
		},
	},
	{
		agent: "support-triage", sender: "service:helpdesk",
		text: "Triage ticket #: where is shipment NP-118204?", number: 48251,
		progress: "Reading the ticket and the tracking events.",
		result: []string{
			"Area: tracking\nUrgency: normal\n",
			"The shipment waits in Gdańsk since yesterday 19:20; the truck was full. New arrival: tomorrow " +
				"before 11:00.\n",
			"\nFirst reply: Your shipment arrives tomorrow before 11:00. We are sorry for the delay.\n",
		},
	},
	{
		agent: "data-quality", sender: "user:elena",
		text: "Compare tariff_rows with the source, run #", number: 77,
		progress: "Counting both sides.", result: []string{"rows      4,012 in the source, 3,988 loaded\n"},
		failure: "The source closed the connection while I read samples: statement timeout after 30 s.",
	},
	{
		agent: "docs-writer", sender: "user:aiko",
		text:     "Merge the 3 runbooks about late tracking events",
		progress: "Comparing the three pages.",
		result: []string{
			"# Tracking events are late\n\n## Look here first\n\n1. Queue depth of tracking-ingest\n",
			"2. Lag of the carrier adapters, by carrier\n3. Last deploy of tracking-api\n",
			"\n## If a carrier is behind\n\nRestart its adapter. It catches up at about 900 events per second.\n",
		},
		question: "Two of the pages name the queue tracking-events-old. Is it still in use?",
		answer:   "No, it was deleted in August. Leave it out.",
	},
	{
		agent: "oncall-helper", sender: "user:priya",
		text: "Brief me on alert #: quote latency p95 above 2 s", number: 918,
		progress: "Gathering deploys, similar incidents and the runbook.",
		result: []string{
			"Since 14:05 UTC, all countries. Database CPU of the rate engine is at 94 %.\n",
			"No deploy today. It is the 28th: month end.\n", "\nFirst steps: raise the cache of the tariff " +
				"table, see the runbook, page 2.\n",
		},
	},
	{
		agent: "deploy-guard", sender: "service:ci",
		text: "Rollback plan for geo-service 3.4, build #", number: 20600,
		progress: "Comparing the two versions.",
		result: []string{
			"1. Turn off the flag geo-key-v2 (20 s)\n", "2. Deploy build 20571 (4 min)\n", "3. Warm the cache " +
				"with the nightly list (2 min)\n",
		},
	},
	{
		agent: "invoice-reader", sender: "service:billing",
		text: "Read invoice INV-# of Nordhaul", number: 2310,
		progress: "Reading 4 pages.",
		result: []string{
			"Supplier: Nordhaul AS\nOrder: PO-77302\n", "Lines: 41\nTotal: 18,220.00 € net\n",
			"Line 17 is not in the order: \"waiting time, 3 h\", 210.00 €.\n",
		},
		question: "Line 17 (waiting time, 210.00 €) is not in the order. Approve it, or dispute it?",
		answer:   "Dispute it. The driver's log says 40 minutes.",
	},
	{
		agent: "support-triage", sender: "user:samuel",
		text: "Draft a reply to ticket # in German", number: 48192,
		progress: "Reading the ticket.",
		result: []string{
			"Guten Tag,\n\n", "vielen Dank für die Fotos. Wir haben den Schaden an den Frachtführer gemeldet ",
			"und melden uns bis Freitag mit einem Vorschlag.\n\nFreundliche Grüße\nNorthpier\n",
		},
	},
}

// contractJobs are for the agent that is offline.
var contractJobs = []job{
	{
		agent: offline, sender: "user:aiko",
		text:     "Which notice period has the contract with Nordhaul, version 2019?",
		progress: "Reading 34 pages.",
		result:   []string{"Six months to the end of a calendar year (page 11, clause 14.2).\n"},
	},
	{
		agent: offline, sender: "user:jonas",
		text:     "List the price clauses of the Kotka Terminal contract, pages 1 to 20",
		progress: "Reading 20 pages.",
		failure:  "The annexes are faxes of faxes. I cannot read pages 12 to 20.",
	},
}
