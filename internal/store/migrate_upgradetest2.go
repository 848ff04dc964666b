//go:build upgradetest2

package store

import _ "embed"

// upgradetest2 also has an incompatible migration. Go runs the init functions of a package in
// the order of its file names, so this one runs second.

//go:embed upgradetest/incompatible.sql
var upgradeIncompatible string

func init() {
	moreSchema = append(moreSchema, schemaFile{"upgradetest_incompatible.sql", upgradeIncompatible})
}
