// Package crashtest kills git-tilth before every change that it or one of its children makes to a file, and checks the
// state on disk and that the next command continues from there.
//
// A tracer (ptrace, with a seccomp filter that lets all other calls pass at full speed) runs the real binary against a
// real repository and a scripted model. It counts the changes of all processes in order; each is a point at which a
// process can die. strace's injection cannot do that: it counts each system call of each thread separately, and a Go
// program spreads its calls over threads.
//
// The points of a command are those of a run without kills, each in several ways:
//
//	power     before the change, git-tilth and all of its children die at once
//	torn      half of a write reaches the file, then all die
//	harness   git-tilth dies as a child starts; the child runs to its end
//	child     the process that is about to make the change dies, git-tilth lives and has to cope
//
// The start of a program that changes nothing is not a point. Neither is a change outside the session's and the user's
// directories. In both cases the state on disk is the same as at the next point.
//
// `go test` takes a sample of the points. With TILTH_CRASH=full it takes all, and continues after each in every way
// that the story lists. With -v it prints their number. TILTH_CRASH_POINT=power-17 (with -run 'TestCrashes/run$') takes
// one, TILTH_CRASH_OPS=1 lists the numbered changes, and TILTH_CRASH_KEEP=1 keeps the files of a failure.
//
// The soak (make soak) kills at random points instead, and lets disks fill, endpoints fail and commands compete during
// a session's life. A seed determines the events.
package crashtest
