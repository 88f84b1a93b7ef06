package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The rights of Landlock, and the first ABI with all of them.
const (
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	readTree = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	editFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	editTree = editFile | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	devices = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	handled = readTree | editTree | devices
)

// abis are the additions of later kernels: their rights, and the gap in a sandbox without them.
var abis = []struct {
	abi   int
	right uint64
	lacks string
}{
	{2, unix.LANDLOCK_ACCESS_FS_REFER, "files cannot be moved from one directory to another"},
	{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE, "any of the user's files can be truncated"},
	{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, ""},
	{6, 0, "processes outside can be signalled, and reached by abstract sockets; " +
		"without namespaces processes may outlive a turn"},
	{9, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX, "any process can connect to a socket whose path it knows"},
}

// devicesFree are the readable and writable devices. /dev/pts is not among them, because it also has the user's
// terminals, and no rule distinguishes those.
var devicesFree = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
	"/dev/ptmx"}

// Probe asks the kernel.
func Probe() System {
	abi, err := version()
	if err != nil {
		why := fmt.Errorf("this kernel has no Landlock: %w", err)
		if errors.Is(err, unix.EOPNOTSUPP) {
			why = errors.New("this kernel has Landlock switched off (lsm= at boot)")
		}
		return System{Err: why}
	}
	s := System{Kind: fmt.Sprintf("Landlock ABI %d", abi), Short: abi < 6}
	for _, a := range abis {
		if abi < a.abi && a.lacks != "" {
			s.Lacks = append(s.Lacks, a.lacks)
		}
	}
	return s
}

func version() (int, error) {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(abi), nil
}

// rights returns the rights that a kernel with this ABI can handle.
func rights(abi int) uint64 {
	known := uint64(handled)
	for _, a := range abis {
		if abi < a.abi {
			known &^= a.right
		}
	}
	return known
}

// made is a ruleset in the kernel. It covers the files that existed when it was made, as seen describes them.
type made struct {
	rules *os.File
	seen  map[string]string
}

// rulesets caches the rulesets by box.
var rulesets = struct {
	sync.Mutex
	of map[string]made
}{of: map[string]made{}}

// ruleset returns a descriptor of the box's ruleset. It makes a new ruleset if a named path was replaced.
func (b *Box) ruleset() (*os.File, error) {
	rulesets.Lock()
	defer rulesets.Unlock()
	key := fmt.Sprintf("%q %t", [][]string{b.writable(), b.readable(), b.Hide}, b.Terminals)
	m, ok := rulesets.of[key]
	if !ok || !m.current() {
		// A box for a deleted temporary directory is not needed again.
		maps.DeleteFunc(rulesets.of, func(_ string, old made) bool {
			gone := !old.current()
			if gone {
				old.rules.Close()
			}
			return gone
		})
		var err error
		if m, err = b.build(); err != nil {
			return nil, fmt.Errorf("cannot create the sandbox: %w", err)
		}
		rulesets.of[key] = m
	}
	fd, err := unix.FcntlInt(m.rules.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	return os.NewFile(uintptr(fd), "landlock"), err
}

func (m made) current() bool {
	for path, was := range m.seen {
		if look(path) != was {
			return false
		}
	}
	return true
}

// look identifies the file at a path and, for a listed directory, the last change of its entries.
func look(path string) string {
	dir, listed := strings.CutSuffix(path, "/.")
	var st unix.Stat_t
	switch err := unix.Lstat(dir, &st); {
	case err != nil:
		return ""
	case listed:
		return fmt.Sprint(st.Dev, st.Ino, st.Ctim)
	}
	return strconv.FormatUint(st.Dev, 10) + " " + strconv.FormatUint(st.Ino, 10)
}

// build makes the ruleset of a Box.
func (b *Box) build() (made, error) {
	abi, err := version()
	if err != nil {
		return made{}, err
	}
	known := rights(abi)
	attr := unix.LandlockRulesetAttr{Handled_access_fs: known}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	// A kernel accepts a longer attribute than it knows if the rest is zero.
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)),
		unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return made{}, fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	rules := os.NewFile(fd, "landlock")
	m := made{rules, map[string]string{}}
	hidden := append(b.links.reals(b.Hide), "/dev")
	add := func(top string, right uint64, hidden []string) {
		m.seen[top] = look(top)
		cover, opened := around(top, hidden)
		for _, dir := range opened {
			m.seen[dir+"/."] = look(dir + "/.")
		}
		for _, path := range cover {
			if err == nil {
				err = allow(int(rules.Fd()), path, right&known)
			}
		}
	}
	add("/", readTree, hidden)
	add("/dev", unix.LANDLOCK_ACCESS_FS_READ_DIR, nil)
	for _, path := range devicesFree {
		add(path, readTree|editFile, nil)
	}
	if b.Terminals {
		add("/dev/pts", readTree|editTree, nil)
	}
	// A hidden directory hides its content except paths that are named separately.
	inside := func(top string) []string {
		return slices.DeleteFunc(slices.Clone(hidden), func(h string) bool { return below(top, h) })
	}
	for _, path := range b.links.reals(b.readable()) {
		add(path, readTree, inside(path))
	}
	for _, path := range b.outermost() {
		add(path, readTree|editTree, inside(path))
	}
	if err != nil {
		rules.Close()
		return made{}, err
	}
	return m, nil
}

// allow adds rights at and below a path. A missing path needs none.
func allow(rules int, path string, right uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return absent(path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return absent(path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		right &= readFile | editFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: right, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	// The kernel refuses a rule for a socket or pipe, which needs none.
	if errno != 0 && errno != unix.EBADFD {
		return &fs.PathError{Op: "landlock_add_rule", Path: path, Err: errno}
	}
	return nil
}

// absent treats a path that this process cannot reach as missing.
func absent(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOTDIR),
		errors.Is(err, unix.ELOOP):
		return nil
	}
	return &os.PathError{Op: "open", Path: path, Err: err}
}
