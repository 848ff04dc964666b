package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/backup"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// OrgImport says how an org is imported.
type OrgImport struct {
	As             string // the id that the org gets; empty: that of the export
	WithoutSecrets bool   // without keys, passwords and all else that orgTables calls secret
	// Entry is added to the audit log of the org. Its org and target are filled in.
	Entry identity.AuditEntry
}

// ImportOrg adds the org of an export to a store, which may have other orgs and be in use. The org
// appears with all of its rows, or not at all.
//
// The rows are first restored into a store of their own, which is thrown away. So the export is known
// to be complete, has the newest schema, and can be changed before a row reaches the store.
func ImportOrg(
	ctx context.Context, o Options, from *backup.Reader, how OrgImport, progress func(table string, rows int64),
) (_ identity.Org, err error) {
	h := from.Header()
	if h.Org == "" {
		return identity.Org{}, errNoExport
	}
	s, err := Open(ctx, o)
	if err != nil {
		return identity.Org{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	im := &orgImport{store: s, from: h.Org, org: how.As, secrets: !how.WithoutSecrets, progress: progress}
	if im.org == "" {
		im.org = h.Org
	}
	if err := im.refuseTaken(ctx, s.eng); err != nil { // soon, and again when the rows are added
		return identity.Org{}, err
	}
	done, err := im.openStage(o)
	if err != nil {
		return identity.Org{}, err
	}
	defer done()
	if err := restoreRows(ctx, Options{Dir: im.stage, Version: o.Version}, from, progress); err != nil {
		return identity.Org{}, err
	}
	if err := im.prepare(ctx); err != nil {
		return identity.Org{}, err
	}
	im.entry = how.Entry
	im.entry.Org, im.entry.Target = im.org, im.org
	if im.rows, err = openSQLiteSnapshot(ctx, im.stage); err != nil {
		return identity.Org{}, err
	}
	defer func() { err = errors.Join(err, im.rows.Close()) }()
	if err := im.readUnique(ctx); err != nil {
		return identity.Org{}, err
	}
	if o.URL != "" {
		err = im.intoPostgres(ctx, o)
	} else {
		err = im.intoSQLite(ctx, o)
	}
	if err != nil {
		return identity.Org{}, err
	}
	return s.Identity().Org(ctx, im.org)
}

// orgImport is a running ImportOrg.
type orgImport struct {
	store    *Store
	from     string // id of the org in the export
	org      string // id that it gets
	secrets  bool
	entry    identity.AuditEntry
	progress func(table string, rows int64)

	stage  string // folder
	rows   *Snapshot
	tables []copyTable
	unique []uniqueValues
	shared []string // ids of clients that belong to no org
}

// stageFolder is in the data folder during an import. One import runs at a time, so that one that was
// killed leaves at most one stage.
const stageFolder = "import"

// openStage makes an empty folder for the rows of the export.
func (im *orgImport) openStage(o Options) (done func(), err error) {
	if o.URL != "" {
		im.stage, err = os.MkdirTemp("", "parley-import-")
		return func() { _ = os.RemoveAll(im.stage) }, err
	}
	dir := filepath.Join(o.Dir, stageFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	release, by, err := tryLock(dir, "parley org import")
	if err != nil {
		return nil, err
	}
	if release == nil {
		return nil, fmt.Errorf("another import into this store is running (%s); wait until it ends", by)
	}
	im.stage = filepath.Join(dir, "store")
	if err := os.RemoveAll(im.stage); err != nil {
		release()
		return nil, err
	}
	return func() {
		_ = os.RemoveAll(dir)
		release()
	}, nil
}

// foreign marks the org of a sender that is not the org of the export. No org has such an id: an org
// of the store may have the id of that other org, and must not get its tasks.
const foreign = "~"

// prepare checks and changes the rows in the stage: they must all be of one org, and get its new id.
func (im *orgImport) prepare(ctx context.Context) (err error) {
	conn, err := openLite(filepath.Join(im.stage, fileName), "foreign_keys=0", "synchronous=OFF")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	r := bareLite{conn}
	if im.tables, err = sqliteForm.list(ctx, r); err != nil {
		return err
	}
	if err := conn.exec("BEGIN"); err != nil {
		return err
	}
	orgs, err := strs(ctx, r, `SELECT id FROM orgs`)
	if err != nil {
		return err
	}
	if !slices.Equal(orgs, []string{im.from}) {
		return errors.New("the export is damaged: it does not have exactly the org that its header names; use another one")
	}
	for i := range im.tables {
		if err := im.checkTable(ctx, conn, &im.tables[i]); err != nil {
			return err
		}
	}
	for _, table := range []string{"tasks", "messages", "push_configs"} {
		if err := conn.exec(`UPDATE `+table+` SET sender_org = $2 || sender_org
			WHERE sender_org NOT IN ($1, '') AND substr(sender_org, 1, 1) <> $2`, im.from, foreign); err != nil {
			return err
		}
	}
	if im.org != im.from {
		if err := im.rename(conn); err != nil {
			return err
		}
	}
	if err := im.hideBuiltin(ctx, conn); err != nil {
		return err
	}
	if err := im.seal(ctx, conn); err != nil {
		return err
	}
	return conn.exec("COMMIT")
}

// hideBuiltin makes built-in agents private whose public id the store has already. The first org of every
// store has one.
func (im *orgImport) hideBuiltin(ctx context.Context, conn *liteConn) error {
	ids, err := strs(ctx, bareLite{conn}, `SELECT id FROM agents WHERE `+isPublic+` AND builtin <> ''`)
	if err != nil {
		return err
	}
	for _, id := range ids {
		taken, err := some(ctx, im.store.eng, "agents", "id", isPublic, []string{id})
		if err != nil {
			return err
		}
		if len(taken) > 0 {
			if err := conn.exec(`UPDATE agents SET public = 0, public_name = 0 WHERE id = $1`, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkTable removes what is not imported, and returns an error if a row does not belong to the org.
func (im *orgImport) checkTable(ctx context.Context, conn *liteConn, t *copyTable) error {
	r, known := orgTables[t.name]
	if !known {
		return fmt.Errorf("the table %s is unknown", t.name)
	}
	if r.leaves(im.secrets) {
		return conn.exec(`DELETE FROM ` + t.name)
	}
	n := 0
	alien, err := one(ctx, bareLite{conn}, []any{&n},
		`SELECT 1 FROM `+t.name+` WHERE NOT (`+r.condition()+`) LIMIT 1`, im.from)
	if err == nil && alien {
		err = fmt.Errorf("the export is damaged: the table %s has a row of another org; use another one", t.name)
	}
	return err
}

// rename gives the org its new id.
func (im *orgImport) rename(conn *liteConn) error {
	sql := []string{`UPDATE orgs SET id = $2 WHERE id = $1`}
	for i := range im.tables {
		t := &im.tables[i]
		for _, column := range []string{"org_id", "sender_org"} {
			if t.has(column) {
				sql = append(sql, `UPDATE `+t.name+` SET `+column+` = $2 WHERE `+column+` = $1`)
			}
		}
	}
	for _, s := range sql {
		if err := conn.exec(s, im.from, im.org); err != nil {
			return err
		}
	}
	return nil
}

// uniqueValues are values that no two orgs of a store can have.
type uniqueValues struct {
	table, column, where, say string
	values                    []string
}

// isPublic is the condition on agents that other orgs reach by their id, or could again.
const isPublic = "(public = 1 OR public_name = 1)"

// uniqueColumns are the columns of such values. say has a %q for the value, unless it is a hash.
var uniqueColumns = []uniqueValues{
	{table: "agents", column: "id", where: isPublic, say: "the store has the public agent %q already; an " +
		"agent's public id is unique. Free it with \"parley agent release\", or choose another store"},
	{table: "keys", column: "id"},
	{table: "keys", column: "hash"},
	{table: "invitations", column: "id"},
	{table: "invitations", column: "hash"},
	{table: "oauth_clients", column: "id", where: "org_id <> ''"},
	{table: "oauth_grants", column: "id"},
	{table: "oauth_refresh", column: "hash"},
	{table: "oauth_tokens", column: "hash"},
}

const sameSecrets = "the store has a key, invitation or program of this org already, perhaps because it has the org " +
	"under another id; import it with --without-credentials"

// readUnique reads the values of the export that no other org may have.
func (im *orgImport) readUnique(ctx context.Context) (err error) {
	for _, u := range uniqueColumns {
		sql := `SELECT ` + u.column + ` FROM ` + u.table
		if u.where != "" {
			sql += ` WHERE ` + u.where
		}
		if u.values, err = strs(ctx, im.rows.reader, sql); err != nil {
			return err
		}
		im.unique = append(im.unique, u)
	}
	im.shared, err = strs(ctx, im.rows.reader, `SELECT id FROM oauth_clients WHERE org_id = ''`)
	return err
}

// refuse returns an error if the org cannot be added to the store.
func (im *orgImport) refuse(ctx context.Context, r reader) error {
	if err := im.refuseTaken(ctx, r); err != nil {
		return err
	}
	for _, u := range im.unique {
		taken, err := some(ctx, r, u.table, u.column, u.where, u.values)
		switch {
		case err != nil:
			return err
		case len(taken) > 0 && u.say != "":
			return errs.New(errs.Conflict, "org.import_agent_taken", u.say, taken[0])
		case len(taken) > 0:
			return errs.New(errs.Conflict, "org.import_credentials_taken", "%s", sameSecrets)
		}
	}
	return nil
}

// refuseTaken returns an error if the store has an org of this id.
func (im *orgImport) refuseTaken(ctx context.Context, r reader) error {
	n := 0
	taken, err := one(ctx, r, []any{&n}, `SELECT 1 FROM orgs WHERE id = $1`, im.org)
	if err == nil && taken {
		err = errs.New(errs.Conflict, "identity.org_exists",
			"org %q exists already; import it under another id with --as, or delete that org first", im.org)
	}
	return err
}

// unborn allows to delete rows as long as there is no such org.
func (im *orgImport) unborn(ctx context.Context, t *tx) error {
	if err := t.lockOrgID(ctx, im.org); err != nil {
		return err
	}
	return im.refuseTaken(ctx, t)
}

// some returns which of the values a column has, up to those of the first batch that has any.
func some(ctx context.Context, r reader, table, column, where string, values []string) ([]string, error) {
	const batch = 200
	for part := range slices.Chunk(values, batch) {
		args := make([]any, len(part))
		for i, v := range part {
			args[i] = v
		}
		sql := `SELECT ` + column + ` FROM ` + table + ` WHERE ` + column + ` IN (` + marks(len(part)) + `)`
		if where != "" {
			sql += ` AND ` + where
		}
		if found, err := strs(ctx, r, sql, args...); err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

// known returns which of the shared clients the store has.
func (im *orgImport) known(ctx context.Context, r reader) (map[string]bool, error) {
	out := map[string]bool{}
	for _, id := range im.shared {
		found, err := some(ctx, r, "oauth_clients", "id", "", []string{id})
		if err != nil {
			return nil, err
		}
		out[id] = len(found) > 0
	}
	return out, nil
}

// each calls fn for the rows of a table for which a condition holds; empty: for all. What it gets is
// valid until it returns. Clients that the store has are left out.
func (im *orgImport) each(
	ctx context.Context, t *copyTable, where string, have map[string]bool, fn func(values []any) error,
) error {
	scan, n := t.scanner(), int64(0)
	id := slices.IndexFunc(t.columns, func(c copyColumn) bool { return c.name == "id" })
	err := each(ctx, im.rows.reader, func(r rows) error {
		values, err := scan(r)
		if err != nil {
			return err
		}
		if t.name == "oauth_clients" {
			// A client that is a document is read again from its URL: what an export says about it could be false.
			if name, _ := values[id].(string); have[name] || strings.Contains(name, "://") {
				return nil
			}
		}
		if n++; n%progressRows == 0 {
			im.progress(t.name, n)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return fn(values)
	}, im.rows.form.queryWhere(t, where, nil))
	return err
}

// newToken returns a value that identifies a run.
func newToken() string { return strings.ToLower(rand.Text()) }
