// Package anteroom names the things of a virtual waiting room: [Room], [Route],
// [Settings], [Ticket], [Decision], [Status], the kinds of error and the limits.
//
// A waiting room stands between visitors and a web application (the origin). It
// lets in no more than [Settings.TotalActiveUsers] sessions at once and no more
// than [Settings.NewUsersPerMinute] new sessions in any 60 seconds, gives everybody
// else a place in a fair line, and admits them without their doing anything.
//
// Every other package speaks in these words and they mean the same in the
// configuration file, in the API and on the screen. The package imports the
// standard library only and does no I/O.
//
// Where to read on: ARCHITECTURE.md for the house, package engine for the algorithm,
// package gateway for the life of a request.
package anteroom

import (
	"encoding/hex"
	"time"
)

// Time is a moment in room time: microseconds since the Unix epoch. Room time is
// taken from the wall clock once, when a node starts, and then follows the node's
// monotonic clock; it never goes back and no step of the wall clock moves it. The
// zero Time means "never" or "not set".
type Time int64

// Add returns t moved by d, rounded down to the microsecond.
func (t Time) Add(d time.Duration) Time { return t + Time(d/time.Microsecond) }

// Sub returns the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

// Std returns t as a UTC [time.Time], for display.
func (t Time) Std() time.Time { return time.UnixMicro(int64(t)).UTC() }

// TimeOf returns the room time that shows the same moment as w.
func TimeOf(w time.Time) Time { return Time(w.UnixMicro()) }

// Bucket is the minute of a visitor's first request: the published unit of order.
// Order inside a bucket is kept too, by the exact arrival.
type Bucket Time

// BucketOf returns the bucket of an arrival: the arrival rounded down to the minute.
func BucketOf(arrival Time) Bucket {
	const minute = Time(time.Minute / time.Microsecond)
	return Bucket(arrival - ((arrival%minute)+minute)%minute)
}

// ID names a ticket: 128 random bits issued by the server. The zero ID names none.
type ID [16]byte

// IsZero reports whether id names no ticket.
func (id ID) IsZero() bool { return id == ID{} }

// Reference is the short code by which a visitor and an operator can talk about a
// ticket: the first ten hexadecimal digits in two groups, like "3f9a1-c07be". It
// identifies a ticket among those alive and cannot be turned back into one.
func (id ID) Reference() string {
	s := hex.EncodeToString(id[:5])
	return s[:5] + "-" + s[5:]
}

// Ticket is what the visitor holds, sealed in a cookie. The zero value is no ticket.
// All moments are room time.
type Ticket struct {
	ID      ID
	Arrival Time  // order key: the moment of the first request
	Lane    uint8 // priority of the lane, or LaneBack; 0 is the ordinary lane

	// LastCheckIn is how old what the ticket says is. While waiting: the last counted attempt, or earlier if less was known then of the
	// line (see [Ticket.Counted]); after admission: the request that renewed the cookie.
	LastCheckIn Time
	// Next is the earliest moment at which a check-in counts again. A waiting ticket
	// opens until Next plus the room's place hold. Zero once accepted.
	Next Time
	// Refresh is the interval that the visitor was told; zero when there is none.
	Refresh time.Duration
	// AcceptedAt is the moment of admission; zero while waiting.
	AcceptedAt Time
	// Bind is a tag of what the operator binds tickets to; zero binds to nothing.
	Bind uint16
	// Told is the smallest number of people ahead that the visitor has been shown,
	// plus one; zero when nothing has been shown. A shown place never gets worse. In a lottery, where
	// there is no place, it is the ticket's chance in billionths.
	Told uint32
	// Solved says that the visitor has solved the challenge; zero once accepted, when nobody asks any more.
	Solved bool
	// Moved is how often the place has moved to another device. A waiting copy that says less than what is known of the id was left behind
	// on one of the others. Gateways see to it; sites are not told.
	Moved uint8
	// Home names the site that holds the session of an accepted ticket; zero in cookies of
	// earlier releases. A cookie has room for one of Told and Home.
	Home uint32
}

// Counted is the moment of the last counted attempt of a ticket that waits, and otherwise LastCheckIn.
func (t *Ticket) Counted() Time {
	if t.Next != 0 && t.Refresh != 0 {
		return t.Next.Add(-t.Refresh)
	}
	return t.LastCheckIn
}

// Accepted reports whether the ticket was admitted.
func (t Ticket) Accepted() bool { return t.AcceptedAt != 0 }

// Chance is that of a waiting ticket of a lottery, 0 to 1, at the moment Next.
func (t Ticket) Chance() float64 { return float64(t.Told) / ChanceOfOne }

// ChanceOfOne is a ticket's Told where the chance is 1.
const ChanceOfOne = 1e9

// Bucket returns the minute of the first request.
func (t Ticket) Bucket() Bucket { return BucketOf(t.Arrival) }

// Session is the life of an accepted ticket until it lapses or is revoked.
type Session struct {
	ID         ID
	AcceptedAt Time
	LastSeen   Time
}

// Status is what a room shows to its operator at a moment.
type Status struct {
	Room             RoomID
	At               Time
	Mode             string // "open", "queue" or "cut"
	ActiveUsers      int    // sessions that hold a seat
	Offered          int    // turns that were given and not yet taken
	AdmittedLastMin  int    // sessions that began in the last 60 s
	Waiting          int    // in line and in touch
	Unproven         int    // of those waiting: have yet to come back for the first time
	Dormant          int    // place kept, not in touch
	Streams          int    // visitors with an open stream
	TotalActiveUsers int    // the limit in force
	NewPerMinute     int    // the limit in force
	OldestWaiting    Time   // arrival of the first in line; zero when nobody waits
	WaitKnown        bool
	WaitOfNewcomer   time.Duration // forecast for somebody who would join now
	WaitAtLeast      time.Duration // bounds of that by the limits, while it is not known; 0 is none
	WaitAtMost       time.Duration // likewise
	InForce          *InForce      // settings and event at the moment
	Pace             int           // new users per minute that are called at the moment, at most NewPerMinute
	PaceReason       PaceReason    // why it is that
	Lanes            []LaneStatus  // the highest priority first; none where the room has no lanes
}

// PaceReason says why a room admits as many as it does.
type PaceReason string

// The reasons of a pace.
const (
	// PaceLimits: nothing but the limits bounds it.
	PaceLimits PaceReason = ""
	// PaceOriginDown: no origin is healthy; nobody new is admitted.
	PaceOriginDown PaceReason = "origin_down"
	// PaceOriginErrors: more requests fail than the operator allows.
	PaceOriginErrors PaceReason = "origin_errors"
	// PaceOriginSlow: the origin takes longer than the operator allows.
	PaceOriginSlow PaceReason = "origin_slow"
	// PaceRecovering: the origin is within its bounds again, and the pace grows back to the limit.
	PaceRecovering PaceReason = "origin_recovering"
)
