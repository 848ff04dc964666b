//go:build !unix

package pgtest

import "syscall"

// attributes has nothing to say: the tests run on Unix, and elsewhere this is only built.
func (a *account) attributes() *syscall.SysProcAttr { return nil }
