// Package walltime is the clock on the wall, as far as something is planned by it or room time
// begins with it. Builds with the tag faultclock have one that is wrong: the tests of a cluster
// put it so and let it jump. It also says when work that is done again and again is due.
package walltime

import "time"

// Now is time.Now, but for the error of the wall clock in a build for such tests.
func Now() time.Time { return wrong(time.Now()) }
