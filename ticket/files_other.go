//go:build !unix

package ticket

import "os"

// keepOwner does nothing where files have no owner and group.
func keepOwner(*os.File, string) error { return nil }

// syncDir has nothing to do: Windows cannot sync a directory, and NTFS journals its names.
func syncDir(string) error { return nil }
