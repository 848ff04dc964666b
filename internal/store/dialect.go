package store

import (
	"encoding/json"
	"fmt"
	"time"
)

// dialect holds the parts of the statements that differ between the engines.
type dialect struct {
	name         string
	rowid        string // a column definition; SQLite sorts rows by it
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
	// listed is a query for ids, in a column of this name, as the parameter $2.
	listed func(ids []string) (sql string, arg any)
	// numbers is the same for numbers, without a name.
	numbers func(list []int64) (sql string, arg any)
	// pages reads pages of the text index of an org ($1). pairs are its other parameters.
	pages string
	pairs func(segments, pages []int64) []any
	// queue forces the index of waiting tasks, where the planner would scan all tasks of
	// the org.
	queue string
	// dead forces the index of dead push configurations.
	dead string
	// key is the column by which a proposal is found the fastest. byKey joins keys k to the
	// proposals p that they name, with one look-up each.
	key, byKey string
	// byID is byKey for keys that are ids.
	byID string
	// heads selects the first rows of each range of an index.
	heads func(columns string, list []ranges, head string) string
	// skipsKeys says that an engine skips the rows of an offset in the index, without reading them.
	skipsKeys bool
	// unindexed keeps the planner from using the index of a text column, where it would
	// choose badly without statistics.
	unindexed func(column string) string
	// by forces an index, where the engine supports that.
	by func(index string) string
	// within returns query, which has these columns and then data, in the same order. An engine
	// that always sends all rows omits those that exceed so many bytes of data, but never the
	// first; the first omitted row is sent with empty data. With other engines the reader stops
	// by itself.
	within func(columns, query, order string, bytes int64) string

	// contains is the condition that the column contains text, which has no quotes.
	contains func(column, text string) string
	// position is the function that finds a text in another, in this order: text, sought.
	position string

	// packText is the text of a row of events, in SQL.
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
	listed: func(ids []string) (string, any) {
		return `SELECT value AS id FROM json_each($2)`, jsonList(ids)
	},
	skipsKeys: true,
	key:       "seq",
	numbers:   func(list []int64) (string, any) { return `SELECT value FROM json_each($2)`, jsonList(list) },
	pages: `SELECT p.segment, p.page, p.data FROM json_each($2) k CROSS JOIN search_pages p
		ON p.org_id = $1 AND p.segment = k.value ->> 0 AND p.page = k.value ->> 1`,
	pairs: func(segments, pages []int64) []any {
		list := make([][2]int64, len(pages))
		for i := range list {
			list[i] = [2]int64{segments[i], pages[i]}
		}
		return []any{jsonList(list)}
	},
	queue:     " INDEXED BY tasks_queue",
	dead:      " INDEXED BY push_dead",
	byKey:     `CROSS JOIN proposals p ON p.seq = k.seq`,
	byID:      `CROSS JOIN proposals p ON p.org_id = $1 AND p.id = k.id`,
	heads:     liteHeads,
	unindexed: func(column string) string { return "+" + column },
	by:        func(index string) string { return " INDEXED BY " + index },
	within:    func(_, query, _ string, _ int64) string { return query },
	position:  "instr",
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

// OFFSET 0 keeps the join order: without statistics the planner would walk the org's proposals and
// look up each one on the other side.
const postgresByID = `CROSS JOIN LATERAL (SELECT * FROM proposals WHERE org_id = $1 AND id = k.id OFFSET 0) p`

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
	key:     "id",
	heads:   postgresHeads,
	listed:  func(ids []string) (string, any) { return `SELECT unnest($2::text[]) AS id`, ids },
	numbers: func(list []int64) (string, any) { return `SELECT unnest($2::bigint[])`, list },
	pages: `SELECT k.segment, k.page, p.data FROM unnest($2::bigint[], $3::bigint[]) AS k (segment, page)
		CROSS JOIN LATERAL (SELECT data FROM search_pages WHERE org_id = $1 AND segment = k.segment AND page = k.page
			OFFSET 0) p`,
	pairs:     func(segments, pages []int64) []any { return []any{segments, pages} },
	byKey:     postgresByID,
	byID:      postgresByID,
	unindexed: func(column string) string { return "(" + column + " || '')" },
	by:        func(string) string { return "" },
	// PostgreSQL knows the length of a large value without reading it.
	within: func(columns, query, order string, bytes int64) string {
		return fmt.Sprintf(`SELECT %[1]s, CASE WHEN upto <= %[4]d OR upto = bytes THEN data ELSE '' END AS data FROM (
			SELECT *, octet_length(data) AS bytes, sum(octet_length(data)) OVER (ORDER BY %[3]s) AS upto,
				row_number() OVER (ORDER BY %[3]s) AS place
			FROM (%[2]s) listed
		) summed WHERE upto - bytes <= %[4]d OR place = 2 ORDER BY %[3]s`, columns, query, order, bytes)
	},

	position: "strpos",
	contains: func(column, text string) string { return "strpos(" + column + ", '" + text + "') > 0" },

	packText:   "data",
	unnumbered: "CAST(EXISTS (" + newPacks("1") + ") AS INT)",

	hasCompatible: `SELECT count(*) FROM pg_attribute
		WHERE attrelid = 'schema_migrations'::regclass AND attname = 'compatible' AND NOT attisdropped`,
	makeNodes: makeNodes,
	claimLost: postgresClaimLost,
}

// jsonList returns a list of strings or numbers as JSON.
func jsonList(list any) string {
	data, _ := json.Marshal(list) // such a list has a form in JSON
	return string(data)
}
