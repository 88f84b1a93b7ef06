//go:build !linux

package ttytest

import (
	"os"
	"testing"
)

func keepOutput(testing.TB, *os.File) {}
