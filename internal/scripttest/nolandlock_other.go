//go:build !linux

package scripttest

import "os"

// NoLandlock does nothing on this system.
func NoLandlock() { os.Exit(1) }
