package store

import (
	"bytes"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/backup"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// When an import ends, a server that runs already finds all proposals, whatever their number.
func TestImportedProposalsAreFound(t *testing.T) {
	t.Parallel()
	ctx, now, quiet := t.Context(), time.Now().UTC(), func(string, int64) {}
	from, to := Options{Dir: t.TempDir()}, Options{Dir: t.TempDir()}
	s := openFor(t, from)
	if err := s.Identity().CreateOrg(ctx, identity.Org{ID: "acme", Name: "Acme", CreatedAt: now},
		identity.NewEntry(ctx, now, "acme", identity.OrgCreate, "acme", "")); err != nil {
		t.Fatal(err)
	}
	const proposals = buildBatch + 7
	if err := s.eng.write(ctx, func(x *tx) error {
		x.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
			INSERT INTO proposals (org_id, id, status, category, priority, submitted_by, submitted_at, submitted_as, updated_at,
				votes_for, votes_against, score, version, followup_id, title, problem, suggested_fix, resolution_note)
			SELECT 'acme', 'prop-' || (10000 + i), 'open', 'process', 1, 'user:ada', 0, 'open', 0, 0, 0, 0, 1, '', 'Title',
				'It fails', 'Repair it', '' FROM n`, proposals)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	snapshot, err := OpenSnapshot(ctx, from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = snapshot.Close() }()
	var file bytes.Buffer
	h := backup.Header{Schema: snapshot.Schema, Engine: snapshot.Engine, CreatedAt: now, Org: "acme"}
	w, err := backup.NewWriter(&file, h)
	if err == nil {
		err = snapshot.WriteOrg(ctx, w, "acme", true, quiet)
	}
	if err == nil {
		_, err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	serving := openFor(t, to)
	r, err := backup.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := ImportOrg(ctx, to, r, OrgImport{}, quiet); err != nil {
		t.Fatal(err)
	}
	found, err := serving.Proposals().Search(ctx, proposal.Filter{
		Org: "acme", Words: []string{"repair"}, Limit: 1, Viewer: proposal.Viewer{Admin: true},
	})
	if err != nil || found.Total != proposals || !found.Complete {
		t.Errorf("a search finds %d proposals, complete: %v, %v, want %d", found.Total, found.Complete, err, proposals)
	}
}
