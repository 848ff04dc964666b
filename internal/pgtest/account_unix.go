//go:build unix

package pgtest

import "syscall"

// attributes puts the supervisor in its own process group, so that an interrupt from the keyboard
// reaches only this process and the shutdown stays orderly.
func (a *account) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attr
}
