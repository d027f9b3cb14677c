package natslink

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// birth is when a file was made, which nobody can set; 0 when the file system does not say.
func birth(path string) int64 {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BTIME, &st); err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*int64(time.Second) + int64(st.Btime.Nsec)
}

// syncData makes what a file holds durable.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// allocate gives a file room on the disk, in bytes.
func allocate(f *os.File, size int64) error { return syscall.Fallocate(int(f.Fd()), 0, 0, size) }
