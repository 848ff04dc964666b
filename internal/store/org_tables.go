package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-dev/parley/internal/backup"
	"github.com/parley-dev/parley/internal/errs"
)

// orgRows says which rows of a table belong to an org.
type orgRows struct {
	// of is the condition for the rows of the org $1. It is empty if no row belongs to one org.
	of string
	// exported is the condition for those that an export has; empty: of.
	exported string
	// stays says why an export has none of its rows; empty if it has some.
	stays string
	// secret marks rows with which callers get in, or with which Parley signs. An export can leave
	// them out.
	secret bool
	// last marks rows by which servers let callers in, or that they work on by themselves. An import
	// adds them after all others, in one transaction. active is a condition for such rows of a table
	// whose other rows are not.
	last   bool
	active string
}

const (
	ofOrg    = "org_id = $1"
	ofGrants = "grant_id IN (SELECT id FROM oauth_grants WHERE org_id = $1)"
)

const searchStays = "made from the proposals"

// orgTables has every table, so that a new one cannot be forgotten.
var orgTables = map[string]orgRows{
	"orgs":         {of: "id = $1", last: true},
	"principals":   {of: ofOrg, last: true},
	"agents":       {of: ofOrg, last: true},
	"workers":      {of: ofOrg, last: true},
	"relays":       {of: ofOrg, last: true},
	"relay_tasks":  {of: ofOrg, last: true},
	"org_settings": {of: ofOrg, last: true},
	"event_heads":  {of: ofOrg, last: true},

	"proposals":        {of: ofOrg},
	"votes":            {of: ofOrg},
	"history":          {of: ofOrg},
	"followups":        {of: ofOrg},
	"counters":         {of: ofOrg},
	"saved_notes":      {of: ofOrg},
	"friction":         {of: ofOrg},
	"friction_reports": {of: ofOrg},
	"audit":            {of: ofOrg},
	"events":           {of: ofOrg},
	"event_subjects":   {of: ofOrg},
	"messages":         {of: ofOrg},
	// A task belongs to the org of its agent, not to that of its sender.
	"task_events": {of: ofOrg},
	"tasks":       {of: ofOrg, active: "(queued = 1 OR lease_expires > 0 OR wake_at > 0)"},

	"keys":       {of: ofOrg, secret: true, last: true},
	"passwords":  {of: ofOrg, secret: true, last: true},
	"identities": {of: ofOrg, secret: true, last: true},
	// A link that waits to be used is good for one server only.
	"invitations": {
		of: ofOrg, exported: "org_id = $1 AND (accepted_at > 0 OR revoked_at > 0)", secret: true, last: true,
	},
	// A client that registered itself belongs to no org. Those that an org has connected go with it.
	"oauth_clients": {
		of:       "org_id = $1 AND org_id <> ''",
		exported: "(org_id = $1 OR org_id = '' AND id IN (SELECT client_id FROM oauth_grants WHERE org_id = $1))",
		secret:   true, last: true,
	},
	"oauth_grants":  {of: ofOrg, secret: true, last: true},
	"oauth_refresh": {of: ofGrants, secret: true, last: true},
	"oauth_tokens":  {of: ofGrants, secret: true, last: true},
	// The outcomes of commands that made a key contain it, encrypted.
	"idempotency":        {of: ofOrg, secret: true},
	"push_configs":       {of: ofOrg, secret: true, last: true},
	"webhooks":           {of: ofOrg, secret: true, last: true},
	"webhook_deliveries": {of: ofOrg, secret: true, last: true},

	"login_links":    {of: ofOrg, stays: "a link is good once, on one server"},
	"account_links":  {of: ofOrg, stays: "it connects several orgs, and gives rights in the others"},
	"sessions":       {stays: "a session belongs to a browser, and may be signed in to several orgs"},
	"oauth_requests": {stays: "a request waits some minutes for a person"},
	"identity_epoch": {stays: "a number of the whole store"},
	"secrets":        {stays: "they belong to the server"},

	"search_orgs":       {of: ofOrg, stays: searchStays},
	"search_segments":   {of: ofOrg, stays: searchStays},
	"search_pages":      {of: ofOrg, stays: searchStays},
	"search_waiting":    {of: ofOrg, stays: searchStays},
	"agent_usage":       {of: "(org_id = $1 OR caller_org = $1)", stays: "counts calls of a short time, also those of other orgs"},
	"data_versions":     {of: ofOrg, stays: "tells nodes that lists have changed"},
	"events_new":        {of: ofOrg, stays: "exported with the events, with numbers"},
	"schema_migrations": {stays: "describes the database"},
	"nodes":             {stays: "describes the servers"},
}

// condition returns the condition for the rows that an export has.
func (r orgRows) condition() string {
	if r.exported != "" {
		return r.exported
	}
	return r.of
}

// leaves reports whether an export, with secrets or without, has none of the rows.
func (r orgRows) leaves(secrets bool) bool { return r.stays != "" || r.secret && !secrets }

// orgValues are values of columns in an export, by table and column: the code of a grant is good once.
var orgValues = map[string]string{"oauth_grants.code_hash": "''"}

// orgSchema is the first schema in which an org can be told from others in all tables.
const orgSchema = 8

// The settings of an org that is being deleted or imported, with the value that identifies the run.
const (
	settingDeleting  = "org.deleting"
	settingImporting = "org.importing"
)

// WriteOrg writes the rows of one org, as Write does, but with secrets that are not encrypted: the org
// may move to a store with other keys. An unknown org is NotFound.
func (s *Snapshot) WriteOrg(
	ctx context.Context, w *backup.Writer, org string, secrets bool, progress func(table string, rows int64),
) error {
	all, err := s.form.list(ctx, s.reader)
	if err != nil {
		return err
	}
	for _, t := range all {
		r, known := orgTables[t.name]
		if !known {
			return fmt.Errorf("the table %s is unknown", t.name)
		}
		where, args := r.condition(), []any{org}
		if r.leaves(secrets) {
			where, args = "1 = 0", nil // its line is there, because a restore needs all tables
		}
		if err := s.writeTable(ctx, w, &t, s.unsealer(&t, secrets), progress, s.form.queryWhere(&t, where, orgValues), args...); err != nil {
			return fmt.Errorf("read the table %s: %w", t.name, err)
		}
	}
	return nil
}

// FindOrg returns an error if the org cannot be exported. An unknown org is NotFound.
func (s *Snapshot) FindOrg(ctx context.Context, org string) error {
	if s.Schema < orgSchema {
		return fmt.Errorf("the store has schema %d, in which orgs cannot be exported; run \"parley migrate\" first", s.Schema)
	}
	n := 0
	found, err := one(ctx, s.reader, []any{&n}, `SELECT 1 FROM orgs WHERE id = $1`, org)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	if err != nil {
		return err
	}
	deleting, err := one(ctx, s.reader, []any{&n}, `SELECT 1 FROM org_settings WHERE org_id = $1 AND name = $2`, org,
		settingDeleting)
	if err == nil && deleting {
		err = fmt.Errorf("the org %q is being deleted, so it cannot be exported", org)
	}
	return err
}

func (t *copyTable) has(column string) bool {
	for _, c := range t.columns {
		if c.name == column {
			return true
		}
	}
	return false
}

var errNoExport = errors.New("this is a back-up of a whole store, not an export of one org; use \"parley restore\"")

// marks returns n placeholders: "$1, $2, …".
func marks(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("$%d", i+1)
	}
	return strings.Join(out, ", ")
}
