package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-dev/parley/internal/textindex"
)

// checkTextIndex looks for proposals that no search finds, and for damaged segments.
func checkTextIndex(ctx context.Context, s *Snapshot) (out []Finding, err error) {
	orgs, err := strs(ctx, s.reader, `SELECT DISTINCT org_id FROM proposals ORDER BY org_id`)
	if err != nil {
		return nil, err
	}
	for _, org := range orgs {
		text, err := unsearchable(ctx, s.reader, s.dialect(), org)
		if err != nil {
			return nil, err
		}
		if text != "" {
			out = append(out, Finding{Org: org, Text: text, Repairable: true})
		}
	}
	return out, nil
}

func (s *Snapshot) dialect() *dialect {
	if s.Engine == postgresDialect.name {
		return &postgresDialect
	}
	return &sqliteDialect
}

// unsearchable says what is wrong with the text index of an org; empty: nothing. What r reads must not
// change meanwhile.
func unsearchable(ctx context.Context, r reader, d *dialect, org string) (string, error) {
	x := newSearchIndex(&db{d: d}, nil, nil)
	found := map[string]bool{}
	all, err := x.segments(ctx, r, org)
	if err != nil {
		return "", err
	}
	for _, row := range all {
		if row.state != segmentUsed {
			continue
		}
		ids, err := x.verify(ctx, r, org, row)
		if errors.Is(err, textindex.ErrDamaged) || errors.Is(err, errPageGone) {
			return fmt.Sprintf("the text index is damaged, so searches fail (%v)", err), nil
		}
		if err != nil {
			return "", err
		}
		for _, id := range ids {
			if found[id] {
				return "the text index has a proposal twice", nil
			}
			found[id] = true
		}
	}
	waiting, err := strs(ctx, r, `SELECT proposals FROM search_waiting WHERE org_id = $1`, org)
	if err != nil {
		return "", err
	}
	exist, err := strs(ctx, r, `SELECT id FROM proposals WHERE org_id = $1`, org)
	if err != nil {
		return "", err
	}
	lost := 0
	isWaiting := make(map[string]bool, len(waiting))
	for _, packed := range waiting {
		for _, id := range unpackIDs(packed) {
			isWaiting[id] = true
		}
	}
	for _, id := range exist {
		if !found[id] && !isWaiting[id] {
			lost++
		}
		delete(found, id)
	}
	for id := range isWaiting {
		delete(found, id)
	}
	switch {
	case lost > 0:
		return fmt.Sprintf("%d proposals are missing in the text index, so no search finds them", lost), nil
	case len(found) > 0:
		return fmt.Sprintf("the text index has %d proposals that do not exist", len(found)), nil
	}
	return "", nil
}

// rebuildIndexes makes servers build the damaged text indexes again. It returns how many orgs have one.
func rebuildIndexes(ctx context.Context, r reader, d *dialect, exec func(sql string, args ...any) error) (n int64, err error) {
	orgs, err := strs(ctx, r, `SELECT DISTINCT org_id FROM proposals ORDER BY org_id`)
	if err != nil {
		return 0, err
	}
	for _, org := range orgs {
		text, err := unsearchable(ctx, r, d, org)
		if err != nil {
			return n, err
		}
		if text == "" {
			continue
		}
		// A server that writes to the index is not its owner any more.
		for _, sql := range []string{
			`UPDATE search_orgs SET owner = '', until = 0 WHERE org_id = $1`,
			`DELETE FROM search_pages WHERE org_id = $1`,
			`DELETE FROM search_segments WHERE org_id = $1`,
			`DELETE FROM search_waiting WHERE org_id = $1`,
			awaitProposals + ` WHERE org_id = $1 ORDER BY id`,
		} {
			if err := exec(sql, org); err != nil {
				return n, err
			}
		}
		n++
	}
	return n, nil
}
