package doctor

import "golang.org/x/sys/unix"

// clockSynced reports whether the kernel knows that its clock is synchronized.
func clockSynced() (synced, known bool) {
	state, err := unix.Adjtimex(&unix.Timex{})
	return state != unix.TIME_ERROR, err == nil
}

// networks are the file systems that other machines serve.
var networks = map[int64]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB",
	unix.CIFS_SUPER_MAGIC: "CIFS", unix.CEPH_SUPER_MAGIC: "Ceph", unix.V9FS_MAGIC: "9P", unix.AFS_SUPER_MAGIC: "AFS",
}

// networkDisk reports whether a folder is on a file system that another machine serves, and which.
func networkDisk(dir string) (string, bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return "", false
	}
	kind, bad := networks[int64(st.Type)] //nolint:unconvert // its size depends on the architecture
	return kind, bad
}
