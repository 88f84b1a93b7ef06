// Package crashtest kills git-tilth at every change that it or one of its children is about to make to a file, and
// checks what is left and that the next command goes on from there.
//
// A tracer (ptrace, with a seccomp filter that lets everything but such changes pass at full speed) runs the real
// binary against a real repository and a scripted model. It counts the changes over all processes in the order in which
// they come, so each of them is a point at which a process can die. strace's injection cannot do that: it counts each
// system call of each thread by itself, and a Go program spreads its calls over threads as it likes.
//
// The points of a command are those of an undisturbed run of it, each in the ways in which it can happen there:
//
//	power     before the change, git-tilth and all of its children are gone at once
//	torn      half of a write reaches the file, then all are gone
//	harness   git-tilth is gone as a child starts; the child runs to its end
//	child     the process that is about to make the change is gone, git-tilth lives and has to cope
//
// A start of a program that changes nothing is no point, nor are changes outside the session's and the user's
// directories: on disk the state there is that of the next point.
//
// `go test` takes a spread of the points; with TILTH_CRASH=full it takes all, and goes on after each in every way that
// its story has. With -v it says how many there were. TILTH_CRASH_POINT=power-17 (with -run 'TestCrashes/run$') takes
// one, TILTH_CRASH_OPS=1 lists the changes that the numbers mean, and TILTH_CRASH_KEEP=1 keeps what a failure has left.
//
// The soak (make soak) kills at random points instead, and lets disks fill, endpoints fail and commands compete on the
// way of a session from its preparation to its teardown. What happens follows from a seed.
package crashtest
