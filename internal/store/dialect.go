package store

import (
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/proposal"
)

// dialect holds the parts of the statements that differ between the engines.
type dialect struct {
	name         string
	rowid        string // a column definition; SQLite's full-text index needs an integer key
	withoutRowid string
	forUpdate    string // locks the rows that a decision depends on
	skipLocked   string // the same, but skips rows that others have locked

	// leading is the number with which a text begins.
	leading func(text string) string

	orNothing string // ends an insert that must change nothing if its key is taken
	// orFail makes an update fail if it changes no row, where the engine does not count rows; see
	// statement.unless.
	orFail func(update string) string
	// leaseClock is the time of leases in an update; mark is the parameter with Go's time.
	leaseClock func(mark string) string

	// clock is the time by which leases are measured, as a column: the database's clock if
	// several nodes share it, else 0, which stands for the clock of this process.
	clock string
	// clockNow is the same time as an operand of a condition.
	clockNow func(now func() time.Time) statement
	// leaseUntil is the end of a lease that starts with this insert.
	leaseUntil func(mark string, length time.Duration, until time.Time) (sql string, arg any)

	// finishTasks is finishTask for many tasks; nil if the engine does not combine writes.
	finishTasks *many
	// addSubjects adds the packs of an org ($1) after $2 up to $3 to the index of subjects.
	addSubjects string
	// index adds a new proposal to the text index; reindex updates an edited one.
	index, reindex func(t *tx, p *proposal.Proposal)
	// search is the FROM clause of a full-text search that yields proposals as p. Its
	// parameter is the result of match.
	search string
	match  func(words []string) string
	// scan is search for a small org: it reads all of the org's proposals instead of an
	// index that holds those of all orgs. Its parameter is the result of scanWords.
	scan      string
	scanWords func(words []string) string
	// likeScan is the FROM clause that reads all proposals of an org as p. likeCount counts
	// how many of some words a proposal has; its parameter is the result of likeWords.
	likeScan, likeCount string
	likeWords           func(words []string) any
	// likeHits is the FROM clause of the proposals p with one word, limited to %d entries of
	// the org in the index. Its parameter is the result of exactly.
	likeHits string
	exactly  func(word string) string
	// queue forces the index of waiting tasks, where the planner would scan all tasks of
	// the org.
	queue string
	// dead forces the index of dead push configurations.
	dead string
	// key is the column by which a proposal is found the fastest. byKey joins keys k to the
	// proposals p that they name, with one look-up each.
	key, byKey string
	// heads selects the first rows of each range of an index.
	heads func(columns string, list []ranges, head string) string
	// skipsKeys says that an engine skips the rows of an offset in the index, without reading them.
	skipsKeys bool
	// unindexed keeps the planner from using the index of a text column, where it would
	// choose badly without statistics.
	unindexed func(column string) string
	// by forces an index, where the engine supports that.
	by func(index string) string
	// within returns query with these columns, one of which is data, in the same order. An
	// engine that always sends all rows omits those that exceed so many bytes of data, but
	// never the first. With other engines the reader stops by itself.
	within func(columns, query, order string, bytes int64) string

	// contains is the condition that the column contains text, which has no quotes.
	contains func(column, text string) string

	// packText is the text of a row of events.
	packText string
	// unnumbered is the condition that events of the org of h have no number yet.
	unnumbered string

	hasCompatible string // counts the column compatible of schema_migrations
	makeNodes     string // creates the table of nodes; empty if there is only one node
	claimLost     string // the condition that the claim of a row is one of a node that is gone; see claims.go
}

var sqliteDialect = dialect{
	name:         "sqlite",
	rowid:        "seq INTEGER PRIMARY KEY,",
	leading:      func(text string) string { return "CAST(" + text + " AS INTEGER)" },
	withoutRowid: "WITHOUT ROWID",
	orNothing:    " ON CONFLICT DO NOTHING",
	orFail:       func(update string) string { return update },
	leaseClock:   func(mark string) string { return mark },
	clock:        "0",
	claimLost:    sqliteClaimLost,
	clockNow:     func(now func() time.Time) statement { return statement{sql: "$1", args: []any{micros(now())}} },
	leaseUntil:   func(mark string, _ time.Duration, until time.Time) (string, any) { return mark, micros(until) },
	index:        func(t *tx, _ *proposal.Proposal) { t.unindexed++ }, // see lite_indexer.go
	reindex: func(t *tx, p *proposal.Proposal) {
		// A proposal that is not indexed yet is left to the indexer.
		t.exec(`INSERT OR REPLACE INTO proposal_search (rowid, words)
			SELECT seq, $3 FROM proposals WHERE org_id = $1 AND id = $2
				AND seq <= (SELECT coalesce(max(id), 0) FROM proposal_search_docsize)`,
			p.Org, p.ID, strings.Join(p.SearchWords(), " "))
	},
	skipsKeys: true,
	queue:     " INDEXED BY tasks_queue",
	dead:      " INDEXED BY push_dead",
	key:       "seq",
	byKey:     `CROSS JOIN proposals p ON p.seq = k.seq`,
	heads:     liteHeads,
	search: `(SELECT rowid AS doc FROM proposal_search WHERE proposal_search MATCH $2) s
		CROSS JOIN proposals p ON p.seq = s.doc`,
	match: func(words []string) string {
		return `"` + strings.Join(words, `" "`) + `"*`
	},
	scan:      `(SELECT * FROM proposals WHERE org_id = $1 AND has_words($2, title, problem, suggested_fix)) p`,
	scanWords: func(words []string) string { return strings.Join(words, " ") },
	likeScan:  `proposals p`,
	likeCount: `count_words($2, p.title, p.problem, p.suggested_fix)`,
	likeWords: func(words []string) any { return strings.Join(words, " ") },
	// The index holds all orgs. The limit counts the entries of this org.
	likeHits: `(SELECT f.rowid AS doc FROM proposal_search f CROSS JOIN proposals o ON o.seq = f.rowid
			WHERE f.proposal_search MATCH $2 AND o.org_id = $1 ORDER BY f.rowid DESC LIMIT %d) s
		CROSS JOIN proposals p ON p.seq = s.doc`,
	exactly:   func(word string) string { return `"` + word + `"` },
	unindexed: func(column string) string { return "+" + column },
	by:        func(index string) string { return " INDEXED BY " + index },
	within:    func(_, query, _ string, _ int64) string { return query },
	contains:  func(column, text string) string { return "instr(" + column + ", '" + text + "') > 0" },

	addSubjects: `INSERT INTO event_subjects (org_id, subject, last_seq)
			SELECT $1, subject.value, last_seq FROM events, json_each(pack_subjects(data, n)) AS subject
			WHERE org_id = $1 AND last_seq > $2 AND last_seq <= $3
		ON CONFLICT (org_id, subject, last_seq) DO NOTHING`,
	packText:   "pack_text(data)",
	unnumbered: "0",

	hasCompatible: `SELECT count(*) FROM pragma_table_info('schema_migrations') WHERE name = 'compatible'`,
}

const postgresClock = `CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)`

var postgresDialect = dialect{
	name:       "postgres",
	forUpdate:  " FOR UPDATE",
	skipLocked: " FOR UPDATE SKIP LOCKED",
	leading:    func(text string) string { return "CAST(split_part(" + text + ", ' ', 1) AS BIGINT)" },
	clock:      postgresClock,
	// A subquery is evaluated once, so its result can be looked up in an index.
	clockNow: func(func() time.Time) statement { return statement{sql: "(SELECT " + postgresClock + ")"} },
	orFail: func(update string) string {
		return `WITH changed AS (` + update + ` RETURNING 1) SELECT 1 / count(*) FROM changed` // codeMoved
	},
	leaseClock: func(string) string { return postgresClock },
	leaseUntil: func(mark string, length time.Duration, _ time.Time) (string, any) {
		return "CASE WHEN " + mark + "::bigint > 0 THEN " + postgresClock + " + " + mark + " ELSE 0 END",
			length.Microseconds()
	},
	finishTasks: &finishTasks,
	addSubjects: `INSERT INTO event_subjects (org_id, subject, last_seq)
			SELECT $1, split_part(line, chr(9), 5), last_seq FROM events, string_to_table(data, chr(10)) AS line
			WHERE org_id = $1 AND last_seq > $2 AND last_seq <= $3 AND line <> ''
		ON CONFLICT (org_id, subject, last_seq) DO NOTHING`,
	index: func(t *tx, p *proposal.Proposal) {
		t.insert(`INSERT INTO proposal_search (org_id, proposal_id, words)
			VALUES ($1, $2, array_to_tsvector($3::text[]))`,
			p.Org, p.ID, p.SearchWords())
	},
	reindex: func(t *tx, p *proposal.Proposal) {
		t.exec(`UPDATE proposal_search SET words = array_to_tsvector($3::text[])
			WHERE org_id = $1 AND proposal_id = $2`,
			p.Org, p.ID, p.SearchWords())
	},
	key:   "id",
	heads: postgresHeads,
	// OFFSET 0 keeps the join order: without statistics the planner would walk the org's
	// proposals and look up each one on the other side.
	byKey: `CROSS JOIN LATERAL (SELECT * FROM proposals WHERE org_id = $1 AND id = k.id OFFSET 0) p`,
	search: `(SELECT proposal_id FROM proposal_search WHERE words @@ $2::text::tsquery AND org_id = $1 OFFSET 0) s
		CROSS JOIN LATERAL (SELECT * FROM proposals WHERE org_id = $1 AND id = s.proposal_id OFFSET 0) p`,
	match: postgresMatch,
	// ts_match_vq does what @@ does, but uses no index.
	scan: `(SELECT proposal_id FROM proposal_search
			WHERE org_id = $1 AND ts_match_vq(words, $2::text::tsquery) OFFSET 0) s
		CROSS JOIN LATERAL (SELECT * FROM proposals WHERE org_id = $1 AND id = s.proposal_id OFFSET 0) p`,
	scanWords: postgresMatch,
	likeScan: `(SELECT proposal_id, words FROM proposal_search WHERE org_id = $1 OFFSET 0) s
		CROSS JOIN LATERAL (SELECT * FROM proposals WHERE org_id = $1 AND id = s.proposal_id OFFSET 0) p`,
	likeCount: `(SELECT count(*) FROM unnest($2::text[]) word WHERE ts_match_vq(s.words, word::tsquery))`,
	likeWords: func(words []string) any {
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = "'" + w + "'"
		}
		return quoted
	},
	likeHits: `(SELECT proposal_id FROM proposal_search WHERE words @@ $2::text::tsquery AND org_id = $1 LIMIT %d) s
		CROSS JOIN LATERAL (SELECT * FROM proposals WHERE org_id = $1 AND id = s.proposal_id OFFSET 0) p`,
	exactly:   func(word string) string { return "'" + word + "'" },
	unindexed: func(column string) string { return "(" + column + " || '')" },
	by:        func(string) string { return "" },
	// PostgreSQL knows the length of a large value without reading it.
	within: func(columns, query, order string, bytes int64) string {
		return fmt.Sprintf(`SELECT %[1]s FROM (
			SELECT *, sum(octet_length(data)) OVER (ORDER BY %[3]s) AS upto FROM (%[2]s) listed
		) summed WHERE upto <= %[4]d OR upto = octet_length(data) ORDER BY %[3]s`, columns, query, order, bytes)
	},

	contains: func(column, text string) string { return "strpos(" + column + ", '" + text + "') > 0" },

	packText:   "data",
	unnumbered: "CAST(EXISTS (" + newPacks("1") + ") AS INT)",

	hasCompatible: `SELECT count(*) FROM pg_attribute
		WHERE attrelid = 'schema_migrations'::regclass AND attname = 'compatible' AND NOT attisdropped`,
	makeNodes: makeNodes,
	claimLost: postgresClaimLost,
}

func postgresMatch(words []string) string {
	return `'` + strings.Join(words, `' & '`) + `':*`
}
