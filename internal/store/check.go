package store

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/parley-dev/parley/internal/followup"
)

// Finding is something that Check found wrong.
type Finding struct {
	Check string // what was checked: "file", "indexes", "counters", …
	Org   string // empty if it is about the whole store
	Text  string // what is wrong, and what to do
	// Repairable findings are about numbers that can be computed again from rows.
	Repairable bool
}

// check looks for one kind of damage.
type check struct {
	name string
	run  func(ctx context.Context, s *Snapshot) ([]Finding, error)
}

// checks are all checks, in the order in which they run.
var checks = []check{
	{"file", checkFile},
	{"indexes", checkIndexes},
	{"orgs", checkOrgs},
	{"references", checkReferences},
	{"votes", checkVotes},
	{"counters", checkCounters},
	{"events", checkEvents},
	{"text index", checkTextIndex},
}

// maxFindings limits the findings of one check.
const maxFindings = 100

// Check looks for damage, in the store as of one moment. Before each check it calls progress.
func (s *Snapshot) Check(ctx context.Context, progress func(check string)) ([]Finding, error) {
	files, err := schemaFiles()
	if err != nil {
		return nil, err
	}
	if s.Schema != len(files) {
		return nil, fmt.Errorf("the store has schema %d, and this parley checks schema %d; run \"parley migrate\" first, "+
			"or the parley of the servers", s.Schema, len(files))
	}
	var out []Finding
	for _, c := range checks {
		progress(c.name)
		found, err := c.run(ctx, s)
		switch code := sqlite.ErrCode(err).ToPrimary(); {
		case err != nil && (code == sqlite.ResultCorrupt || code == sqlite.ResultNotADB):
			found = append(found, Finding{Text: "it could not be read to its end (" + err.Error() + ")" + s.form.damaged})
		case err != nil:
			return out, fmt.Errorf("check %s: %w", c.name, err)
		}
		for i := range found {
			found[i].Check = c.name
		}
		if len(found) > maxFindings {
			found = append(found[:maxFindings], Finding{Check: c.name, Text: fmt.Sprintf("and %d more", len(found)-maxFindings)})
		}
		out = append(out, found...)
	}
	return out, nil
}

// found returns a finding for each row of a query for an org and a number. text has a %d for the
// number.
func (s *Snapshot) found(ctx context.Context, text string, repairable bool, sql string) (out []Finding, err error) {
	err = each(ctx, s.reader, func(r rows) error {
		var org string
		var n int64
		if err := r.Scan(&org, &n); err != nil {
			return err
		}
		out = append(out, Finding{Org: org, Text: fmt.Sprintf(text, n), Repairable: repairable})
		return nil
	}, sql)
	return out, err
}

// checkFile asks the engine whether its own structures are intact.
func checkFile(ctx context.Context, s *Snapshot) (out []Finding, err error) {
	said, err := strs(ctx, s.reader, s.form.intact)
	for _, text := range said {
		if text != "ok" {
			out = append(out, Finding{Text: text + s.form.damaged})
		}
	}
	return out, err
}

// checkIndexes looks for indexes that were dropped by hand.
func checkIndexes(ctx context.Context, s *Snapshot) (out []Finding, err error) {
	d := &sqliteDialect
	if s.Engine == postgresDialect.name {
		d = &postgresDialect
	}
	files, err := schemaFiles()
	if err != nil {
		return nil, err
	}
	all, err := d.migrations(files)
	if err != nil {
		return nil, err
	}
	have, err := strs(ctx, s.reader, s.form.indexes)
	if err != nil {
		return nil, err
	}
	want := indexesOf(all)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !slices.Contains(have, name) {
			out = append(out, Finding{Text: fmt.Sprintf("the index %s of the table %s is missing; back up the store, and "+
				"restore it into an empty one", name, want[name])})
		}
	}
	return out, nil
}

var (
	createIndex = regexp.MustCompile(`(?is)^CREATE (?:UNIQUE )?INDEX (?:IF NOT EXISTS )?(\w+)\s+ON (\w+)`)
	dropIndex   = regexp.MustCompile(`(?is)^DROP INDEX (?:IF EXISTS )?(\w+)`)
	dropTable   = regexp.MustCompile(`(?is)^DROP TABLE (?:IF EXISTS )?(\w+)`)
	renameTable = regexp.MustCompile(`(?is)^ALTER TABLE (\w+) RENAME TO (\w+)`)
)

// indexesOf returns the indexes that migrations make, with their tables.
func indexesOf(all []migration) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		for _, sql := range m.statements {
			if f := createIndex.FindStringSubmatch(sql); f != nil {
				out[f[1]] = f[2]
			}
			if f := dropIndex.FindStringSubmatch(sql); f != nil {
				delete(out, f[1])
			}
			if f := dropTable.FindStringSubmatch(sql); f != nil {
				maps.DeleteFunc(out, func(_, table string) bool { return table == f[1] })
			}
			if f := renameTable.FindStringSubmatch(sql); f != nil {
				for name, table := range out {
					if table == f[1] {
						out[name] = f[2]
					}
				}
			}
		}
	}
	return out
}

// references are the rows that need another row, as: table and columns, the other table and its
// columns, and a condition.
var references = [][5]string{
	{"agents", "org_id", "orgs", "id"},
	{"principals", "org_id", "orgs", "id"},
	{"keys", "org_id, kind, principal_id", "principals", "org_id, kind, id"},
	{"votes", "org_id, proposal_id", "proposals", "org_id, id"},
	{"history", "org_id, proposal_id", "proposals", "org_id, id"},
	{"followups", "org_id, proposal_id", "proposals", "org_id, id", "c.proposal_id <> ''"},
	{"proposals", "org_id, followup_id", "followups", "org_id, id", "c.followup_id <> ''"},
	{"friction_reports", "org_id, fingerprint", "friction", "org_id, fingerprint"},
	{"task_events", "org_id, uid", "tasks", "org_id, uid"},
	{"push_configs", "org_id, uid", "tasks", "org_id, uid"},
	{"webhook_deliveries", "org_id, webhook_id", "webhooks", "org_id, id"},
	{"events", "org_id", "event_heads", "org_id"},
	{"oauth_tokens", "grant_id", "oauth_grants", "id"},
	{"oauth_refresh", "grant_id", "oauth_grants", "id"},
}

// checkReferences looks for rows whose other row is missing.
func checkReferences(ctx context.Context, s *Snapshot) (out []Finding, err error) {
	for _, r := range references {
		org := "c.org_id"
		if !strings.Contains(r[1], "org_id") {
			org = "''"
		}
		where := "NOT EXISTS (SELECT 1 FROM " + r[2] + " p WHERE "
		theirs := strings.Split(r[3], ", ")
		for i, column := range strings.Split(r[1], ", ") {
			if i > 0 {
				where += " AND "
			}
			where += "p." + theirs[i] + " = c." + column
		}
		where += ")"
		if r[4] != "" {
			where = r[4] + " AND " + where
		}
		table := r[0]
		if s.form.referring[table] != "" {
			table = s.form.referring[table]
		}
		found, err := s.found(ctx, "%d rows of "+table+" belong to no row of "+r[2]+"; if that row was lost, restore a back-up",
			false, `SELECT `+org+` AS org, count(*) FROM `+table+` c WHERE `+where+` GROUP BY 1 ORDER BY 1`)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// wrongVotes selects the proposals whose numbers of votes differ from their votes.
const wrongVotes = `SELECT p.org_id, p.id, coalesce(v.votes_for, 0) AS votes_for,
		coalesce(v.votes_against, 0) AS votes_against
	FROM proposals p LEFT JOIN (
		SELECT org_id, proposal_id, CAST(sum(CASE WHEN choice = 'for' THEN 1 ELSE 0 END) AS BIGINT) AS votes_for,
			CAST(sum(CASE WHEN choice = 'against' THEN 1 ELSE 0 END) AS BIGINT) AS votes_against
		FROM votes GROUP BY org_id, proposal_id
	) v ON v.org_id = p.org_id AND v.proposal_id = p.id
	WHERE p.votes_for <> coalesce(v.votes_for, 0) OR p.votes_against <> coalesce(v.votes_against, 0)
		OR p.score <> p.votes_for - p.votes_against`

// checkVotes compares the numbers of votes with the votes.
func checkVotes(ctx context.Context, s *Snapshot) ([]Finding, error) {
	return s.found(ctx, "the numbers of votes of %d proposals differ from their votes", true,
		`SELECT org_id, count(*) FROM (`+wrongVotes+`) wrong GROUP BY org_id ORDER BY org_id`)
}

// countedRows selects what the counters should be; see countProposal and countFollowup.
var countedRows = func() string {
	// who is the column, or a constant, for which group is empty.
	proposals := func(kind, who, group, where string) string {
		return `SELECT org_id, '` + kind + `' AS kind, ` + who + ` AS who, status, category, priority, count(*) AS n
			FROM proposals WHERE ` + where + ` GROUP BY org_id, ` + group + `status, category, priority UNION ALL `
	}
	out := ""
	for _, of := range [][2]string{{countProposals, "1 = 1"}, {countEvidence, "fingerprint <> ''"}} {
		kind, where := of[0], of[1]
		out += proposals(kind, "''", "", where) + proposals(kind, "submitted_by", "submitted_by, ", where) +
			proposals(kind, "'"+countPeople+"'", "", where+" AND submitted_by LIKE '"+countPeople+":%'")
	}
	return out + `SELECT org_id, '` + countFollowups + `', '', status, '', 0, count(*) FROM followups GROUP BY org_id, status
		UNION ALL SELECT org_id, '` + countFollowups + `', CASE WHEN assignee = '' THEN '` + followup.Unassigned + `'
			ELSE assignee END, status, '', 0, count(*) FROM followups GROUP BY org_id, assignee, status`
}()

// wrongCounters selects the counters that differ from the rows, and how much is to be added.
var wrongCounters = `SELECT org_id, kind, who, status, category, priority, CAST(sum(n) AS BIGINT) AS n FROM (
		` + countedRows + ` UNION ALL SELECT org_id, kind, who, status, category, priority, -n FROM counters
	) counted GROUP BY org_id, kind, who, status, category, priority HAVING sum(n) <> 0`

// checkCounters compares the totals of lists with the rows.
func checkCounters(ctx context.Context, s *Snapshot) ([]Finding, error) {
	return s.found(ctx, "%d totals of lists differ from the rows", true,
		`SELECT org_id, count(*) FROM (`+wrongCounters+`) wrong GROUP BY org_id ORDER BY org_id`)
}

// checkEvents looks for events that are missing between others.
func checkEvents(ctx context.Context, s *Snapshot) ([]Finding, error) {
	gaps, err := s.found(ctx, "the log of events has %d gaps; restore a back-up if you need them", false, `
		SELECT org_id, count(*) FROM (
			SELECT org_id, last_seq - n AS start, lag(last_seq) OVER (PARTITION BY org_id ORDER BY last_seq) AS before
			FROM events
		) packs WHERE before IS NOT NULL AND before <> start GROUP BY org_id ORDER BY org_id`)
	if err != nil {
		return nil, err
	}
	beyond, err := s.found(ctx, "the log of events ends at another number than its head says (%d)", false, `
		SELECT h.org_id, h.seq FROM event_heads h JOIN (
			SELECT org_id, max(last_seq) AS last_seq FROM events GROUP BY org_id
		) e ON e.org_id = h.org_id WHERE e.last_seq <> h.seq ORDER BY h.org_id`)
	if err != nil {
		return nil, err
	}
	lost, err := s.found(ctx, "the log of events lacks its first %d events; restore a back-up if you need them", false, `
		SELECT org_id, CAST(start - kept AS BIGINT) FROM (
			SELECT h.org_id, h.kept, coalesce((SELECT min(e.last_seq - e.n) FROM events e WHERE e.org_id = h.org_id), h.seq)
				+ 1 AS start FROM event_heads h
		) heads WHERE start > kept ORDER BY org_id`)
	if err != nil || s.form.badPacks == "" {
		return slices.Concat(gaps, beyond, lost), err
	}
	bad, err := s.found(ctx, "%d packs of events cannot be read; restore a back-up if you need them", false,
		s.form.badPacks)
	return slices.Concat(gaps, beyond, lost, bad), err
}
