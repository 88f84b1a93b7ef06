//go:build !linux || !(amd64 || arm64)

package crashtest

import "testing"

func TestCrashes(t *testing.T) {
	t.Skip("needs ptrace with seccomp, which only Linux has, on amd64 or arm64")
}
