//go:build !linux

package doctor

// clockSynced is not known here.
func clockSynced() (synced, known bool) { return false, false }

// networkDisk is not known here.
func networkDisk(string) (string, bool) { return "", false }
