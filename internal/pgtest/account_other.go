//go:build !unix

package pgtest

import "syscall"

// attributes returns nil: the tests run on Unix only; elsewhere the package must just build.
func (a *account) attributes() *syscall.SysProcAttr { return nil }
