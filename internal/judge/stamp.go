package judge

import (
	"crypto/sha256"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is longer than the longest time between two changes of a file with the same ctime.
const clockTick = 20 * time.Millisecond

// stamp is the state of a file or directory when it was last verified.
type stamp struct {
	dev, ino, mode uint64
	size           int64
	mtime, ctime   int64 // nanoseconds
	// fresh means that a later change may have the same ctime; sum is then the hash of a file's content.
	fresh bool
	sum   [sha256.Size]byte
}

// look returns the current stamp of rel, without following a link.
func (p *Checkout) look(rel string) (stamp, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(p.top.Fd()), rel, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return stamp{}, err
	}
	return stamp{
		dev: uint64(st.Dev), ino: uint64(st.Ino), mode: uint64(st.Mode), size: st.Size,
		mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(),
	}, nil
}

// take is look for a verified file: it also stores the content if the ctime alone could not show a later change.
func (p *Checkout) take(rel string) (stamp, error) {
	s, err := p.look(rel)
	if err != nil || !s.young() && !(p.silent && s.isFile()) {
		return s, err
	}
	s.fresh = true
	if s.isFile() {
		s.sum, err = p.sum(rel)
	}
	return s, err
}

// young reports whether a change now may have the same stamp. A file system with timestamps in seconds, such as ext4
// with inodes of 128 bytes, gives all changes within a second the same ctime.
func (s stamp) young() bool {
	tick := clockTick
	if s.ctime%int64(time.Second) == 0 {
		tick += time.Second
	}
	return time.Now().UnixNano()-s.ctime <= int64(tick)
}

// unchanged reports whether the file at rel still matches the stamp. An old enough file with a hash need not be read
// again.
func (p *Checkout) unchanged(rel string, was *stamp) bool {
	now, err := p.look(rel)
	if err != nil || !now.equal(*was) {
		return false
	}
	if !was.fresh || !was.isFile() {
		return true
	}
	young := p.silent || now.young() // before the content is read
	sum, err := p.sum(rel)
	same := err == nil && sum == was.sum
	was.fresh = young || !same
	return same
}

func (s stamp) equal(t stamp) bool {
	s.fresh, s.sum = t.fresh, t.sum
	return s == t
}

// isSilent reports whether the file system of an open directory keeps a file's ctime on writes through an existing
// memory mapping, as tmpfs does.
func isSilent(dir *os.File) (bool, error) {
	var st unix.Statfs_t
	err := unix.Fstatfs(int(dir.Fd()), &st)
	return int64(st.Type) == tmpfsMagic || int64(st.Type) == ramfsMagic, err
}

const tmpfsMagic, ramfsMagic = 0x01021994, 0x858458f6

func (s stamp) isFile() bool { return s.mode&unix.S_IFMT == unix.S_IFREG }
func (s stamp) isDir() bool  { return s.mode&unix.S_IFMT == unix.S_IFDIR }

// buffers are for sum, which reads each file of a tree: os.File and io.Copy would take six times as long.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

func (p *Checkout) sum(rel string) (sum [sha256.Size]byte, err error) {
	fd, err := unix.Openat(int(p.top.Fd()), rel, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return sum, err
	}
	defer unix.Close(fd)
	buf := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buf)
	h := sha256.New()
	for {
		n, err := unix.Read(fd, buf[:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || n == 0:
			return [sha256.Size]byte(h.Sum(nil)), err
		}
		h.Write(buf[:n])
	}
}
