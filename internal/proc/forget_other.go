//go:build !linux

package proc

// ForgetEnv does nothing here: a process has no way to take back what it was started with.
func ForgetEnv(func(name string) bool) bool { return false }
