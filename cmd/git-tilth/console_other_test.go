//go:build !linux

package main

import (
	"os"
	"testing"
)

func keepOutput(*testing.T, *os.File) {}
