package natslink

import (
	"os"
	"syscall"
)

// birth is when a file was made; 0 when the file system does not say.
func birth(path string) int64 {
	var st syscall.Stat_t
	if syscall.Stat(path, &st) != nil {
		return 0
	}
	return st.Birthtimespec.Nano()
}

// syncData makes what a file holds durable.
func syncData(f *os.File) error { return f.Sync() }

// allocate gives a file room on the disk, in bytes.
func allocate(f *os.File, size int64) error {
	_, err := f.Write(make([]byte, size))
	return err
}
