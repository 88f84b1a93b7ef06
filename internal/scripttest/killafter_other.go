//go:build !linux

package scripttest

import "github.com/rogpeppe/go-internal/testscript"

func killAfter(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("killafter needs a pipe in packet mode, which only Linux has")
}
