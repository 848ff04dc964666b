package store

import (
	"context"
	"fmt"
	"strings"
)

// checkOrgs looks for work on an org that was begun and not finished.
func checkOrgs(ctx context.Context, s *Snapshot) (out []Finding, err error) {
	err = each(ctx, s.reader, func(r rows) error {
		var org, name string
		if err := r.Scan(&org, &name); err != nil {
			return err
		}
		text := ""
		switch id, erasing := strings.CutPrefix(name, settingErasing); {
		case erasing:
			text = fmt.Sprintf("a member is being erased; if that was interrupted, run \"parley member erase user:%s "+
				"--org %s\"", id, org)
		case name == settingDeleting:
			text = fmt.Sprintf("the org is being deleted; if that was interrupted, run \"parley org delete %s\" again", org)
		case name == settingImporting:
			text = fmt.Sprintf("the org is being imported; if that was interrupted, import it again, or run "+
				"\"parley org delete %s\"", org)
		default:
			return nil
		}
		out = append(out, Finding{Org: org, Text: text})
		return nil
	}, `SELECT org_id, name FROM org_settings WHERE name LIKE 'org.%' OR name LIKE 'member.%' ORDER BY org_id, name`)
	return out, err
}
