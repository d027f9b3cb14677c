package natslink

import (
	"os"

	"golang.org/x/sys/windows"
)

// errLocked is what lockFile returns while another process has the lock.
var errLocked = windows.ERROR_LOCK_VIOLATION

// lockFile takes the lock of a file without waiting. It ends with unlockFile, or with the handle.
func lockFile(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
}

func unlockFile(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, new(windows.Overlapped))
}

// freeSpace returns how many bytes this user can still write below a directory.
func freeSpace(dir string) (free uint64, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	return free, windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
}

// syncDir has nothing to do: Windows cannot sync a directory, and NTFS journals its names.
func syncDir(string) error { return nil }

// birth is unknown: whoever copies a file on Windows may keep its time of creation.
func birth(string) int64 { return 0 }

// syncData makes what a file holds durable.
func syncData(f *os.File) error { return f.Sync() }

// allocate gives a file room on the disk, in bytes.
func allocate(f *os.File, size int64) error {
	_, err := f.Write(make([]byte, size))
	return err
}
