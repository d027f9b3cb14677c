package server

import (
	"cmp"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/internal/exposition"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/ticket"
)

// rooms are the figures of each room.
func (c *collector) rooms(to sink) {
	for _, r := range c.s.rooms() {
		id := string(r.ID)
		if st, ok := c.s.node.Known(r.ID); ok {
			to.gauge(mRoomInfo, 1, id, r.Zone, r.Name)
			live(to, id, &st)
		}
		if n := c.s.node.Room(r.ID); n != nil {
			c.recorded(to, id, n.Recorder().Totals())
		}
	}
}

// live are the numbers of a room at the moment.
func live(to sink, room string, st *anteroom.Status) {
	to.gauge(mActive, float64(st.ActiveUsers), room)
	to.gauge(mLimitActive, float64(st.TotalActiveUsers), room)
	to.gauge(mLimitNew, float64(st.NewPerMinute), room)
	to.gauge(mRecent, float64(st.AdmittedLastMin), room)
	to.gauge(mWaiting, float64(st.Waiting-st.Unproven), room, "present")
	to.gauge(mWaiting, float64(st.Unproven), room, "unproven")
	to.gauge(mWaiting, float64(st.Dormant), room, "away")
	for _, l := range st.Lanes {
		if l.Name != "" { // else the lane of all others, which the room does not name
			to.gauge(mLane, float64(l.Waiting), room, l.Name)
		}
	}
	to.gauge(mOffered, float64(st.Offered), room)
	waited := time.Duration(0)
	if st.OldestWaiting != 0 {
		waited = max(0, st.At.Sub(st.OldestWaiting))
	}
	to.gauge(mOldest, waited.Seconds(), room)
	if st.WaitKnown {
		to.gauge(mForecast, st.WaitOfNewcomer.Seconds(), room)
	}
	to.gauge(mPace, float64(st.Pace), room)
	to.gauge(mPaceReason, oneIf(st.PaceReason != anteroom.PaceLimits), room, cmp.Or(string(st.PaceReason), "limits"))
	f := st.InForce
	if f == nil {
		return
	}
	held := st.PaceReason == anteroom.PaceOriginDown || f.QueueAll || f.Phase == anteroom.Prequeueing || f.QueueingMethod == anteroom.Reject
	to.gauge(mHeld, oneIf(held && !f.Suspended), room)
	to.gauge(mEvent, float64(f.Phase), room)
	to.gauge(mMethod, 1, room, string(f.QueueingMethod))
}

// admissions are the reasons of decisions that begin a session, by the way that the visitor came.
var admissions = []struct {
	via     string
	reasons []anteroom.Reason
}{
	{"queue", []anteroom.Reason{anteroom.ReasonTurn, anteroom.ReasonReopened}},
	{"direct", []anteroom.Reason{anteroom.ReasonFreeSlot, anteroom.ReasonPassthrough}},
	{"adopted", []anteroom.Reason{anteroom.ReasonAdopted}},
}

// recorded is what this process has seen of a room since it started. What never happened has no
// series, but for the totals of the room, from which a rate must be told from the first time on.
func (c *collector) recorded(to sink, room string, t analytics.Totals) {
	for _, reason := range anteroom.Reasons() {
		if n := t.Decisions(reason); n > 0 {
			to.count(mDecisions, uint64(n), room, reason.Verdict().String(), reason.String())
		}
	}
	for _, a := range admissions {
		var n int64
		for _, reason := range a.reasons {
			n += t.Decisions(reason)
		}
		to.count(mAdmitted, uint64(n), room, a.via)
	}
	var bypassed int64
	for why, n := range t.Bypassed {
		bypassed += n
		to.count(mBypassed, uint64(n), room, analytics.Bypass(why).String())
	}
	to.count(mAdmitted, uint64(bypassed), room, "bypass")
	for _, r := range ticket.Results() {
		if n := t.TicketRefusals[r.String()]; r != ticket.OK && n > 0 {
			to.count(mRejected, uint64(n), room, r.String())
		}
	}
	to.count(mEarly, uint64(t.Decisions(anteroom.ReasonEarly)), room)
	to.count(mSessions, uint64(t.Count(analytics.NewUsers)), room)
	to.count(mJoined, uint64(t.Count(analytics.Joined)), room)
	to.count(mAbandoned, uint64(t.Count(analytics.Abandoned)), room)
	to.count(mNoShows, uint64(t.Count(analytics.NoShows)), room)
	to.count(mOvertakes, uint64(t.Count(analytics.Overtakes)), room)
	to.count(mRevoked, uint64(t.Count(analytics.Revoked)), room)
	for result, m := range map[string]analytics.Metric{"issued": analytics.ChallengesIssued, "solved": analytics.ChallengesSolved, "unsolved": analytics.ChallengesUnsolved,
		"failed": analytics.ChallengesFailed, "waived": analytics.ChallengesWaived, "held": analytics.ChallengesHeld} {
		if n := t.Count(m); n > 0 {
			to.count(mChallenges, uint64(n), room, result)
		}
	}
	spans := func(f *exposition.Family, s analytics.Span) {
		if t.Spans[s].Count > 0 {
			to.distribution(f, waits, t.Spans[s], nil, nil, room)
		}
	}
	spans(mWait, analytics.Waited)
	spans(mSession, analytics.OnOrigin)
	if late, early := t.Spans[analytics.Late], t.Spans[analytics.Early]; late.Count+early.Count > 0 {
		to.distribution(mEstimateError, waits, late, &early, nil, room)
	}
}

// leases are what the sites whose roles are here have of their rooms.
func (c *collector) leases(to sink) {
	c.s.node.Leases(func(l node.Lease) {
		room := string(l.Room)
		to.gauge(mLeaseSlots, float64(l.Used), room, "used")
		to.gauge(mLeaseSlots, float64(l.Offered), room, "offered")
		to.gauge(mLeaseSlots, float64(l.Free), room, "free")
		to.gauge(mLeaseAge, l.Silence.Seconds(), room)
	})
}
