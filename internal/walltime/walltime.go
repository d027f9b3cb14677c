// Package walltime is the clock on the wall, as far as something is planned by it or room time
// begins with it. Builds with the tag faultclock have one that is wrong: the tests of a cluster
// put it so and let it jump. It also says when work that is done again and again is due.
package walltime

import "time"

// SetBack is by how much the clock has to be set back for what is planned to follow it. Smaller steps are NTP's, and do not begin again
// what has begun; a clock that was wrong by more must not leave out all that it has skipped.
const SetBack = time.Minute

// Now is time.Now, but for the error of the wall clock in a build for such tests.
func Now() time.Time { return wrong(time.Now()) }
