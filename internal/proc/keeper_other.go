//go:build !linux

package proc

// Keep does nothing here: the children of a killed process continue until the next resume.
func Keep() (forget func()) { return func() {} }

func startKeeper() {}

// KeepFile does nothing here.
func KeepFile(path, content string) {}
