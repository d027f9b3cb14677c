//go:build !unix

package load

import "time"

// ownCPU is not known here.
func ownCPU() time.Duration { return 0 }
