package walltime

import "time"

// NextBeat returns how long to wait for the next beat: a moment at which the wall clock is a multiple of every. What is done every
// 100 ms and what is done every second are done at the same moments by that, and an idle process wakes up once for all of it, and for
// what other processes send at those moments if their clocks are right. Waking up costs more than the work.
//
// A beat that is closer than an eighth of every is left out: a timer may end a little before it by this clock, or the work of the one before
// took long. So it is at most 9/8 of every, whatever the wall clock does.
func NextBeat(every time.Duration) time.Duration {
	d := every - time.Duration(time.Now().UnixNano())%every
	if d < every/8 {
		d += every
	}
	return d
}
