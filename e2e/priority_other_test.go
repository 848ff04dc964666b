//go:build !linux

package e2e

import (
	"os/exec"
	"testing"
)

// yieldProcessor does nothing: priorities per thread exist on Linux only.
func yieldProcessor(*testing.T) (restore func()) { return func() {} }

func ownSession(*exec.Cmd) {}
