//go:build !linux

package seed

import (
	"os"
	"testing"
)

func keepOutput(*testing.T, *os.File) {}
