package engine

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// forecast moves both limits forward in time. It knows the age of every session in steps
// and how often sessions of an age end; what ends frees a seat, what was admitted a minute
// ago frees a rate slot. A cohort that came together is so expected to go together, which
// no average of past minutes can know.
type forecast struct {
	step    time.Duration
	session int // steps of a session without a request after the first

	sessions *byAge // nil until the first session: most of ten thousand rooms have none

	// recent are the admissions of the last RateHold, by parts of a step: slots as bins would blur the
	// moment at which those of a rush come free. The part under way is the first.
	parts  int // of a step
	recent []float64
	partAt anteroom.Time // start of the part under way

	at      anteroom.Time // start of the running step
	started bool
	joined  float64 // admissions in the running step
	endsAll uint64  // ends ever, for known
	joins   float64 // people who joined the line, per second, decayed over a minute

	left, waited float64 // people who left the line and person-seconds waited, 10-minute memory
}

// byAge is what is known of sessions by their age: the steps that began since their admission, less one.
type byAge struct {
	count [ageCount]float64
	ended [ageCount]float64 // of count, in the running step
	risk  [ageCount]float64 // sum of count over past steps, decayed
	ends  [ageCount]float64 // sum of ended, decayed
}

// noSessions is never written.
var noSessions byAge

// book is what is known of sessions, to be changed.
func (f *forecast) book() *byAge {
	if f.sessions == nil {
		f.sessions = new(byAge)
	}
	return f.sessions
}

// next closes a step in which so many were admitted.
func (b *byAge) next(joined float64) {
	for k := range b.count {
		b.risk[k] = b.risk[k]*ageDecay + b.count[k]
		b.ends[k] = b.ends[k]*ageDecay + b.ended[k]
	}
	last := max(0, b.count[ageCount-1]-b.ended[ageCount-1])
	for k := ageCount - 1; k > 0; k-- {
		b.count[k] = max(0, b.count[k-1]-b.ended[k-1])
	}
	b.count[ageCount-1] += last
	b.count[0] = joined
	b.ended = [ageCount]float64{}
}

const (
	ageCount    = 144
	baseStep    = 5 * time.Second
	ageDecay    = 0.9985
	priorSteps  = 3               // weight of the prior, in session-steps
	priorHazard = 0.06            // ends per step beyond the session duration
	horizon     = 720             // steps
	finestPoint = 2 * time.Second // between two points of a curve, which has at most mostPoints
	mostPoints  = 128
	leastCurve  = 4 * time.Minute
	mostParts   = 50 // of a step
	knownEnds   = 20 // sessions that must have ended before a wait is told
)

// stepOf is the forecast's step for a session duration: the duration is kept within half
// of the ages.
func stepOf(d time.Duration) time.Duration { return max(baseStep, d/(ageCount/2)) }

func (f *forecast) configure(d time.Duration) {
	step := stepOf(d)
	if step != f.step {
		*f = forecast{left: f.left, waited: f.waited}
		f.step = step
		f.parts = int(min((step+time.Second-1)/time.Second, mostParts))
		f.recent = make([]float64, int(math.Ceil(f.window()))+1)
	}
	f.session = int(d / step)
}

// reach is how far the forecast looks ahead.
func (f *forecast) reach() time.Duration { return horizon * f.step }

// part is the length of a part of a step, in seconds.
func (f *forecast) part() float64 { return f.step.Seconds() / float64(f.parts) }

// window is how many parts a rate slot is held for.
func (f *forecast) window() float64 { return RateHold.Seconds() / f.part() }

// ageOf is the age of a session in steps: how many steps of room time began since the one
// of its admission. Sites and coordinator count the same steps, so that a session that ends
// is found where it is.
func ageOf(admitted, now anteroom.Time, step time.Duration) int {
	return int(min(max(0, stepAt(now, step)-stepAt(admitted, step)), ageCount))
}

func stepAt(t anteroom.Time, step time.Duration) anteroom.Time {
	return t / anteroom.Time(step/time.Microsecond)
}

func (f *forecast) observe(now anteroom.Time, admitted uint32, ends []AgeCount) {
	f.advance(now)
	f.joined += float64(admitted)
	f.recent[0] += float64(admitted)
	for _, e := range ends {
		f.endsAll += uint64(e.Count)
		f.end(int(e.Age), float64(e.Count))
	}
}

// end takes n sessions of an age out. A step may have closed since the site counted: the
// nearest bin that has them. A session that ended and stayed in a bin would be expected to
// free a seat for ever.
func (f *forecast) end(age int, n float64) {
	if age == 0 {
		m := min(n, f.joined)
		f.joined -= m
		n -= m
	}
	age = min(max(0, age-1), ageCount-1)
	for d := 0; d < ageCount && n > 0; d++ {
		b := f.book()
		for _, k := range [2]int{age - d, age + d} {
			if k >= 0 && k < ageCount {
				m := min(n, max(0, b.count[k]-b.ended[k]))
				b.ended[k] += m
				n -= m
			}
		}
	}
	f.joined = max(0, f.joined-n)
}

// seat takes note of sessions that are older than this forecast, and of their rate slots: of the sessions of a step, as many
// began in each part of it. What was admitted before would otherwise seem to have been admitted just now, and nothing to come
// free for a minute.
func (f *forecast) seat(now anteroom.Time, ages []AgeCount) {
	f.advance(now)
	whole := int(math.Round(f.partAt.Sub(f.at).Seconds()/f.part())) + 1 // parts of the step under way
	for _, a := range ages {
		from, until := 0, whole
		if a.Age > 0 {
			from = whole + (int(a.Age)-1)*f.parts
			until = from + f.parts
		}
		for k := from; k < min(until, len(f.recent)); k++ {
			f.recent[k] += float64(a.Count) / float64(until-from)
		}
		if a.Age == 0 {
			f.joined += float64(a.Count)
			continue
		}
		f.book().count[min(int(a.Age)-1, ageCount-1)] += float64(a.Count)
	}
}

// advance closes every step that has passed.
func (f *forecast) advance(now anteroom.Time) {
	if !f.started {
		f.started, f.at = true, stepAt(now, f.step)*anteroom.Time(f.step/time.Microsecond)
		f.partAt = f.at
	}
	if now.Sub(f.at) > f.step*ageCount*2 { // nothing of the past matters any more
		*f = forecast{step: f.step, session: f.session, started: true, at: stepAt(now, f.step) * anteroom.Time(f.step/time.Microsecond), endsAll: f.endsAll,
			sessions: f.sessions, joined: f.joined, parts: f.parts, recent: make([]float64, len(f.recent))}
		f.partAt = f.at
		if b := f.sessions; b != nil {
			b.count, b.ended = [ageCount]float64{}, [ageCount]float64{}
		}
	}
	for now.Sub(f.at) >= f.step {
		if f.sessions != nil || f.joined > 0 {
			f.book().next(f.joined)
		}
		f.joined = 0
		f.at = f.at.Add(f.step)
	}
	part := time.Duration(f.part() * float64(time.Second))
	if parts := int(now.Sub(f.partAt) / part); parts > 0 {
		keep := max(0, len(f.recent)-parts)
		copy(f.recent[len(f.recent)-keep:], f.recent[:keep])
		clear(f.recent[:len(f.recent)-keep])
		f.partAt = f.partAt.Add(time.Duration(parts) * part)
	}
}

// lastMinute is how many were admitted in the last minute, about.
func (f *forecast) lastMinute() (n float64) {
	for _, a := range f.recent {
		n += a
	}
	return n
}

// line takes note of the line: how many wait over dt and how many of them left.
func (f *forecast) line(dt time.Duration, waiting int, left, joined int) {
	s := dt.Seconds()
	decay := math.Exp(-s / 600)
	f.left = f.left*decay + float64(left)
	f.waited = f.waited*decay + float64(waiting)*s
	d := math.Exp(-s / 60)
	f.joins = f.joins*d + float64(joined)/60
}

func (f *forecast) leaveRate() float64 {
	if f.waited < 60 {
		return 0
	}
	return min(max(0, f.left/f.waited), 0.01)
}

// capacity is what a forecast starts from. Sites hold those units of the limits that are not free.
type capacity struct {
	limit [units]float64
	free  [units]float64
	// pace is how many turns may follow each other now, burst how many at most, 0 for any number, and rate by
	// how many pace grows in a second.
	pace, burst, rate float64
	ahead             []planned
}

// planned are the limits and the pace from so many seconds on.
type planned struct {
	after       float64
	limit       [units]float64
	burst, rate float64
}

// known says that enough sessions have ended to tell how long others last, or that a line of n waits
// for none to end.
func (f *forecast) known(n int, seats float64) bool {
	return f.endsAll >= knownEnds || seats >= float64(n+1)
}

// write fills the forecast part of the figures, which starts at now. While nothing is known of
// sessions, nobody is forecast to wait for one to end: beyond the free seats that is the least.
func (f *forecast) write(now anteroom.Time, out *Figures, c capacity) {
	f.advance(now)
	perMinute, seats := c.limit[RateSlot], max(0, c.free[Seat])
	out.Step, out.Leave = finestPoint, f.leaveRate()
	out.Known = f.known(out.Waiting, seats)
	if !out.Known {
		out.Seats, seats = uint32(min(seats, math.MaxInt32)), math.MaxInt32
	}
	step, part, window := f.step.Seconds(), f.part(), f.window()
	known := cmp.Or(f.sessions, &noSessions)
	ages := known.count
	active, used := f.joined, 0.0
	for k := range ages {
		ages[k] = max(0, ages[k]-known.ended[k])
		active += ages[k]
	}
	recent := slices.Clone(f.recent)
	for k, a := range recent {
		used += a * min(1, max(0, window-float64(k)))
	}
	// Admissions are reported some time after they happened, and turns are taken some time after they
	// were given. Whatever else sites hold, they hold for those.
	joined := f.joined + max(0, c.limit[Seat]-c.free[Seat]-active)
	recent[0] += max(0, perMinute-c.free[RateSlot]-used)
	// What is known of sessions beyond their duration serves for the ages at which little or
	// nothing has been seen yet. It weighs as much as knownEnds ends that nobody saw.
	over, beyond := float64(knownEnds), knownEnds/priorHazard
	for k := f.session; k < ageCount; k++ {
		over += known.ends[k]
		beyond += known.risk[k]
	}
	var hazard [ageCount]float64 // of a session to end within a step, by age
	for k := range hazard {
		var prior float64
		if k >= f.session {
			prior = over / beyond
		}
		hazard[k] = min((known.ends[k]+priorSteps*prior)/(known.risk[k]+priorSteps), 1)
	}
	whole := int(window) - 1 // parts that a rate slot's hold covers besides the one in which it began
	rest := window - float64(whole) - 1
	var held float64
	for _, n := range recent[1 : 1+whole] {
		held += n
	}
	var t, served, drawn, lived float64 = 0, 0, 0, 1 // lived: chance of who waits now not to be drawn so far
	left := float64(out.Waiting)
	length := step - now.Sub(f.at).Seconds() // of the step under way; then of whole ones
	within := part - now.Sub(f.partAt).Seconds()
	point := out.Step.Seconds()
	for t < f.reach().Seconds() && (served < float64(out.Waiting)*1.5+10 || t < leastCurve.Seconds()) {
		var freed, a float64
		for k := range ages {
			e := ages[k] * hazard[k]
			if t == 0 {
				e = ages[k] * (1 - math.Pow(1-hazard[k], length/step))
			}
			ages[k] -= e
			freed += e
		}
		end := t + length
		for end-t > 1e-6 {
			for len(c.ahead) > 0 && t >= c.ahead[0].after {
				next := c.ahead[0]
				seats += next.limit[Seat] - c.limit[Seat]
				perMinute, c.limit, c.burst, c.rate, c.ahead = next.limit[RateSlot], next.limit, next.burst, next.rate, c.ahead[1:]
			}
			d := min(within, end-t)
			seats += freed * d / length
			n := max(0, min(seats, perMinute-held-rest*recent[1+whole]-recent[0]))
			if c.burst > 0 {
				c.pace = max(c.pace, min(c.burst, c.pace+c.rate*d))
				n = min(n, c.pace)
				c.pace -= n
			}
			seats -= n
			a += n
			t += d
			before := served
			served += n * math.Exp(out.Leave*t)
			for at := float64(len(out.Curve)+1) * point; at <= t+1e-6; at = float64(len(out.Curve)+1) * point {
				out.Curve = append(out.Curve, float32(served-(served-before)*max(0, t-at)/d))
				if len(out.Curve) == mostPoints { // every other one will do where the line is so long
					for i := range mostPoints / 2 {
						out.Curve[i] = out.Curve[2*i+1]
					}
					out.Curve, out.Step, point = out.Curve[:mostPoints/2], 2*out.Step, 2*point
				}
			}
			recent[0] += n
			if within -= d; within <= 1e-6 { // the next part begins
				within = part
				held += recent[0] - recent[whole]
				copy(recent[1:], recent)
				recent[0] = 0
			}
		}
		last := ages[ageCount-1]
		copy(ages[1:], ages[:ageCount-1])
		ages[ageCount-1] += last
		ages[0] = joined + a
		joined = 0
		drawn += a

		// The draw: survival of somebody who waits now, while the number waiting changes.
		if left > 0 {
			lived *= 1 - min(1, a/max(left, 1))
			joins := f.joins * length * math.Exp(-t/300)
			if left = max(0, left+joins-a-out.Leave*length*left); left == 0 {
				lived = 0 // nobody is left to be drawn
			}
			for q, p := range [3]float64{0.75, 0.5, 0.25} {
				if out.Draw[q] == 0 && lived <= p {
					out.Draw[q] = time.Duration(t * float64(time.Second))
				}
			}
		}
		length = step
	}
	if out.Waiting == 0 {
		return
	}
	for q, p := range [3]float64{0.75, 0.5, 0.25} {
		if out.Draw[q] == 0 {
			// Beyond the horizon: from there on the closed form with nobody joining.
			past := t / 60
			rate := max(drawn/max(past, step/60), 1e-9)
			m := min(past+waitRandom(max(left, 1), rate, 0, 1-p/lived), 2*anteroom.QueueIsFullAfter.Minutes())
			out.Draw[q] = time.Duration(m * float64(time.Minute))
		}
	}
}
