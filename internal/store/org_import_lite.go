package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Bounds of one write of an import, so that it does not keep a server from writing.
const (
	importRows  = 500
	importBytes = 1 << 20
)

// intoSQLite adds the rows in small steps, because a server would wait for a long write and give up.
// No caller and no server sees them without the rows that are marked as last, which one transaction
// adds at the end. What an import leaves that was killed, the next one of the org removes, and so does
// DeleteOrg.
func (im *orgImport) intoSQLite(ctx context.Context, o Options) (err error) {
	if err := im.refuse(ctx, im.store.eng); err != nil {
		return err
	}
	if _, err := im.store.purgeLeft(ctx, im.org, im.progress, im.unborn); err != nil {
		return fmt.Errorf("remove what is left of an earlier org: %w", err)
	}
	token := newToken()
	if err := im.store.eng.write(ctx, func(t *tx) error {
		if err := im.refuse(ctx, t); err != nil {
			return err
		}
		t.exec(`INSERT INTO org_settings (org_id, name, value) VALUES ($1, $2, $3)
			ON CONFLICT (org_id, name) DO UPDATE SET value = excluded.value`, im.org, settingImporting, token)
		return nil
	}); err != nil {
		return err
	}
	defer func() {
		if err != nil { // the context may have ended
			_ = im.store.purge(context.WithoutCancel(ctx), im.org, im.progress, im.unborn)
		}
	}()
	step := func(fill func(*tx) error) error {
		began := time.Now()
		err := im.store.eng.write(ctx, func(t *tx) error {
			mine, err := t.exists(ctx, `SELECT 1 FROM org_settings WHERE org_id = $1 AND name = $2 AND value = $3`,
				im.org, settingImporting, token)
			if err == nil && !mine {
				err = errs.New(errs.Conflict, "org.import_ended", "another command has imported or deleted org %q meanwhile; "+
					"nothing was imported", im.org)
			}
			if err != nil {
				return err
			}
			return fill(t)
		})
		if InUse(o.Dir) {
			time.Sleep(min(time.Since(began), 50*time.Millisecond)) // SQLite's lock is not fair
		}
		return err
	}
	if err := im.addEarly(ctx, step); err != nil {
		return err
	}
	return im.addLast(ctx, step)
}

// addEarly adds the rows that are not visible yet.
func (im *orgImport) addEarly(ctx context.Context, step func(func(*tx) error) error) error {
	var packs packer
	for i := range im.tables {
		t := &im.tables[i]
		r := orgTables[t.name]
		if r.leaves(im.secrets) || r.last {
			continue
		}
		where := ""
		if r.active != "" {
			where = `NOT ` + r.active
		}
		insert, packed := t.insert()
		id := slices.Index(t.names(), "id")
		var batch [][]any
		size := 0
		flush := func() error {
			if len(batch) == 0 {
				return nil
			}
			err := step(func(x *tx) error {
				for _, values := range batch {
					x.exec(insert, values...)
					if t.name == "proposals" {
						x.await(im.org, values[id].(string), false)
					}
				}
				return nil
			})
			batch, size = batch[:0], 0
			return err
		}
		n := int64(0)
		err := im.each(ctx, t, where, nil, func(values []any) error {
			values = slices.Clone(values)
			for _, v := range values {
				if text, ok := v.(string); ok {
					size += len(text)
				}
			}
			if packed >= 0 {
				values[packed] = packs.compress([]string{values[packed].(string)})
			}
			batch = append(batch, values)
			if n++; len(batch) >= importRows || size >= importBytes {
				return flush()
			}
			return nil
		})
		if err == nil {
			err = flush()
		}
		if err != nil {
			return fmt.Errorf("import the table %s: %w", t.name, err)
		}
		im.progress(t.name, n)
	}
	return nil
}

// addLast makes the org appear.
func (im *orgImport) addLast(ctx context.Context, step func(func(*tx) error) error) error {
	return step(func(x *tx) error {
		if err := im.refuse(ctx, x); err != nil {
			return err
		}
		have, err := im.known(ctx, x)
		if err != nil {
			return err
		}
		x.exec(`DELETE FROM org_settings WHERE org_id = $1 AND name = $2`, im.org, settingImporting)
		for i := range im.tables {
			t := &im.tables[i]
			r := orgTables[t.name]
			if r.leaves(im.secrets) || !r.last && r.active == "" {
				continue
			}
			insert, _ := t.insert()
			if err := im.each(ctx, t, r.active, have, func(values []any) error {
				x.exec(insert, slices.Clone(values)...)
				return nil
			}); err != nil {
				return fmt.Errorf("import the table %s: %w", t.name, err)
			}
		}
		x.audit(im.entry)
		x.newEpoch(im.org)
		return nil
	})
}
