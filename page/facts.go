package page

import (
	"time"

	"github.com/anteroom/anteroom"
)

const (
	titleHole hole = iota + 1
	factsHole
)

// append writes the page of a view.
func (b *builtin) append(dst []byte, v *View, gzip bool) []byte {
	variant := firstVisit
	switch {
	case v.Paused:
		variant = paused
	case v.Returning:
		variant = returning
	}
	st, during := stateOf(&v.Decision), 0
	if st.waitsForStart() || happeningOf(&v.Decision).active {
		during = 1
	}
	doc := b.documents[during][st][variant]
	fill := func(dst []byte, h hole) []byte {
		if h == titleHole {
			return b.appendTitle(dst, v)
		}
		return b.appendFacts(dst, v)
	}
	if gzip {
		return doc.appendGzip(dst, fill)
	}
	return doc.append(dst, fill)
}

// appendTitle writes the title, which begins with the upper bound of the wait, or with the
// time until the start, so that a narrow tab shows it; and what is of the room's brand.
func (b *builtin) appendTitle(dst []byte, v *View) []byte {
	dst = append(dst, "<title>"...)
	st := stateOf(&v.Decision)
	_, high, known := waitRange(&v.Decision)
	if st.waitsForStart() {
		high, known = untilStart(v, st)
	}
	if known && high > 0 && high <= oneDay {
		dst = append(dst, '(')
		dst = b.appendSpan(dst, high)
		dst = append(dst, ") "...)
	}
	dst = append(dst, b.headings[st]...)
	var none Brand
	brand := v.Brand
	if brand == nil {
		brand = &none
	}
	dst = append(dst, brand.name...)
	dst = append(dst, titleTail+"</title>"...)
	dst = append(dst, brand.style...)
	dst = append(dst, `</head><body><div id="wrapper">`...)
	return append(dst, brand.header...)
}

// appendFacts writes what the visitor is told: note, message, place, wait, how long the place is
// kept, reference code, moment of the last attempt; and the same for the script.
func (b *builtin) appendFacts(dst []byte, v *View) []byte {
	d, st := &v.Decision, stateOf(&v.Decision)
	// What becomes of the place is read aloud, and what the operator says. The region is there without either: only what comes into a
	// region that is there is read. The message stands alone, and in its own language.
	dst = append(dst, `<div aria-live=polite>`...)
	if note := b.notes[d.Reason]; note != "" && st != chances { // they are about a place in line
		dst = append(dst, `<p id="note" class="note">`...)
		dst = append(dst, note...)
	} else {
		dst = append(dst, `<p id="note" class="note" hidden>`...)
	}
	dst = append(dst, `</p><p id="message" dir="auto">`...)
	dst = appendEscaped(dst, messageOf(d))
	dst = append(dst, "</p></div>"...)
	if v.Unsent {
		dst = b.appendForm(dst, v)
	}
	if st == chances {
		dst = b.appendChance(dst, v)
	} else if !st.static() {
		if v.Lane != "" {
			dst = append(dst, `<p><b id="lane" dir="auto">`...)
			dst = append(appendEscaped(dst, v.Lane), `</b></p>`...)
		}
		dst = append(dst, `<dl><div`...)
		known := aheadKnown(d)
		if !known {
			dst = append(dst, ` hidden`...)
		}
		dst = append(dst, `><dt id="ahead-label">`...)
		dst = append(dst, b.ahead...)
		dst = append(dst, `</dt><dd id="ahead">`...)
		if known {
			dst = b.numerals.append(dst, int64(d.Ahead))
		}
		dst = append(dst, `</dd></div><div><dt id="wait-label">`...)
		if st.waitsForStart() {
			dst = append(dst, b.start...)
			dst = append(dst, `</dt><dd id="prequeueTime">`...)
			if n, known := untilStart(v, st); known {
				dst = b.appendSpan(dst, n)
			} else {
				dst = append(dst, b.unknown...)
			}
		} else {
			dst = append(dst, b.wait...)
			dst = append(dst, `</dt><dd id="waitTime">`...)
			dst = b.appendWait(dst, v)
		}
		dst = append(dst, `</dd></div>`...)
		if left, told := remaining(d, st); told {
			dst = append(dst, `<div><dt>`...)
			dst = append(dst, b.available...)
			dst = append(dst, `</dt><dd id="available">`...)
			dst = b.numerals.append(dst, int64(left))
			dst = append(dst, `</dd></div></dl><p id="unlikely"`...)
			if !unlikely(d, left) {
				dst = append(dst, ` hidden`...)
			}
			dst = append(dst, '>')
			dst = append(dst, b.unlikely...)
			dst = append(dst, `</p>`...)
		} else {
			dst = append(dst, `</dl>`...)
		}
		dst = b.appendEvent(dst, v, st)
		dst = append(dst, `<progress id="bar" aria-labelledby="ahead-label" value="0" hidden></progress><p id="kept"`...)
		if d.KeptUntil == 0 {
			dst = append(dst, ` hidden>`...)
		} else {
			dst = append(dst, '>')
			dst = b.appendAt(dst, b.kept, v.at(d.KeptUntil), v.wall())
		}
		dst = append(dst, "</p>"...)
		if v.Codes {
			dst = append(dst, `<p class="quiet"><a href="?`+anteroom.InviteQuery+`" rel="nofollow">`...)
			dst = append(append(dst, b.code...), `</a></p>`...)
		}
	}
	dst = append(dst, `<p class="meta"><span`...)
	if d.Ticket.ID.IsZero() {
		dst = append(dst, ` hidden`...)
	}
	dst = append(dst, '>')
	dst = append(dst, b.ref...)
	dst = append(dst, ` <b id="ref" dir="ltr">`...)
	dst = appendReference(dst, d.Ticket.ID)
	dst = append(dst, `</b></span> <span>`...)
	dst = append(dst, b.updated...)
	dst = append(dst, ' ')
	dst = b.appendTime(dst, ` id="last-updated"`, v.updated(), v.updated())
	dst = append(dst, `</span></p><script type="application/json" id="status">`...)
	dst = AppendStatus(dst, v)
	dst = append(dst, "</script>"...)
	return append(dst, v.Challenge...)
}

// appendChance writes the chance and the moment at which it applies.
func (b *builtin) appendChance(dst []byte, v *View) []byte {
	dst = append(dst, `<dl><div><dt id="wait-label">`...)
	dst = append(dst, b.choice...)
	dst = append(dst, " · "...)
	dst = append(dst, b.chance...)
	dst = append(dst, `</dt><dd id="waitTime">`...)
	dst = b.appendTime(dst, "", v.at(v.Decision.Ticket.Next), v.wall())
	dst = appendPercent(append(dst, " · "...), chanceOf(&v.Decision))
	return append(dst, `</dd></div></dl>`...)
}

// untilStart is the time until the start of the event in minutes, if it is known.
func untilStart(v *View, st state) (int64, bool) {
	start, _ := countdowns(v, st)
	return minutes(start), !happeningOf(&v.Decision).start.IsZero()
}

// appendEvent writes when an event starts, or when the one that has started ends, and where
// its shuffle can be checked.
func (b *builtin) appendEvent(dst []byte, v *View, st state) []byte {
	h := happeningOf(&v.Decision)
	at, said := h.end, b.ends
	if st.waitsForStart() {
		at, said = h.start, b.begins
	}
	left := v.until(at)
	if left > 0 && (st.waitsForStart() || h.active && !h.prequeueing && left < sameDay) {
		dst = append(dst, `<p class="quiet at">`...)
		dst = b.appendAt(dst, said, at.UTC(), v.wall())
		dst = append(dst, "</p>"...)
	}
	if h.shuffle && (st == shuffle || !h.prequeueing) {
		dst = append(dst, `<p class="quiet"><a id="check" href="`+VerifyPath+`" target="_blank" rel="noopener">`...)
		dst = append(dst, b.check...)
		dst = append(dst, "</a></p>"...)
	}
	return dst
}

// appendAt writes a sentence with a moment in it.
func (b *builtin) appendAt(dst []byte, said around, t, now time.Time) []byte {
	dst = append(dst, said.before...)
	dst = b.appendTime(dst, "", t, now)
	return append(dst, said.after...)
}

// appendTime writes a moment so that the script can show it in the visitor's zone.
func (b *builtin) appendTime(dst []byte, attributes string, t, now time.Time) []byte {
	dst = append(dst, "<time"...)
	dst = append(dst, attributes...)
	dst = append(dst, ` datetime="`...)
	dst = appendISO(dst, t)
	dst = append(dst, `">`...)
	dst = b.numerals.appendMoment(dst, t, now)
	return append(dst, "</time>"...)
}

// appendWait writes the forecast as a range. asset/page.js says it in the same way.
func (b *builtin) appendWait(dst []byte, v *View) []byte {
	low, high, known := waitRange(&v.Decision)
	switch {
	case v.Decision.QueueIsFull && stateOf(&v.Decision) == longLine, known && high > oneDay:
		return append(dst, b.day...)
	case !known:
		return append(dst, b.unknown...)
	case high == 0:
		dst = append(dst, b.more.before...)
		dst = b.appendSpan(dst, low)
		return append(dst, b.more.after...)
	case low == 0:
		dst = append(dst, b.less.before...)
		dst = b.appendSpan(dst, high)
		return append(dst, b.less.after...)
	case low == high:
		return b.appendSpan(dst, high)
	case high < 60:
		return b.appendBounds(dst, b.min, low, high, (*numerals).append)
	case low%60 == 0 && high%60 == 0:
		return b.appendBounds(dst, b.hour, low/60, high/60, (*numerals).append)
	}
	return b.appendBounds(dst, b.hour, low, high, (*numerals).appendHours)
}

// appendBounds writes "10–15 min", "2–3 h" or "0:45–1:15 h".
func (b *builtin) appendBounds(dst []byte, unit around, low, high int64, number func(*numerals, []byte, int64) []byte) []byte {
	dst = append(dst, unit.before...)
	dst = number(&b.numerals, dst, low)
	dst = append(dst, b.sep...)
	dst = number(&b.numerals, dst, high)
	return append(dst, unit.after...)
}

// appendSpan writes "45 min", "2 h" or "1:15 h".
func (b *builtin) appendSpan(dst []byte, minutes int64) []byte {
	switch {
	case minutes < 60:
		dst = append(dst, b.min.before...)
		dst = b.numerals.append(dst, minutes)
		return append(dst, b.min.after...)
	case minutes%60 == 0:
		dst = append(dst, b.hour.before...)
		dst = b.numerals.append(dst, minutes/60)
	default:
		dst = append(dst, b.hour.before...)
		dst = b.numerals.appendHours(dst, minutes)
	}
	return append(dst, b.hour.after...)
}
