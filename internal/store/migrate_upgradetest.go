//go:build upgradetest || upgradetest2

package store

import _ "embed"

// These builds act as newer versions in the end-to-end test of upgrades. upgradetest has one
// more migration, a compatible one.

//go:embed upgradetest/compatible.sql
var upgradeCompatible string

func init() {
	moreSchema = append(moreSchema, schemaFile{"upgradetest_compatible.sql", upgradeCompatible})
}
