package engine

import (
	"math"
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

	ages   [ageCount]float64 // sessions by the steps that began since their admission, less one
	risk   [ageCount]float64 // sum of ages over past steps, decayed
	ends   [ageCount]float64 // ends by age, decayed
	recent [12]float64       // admissions of the last steps, newest first (12 x 5 s = a minute)

	at      anteroom.Time // start of the running step
	started bool
	joined  float64 // admissions in the running step
	ended   [ageCount]float64
	endsAll uint64  // ends ever, for known
	joins   float64 // people who joined the line, per second, decayed over a minute

	left, waited float64 // people who left the line and person-seconds waited, 10-minute memory
}

const (
	ageCount    = 144
	baseStep    = 5 * time.Second
	ageDecay    = 0.9985
	priorSteps  = 3    // weight of the prior, in session-steps
	priorHazard = 0.06 // ends per step beyond the session duration
	horizon     = 720  // steps
	knownEnds   = 20   // sessions that must have ended before a wait is told
)

// stepOf is the forecast's step for a session duration: the duration is kept within half
// of the ages.
func stepOf(d time.Duration) time.Duration { return max(baseStep, d/(ageCount/2)) }

func (f *forecast) configure(d time.Duration) {
	step := stepOf(d)
	if step != f.step {
		*f = forecast{left: f.left, waited: f.waited}
		f.step = step
	}
	f.session = int(d / step)
}

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
		for _, k := range [2]int{age - d, age + d} {
			if k >= 0 && k < ageCount {
				m := min(n, max(0, f.ages[k]-f.ended[k]))
				f.ended[k] += m
				n -= m
			}
		}
	}
	f.joined = max(0, f.joined-n)
}

// seat takes note of sessions that are older than this forecast.
func (f *forecast) seat(now anteroom.Time, ages []AgeCount) {
	f.advance(now)
	for _, a := range ages {
		if a.Age == 0 {
			f.joined += float64(a.Count)
			continue
		}
		f.ages[min(int(a.Age)-1, ageCount-1)] += float64(a.Count)
	}
}

// advance closes every step that has passed.
func (f *forecast) advance(now anteroom.Time) {
	if !f.started {
		f.started, f.at = true, stepAt(now, f.step)*anteroom.Time(f.step/time.Microsecond)
		return
	}
	if now.Sub(f.at) > f.step*ageCount*2 { // nothing of the past matters any more
		*f = forecast{step: f.step, session: f.session, started: true, at: stepAt(now, f.step) * anteroom.Time(f.step/time.Microsecond), endsAll: f.endsAll,
			risk: f.risk, ends: f.ends, joined: f.joined}
		return
	}
	for now.Sub(f.at) >= f.step {
		for k := range f.ages {
			f.risk[k] = f.risk[k]*ageDecay + f.ages[k]
			f.ends[k] = f.ends[k]*ageDecay + f.ended[k]
		}
		last := max(0, f.ages[ageCount-1]-f.ended[ageCount-1])
		for k := ageCount - 1; k > 0; k-- {
			f.ages[k] = max(0, f.ages[k-1]-f.ended[k-1])
		}
		f.ages[ageCount-1] += last
		f.ages[0] = f.joined
		copy(f.recent[1:], f.recent[:len(f.recent)-1])
		f.recent[0] = f.joined
		f.joined = 0
		f.ended = [ageCount]float64{}
		f.at = f.at.Add(f.step)
	}
}

// lastMinute is how many were admitted in the last minute, about.
func (f *forecast) lastMinute() float64 {
	n, steps := f.joined, int(time.Minute/f.step)
	for _, k := range f.recent[:min(max(1, steps), len(f.recent))] {
		n += k
	}
	return n * min(1, float64(time.Minute)/float64(f.step))
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

// write fills the forecast part of the figures: limits and pace per minute, free seats now.
// Without anything known it costs nothing and writes nothing.
func (f *forecast) write(out *Figures, seats float64, perMinute float64, paced bool) {
	out.Step, out.Leave = f.step, f.leaveRate()
	out.Known = f.endsAll >= knownEnds || seats >= float64(out.Waiting+1)
	if !out.Known {
		return
	}
	step := f.step.Seconds()
	perStep := perMinute / 60 * step
	window := max(1, int(math.Round(60/step))) // steps of a rate slot's hold
	ages, recent := f.ages, make([]float64, window)
	copy(recent, f.recent[:min(window, len(f.recent))])
	ages[0] += f.joined
	limit := 0.992 * perMinute
	// What is known of sessions beyond their duration serves for the ages at which little or
	// nothing has been seen yet. It weighs as much as knownEnds ends that nobody saw.
	over, beyond := float64(knownEnds), knownEnds/priorHazard
	for k := f.session; k < ageCount; k++ {
		over += f.ends[k]
		beyond += f.risk[k]
	}
	var hazard [ageCount]float64 // of a session to end within a step, by age
	for k := range hazard {
		var prior float64
		if k >= f.session {
			prior = over / beyond
		}
		hazard[k] = min((f.ends[k]+priorSteps*prior)/(f.risk[k]+priorSteps), 1)
	}
	var served, drawn, lived float64 = 0, 0, 1 // lived: chance of who waits now not to be drawn so far
	var left = float64(out.Waiting)
	for i := 0; i < horizon && served < float64(out.Waiting)*1.5+10; i++ {
		var freed float64
		for k := range ages {
			e := ages[k] * hazard[k]
			ages[k] -= e
			freed += e
		}
		seats += freed
		inWindow := 0.0
		for _, n := range recent[:window-1] {
			inWindow += n
		}
		a := min(max(0, seats), max(0, limit-inWindow))
		if window == 1 {
			a = min(max(0, seats), perStep)
		}
		if paced {
			a = min(a, 2*perStep)
		}
		seats -= a
		last := ages[ageCount-1]
		copy(ages[1:], ages[:ageCount-1])
		ages[ageCount-1] += last
		ages[0] = a
		copy(recent[1:], recent)
		recent[0] = a
		t := float64(i+1) * step
		served += a * math.Exp(out.Leave*t)
		drawn += a
		out.Curve = append(out.Curve, float32(served))

		// The draw: survival of somebody who waits now, while the number waiting changes.
		if left > 0 {
			lived *= 1 - min(1, a/max(left, 1))
			joins := f.joins * step * math.Exp(-t/300)
			if left = max(0, left+joins-a-out.Leave*step*left); left == 0 {
				lived = 0 // nobody is left to be drawn
			}
			for q, p := range [3]float64{0.75, 0.5, 0.25} {
				if out.Draw[q] == 0 && lived <= p {
					out.Draw[q] = time.Duration(t * float64(time.Second))
				}
			}
		}
	}
	if out.Waiting == 0 {
		return
	}
	for q, p := range [3]float64{0.75, 0.5, 0.25} {
		if out.Draw[q] == 0 {
			// Beyond the horizon: from there on the closed form with nobody joining.
			past := float64(len(out.Curve)) * step / 60
			rate := max(drawn/max(past, step/60), 1e-9)
			m := min(past+WaitRandom(max(left, 1), rate, 0, 1-p/lived), 2*anteroom.QueueIsFullAfter.Minutes())
			out.Draw[q] = time.Duration(m * float64(time.Minute))
		}
	}
}
