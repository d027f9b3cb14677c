package report

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/anteroom/anteroom/internal/markup"
)

// missing stands where a table has no value.
const missing = "–"

// page is the report as HTML, with the times of its zone.
func (r *Report) page() []byte {
	p := &page{r: r}
	p.Put(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{}</title>`, r.title())
	// The style is what the policy's hash is of.
	p.Raw(`<meta http-equiv="Content-Security-Policy" content="` + markup.Escape(Policy) + `"><style>` + style + `</style>`)
	p.Put(`<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex"></head><body>
<header>
<h1>{}</h1>
<p class="soft">Room {}/{}, {} to {}. All times are {}.</p>
</header>
<main>
`, r.title(), r.Room.Zone, r.Room.Name, p.at(r.From), p.at(r.To), r.zone.String())
	for _, note := range r.Notes {
		p.Put("<p class=\"note\">{}</p>\n", note)
	}
	for _, sentence := range r.summary() {
		p.Put("<p>{}</p>\n", sentence)
	}
	p.tiles()
	p.timeline()
	p.durations()
	p.limits()
	p.order()
	p.inForce()
	p.changes()
	p.further()
	p.Put(`</main>
<footer><p>Made by Anteroom on {} from figures up to {}. Spans of {} seconds. Room id <code>{}</code>; it covers`, p.at(r.Made), p.at(r.AsOf), whole(r.Every), string(r.Room.ID))
	for _, route := range r.Room.Routes {
		p.Put(` <code>{}</code>`, route)
	}
	p.Put(".</p></footer>\n</body></html>\n")
	return p.Bytes()
}

// page is a report's page being written.
type page struct {
	markup.Page
	r *Report
}

func (p *page) at(t time.Time) string { return moment(t.In(p.r.zone)) }

func whole(v int64) string { return grouped(float64(v)) }

// some is a word, or what stands for none.
func some(word string) string {
	if word == "" {
		return missing
	}
	return word
}

// only is the text if it is known.
func only(known bool, text string) string {
	if known {
		return text
	}
	return missing
}

func (p *page) tiles() {
	f, peaks := p.r.Figures, p.r.Peaks
	p.Put("\n<dl class=\"tiles\">\n<div><dt>Admitted</dt><dd>{}<small>{} without waiting</small></dd></div>\n", whole(f.LetIn), whole(f.AtOnce))
	for _, one := range []struct {
		name, note string
		peak       *Peak
	}{{"Most active users", "", peaks.ActiveUsers}, {"Most in the queue", "", peaks.QueuedUsers}, {"Busiest minute", "admitted, ", peaks.NewUsers}} {
		p.Put(`<div><dt>{}</dt><dd>`, one.name)
		if one.peak != nil {
			p.Put(`{}<small>{}{}</small>`, whole(one.peak.Value), one.note, p.r.clock(one.peak.At))
		} else {
			p.Put(missing)
		}
		p.Put("</dd></div>\n")
	}
	p.Put(`<div><dt>Gave up</dt><dd>{}<small>{} of the visitors in the queue</small></dd></div>
<div><dt>Did not take their turn</dt><dd>{}<small>{} of all turns</small></dd></div>
</dl>
`, whole(f.Abandoned), percent(f.AbandonedOf), whole(f.NoShows), percent(f.NoShowsOf))
}

func (p *page) timeline() {
	p.Put("\n<h2>Timeline</h2>\n")
	figures := p.r.figures()
	for _, f := range figures {
		p.Put("<figure><figcaption><strong>{}.</strong> {}</figcaption>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">", f.Title, f.Summary, f.Title)
		p.Raw(f.SVG)
		p.Put("</div></figure>\n")
	}
	if len(figures) == 0 {
		p.Put("<p>Nothing was recorded.</p>\n")
	}
	rows := p.r.table()
	if len(rows) == 0 {
		return
	}
	p.Put(`<details><summary>The same as a table</summary><div class="scroll" role="region" tabindex="0" aria-label="The timeline as a table"><table>
<thead><tr><th scope="col">From</th><th scope="col" class="n">Active users</th><th scope="col" class="n">In the queue</th><th scope="col" class="n">Admitted per minute</th><th scope="col" class="n">Joined the queue</th><th scope="col" class="n">Gave up</th><th scope="col" class="n">Half waited less than</th><th scope="col" class="n">95 of 100 less than</th></tr></thead>
<tbody>`)
	for _, row := range rows {
		p.Put("<tr><td class=\"t\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
			p.at(row.At), only(row.People, whole(row.Active)), only(row.People, whole(row.Queued)), grouped(row.New), whole(row.Joined), whole(row.Abandoned),
			only(row.Waited, duration(row.WaitP50)), only(row.Waited, duration(row.WaitP95)))
	}
	p.Put("</tbody></table></div></details>\n")
}

// spans are the words for distributions of durations.
var spans = map[string]string{
	"waited":            "wait of visitors admitted from the queue",
	"in_queue":          "wait so far, at each check-in",
	"on_origin":         "session, to its last request",
	"between_refreshes": "time between requests of a session",
}

func (p *page) durations() {
	p.Put("\n<h2>Durations</h2>\n")
	if len(p.r.Durations) == 0 {
		p.Put("<p>None were recorded.</p>")
	} else {
		p.Put(`<div class="scroll" role="region" tabindex="0" aria-label="Durations"><table>
<thead><tr><th scope="col">Of</th><th scope="col" class="n">Number</th><th scope="col" class="n">Mean</th><th scope="col" class="n">50 of 100 below</th><th scope="col" class="n">75</th><th scope="col" class="n">90</th><th scope="col" class="n">95</th><th scope="col" class="n">99</th><th scope="col" class="n">Longest</th></tr></thead>
<tbody>`)
		for _, d := range p.r.Durations {
			name := cmp.Or(spans[d.Name], d.Name)
			p.Put(`<tr><th scope="row">{}</th><td class="n">{}</td>`, name, whole(d.Count))
			for _, v := range []float64{d.Mean, d.P50, d.P75, d.P90, d.P95, d.P99, d.Max} {
				p.Put(`<td class="n">{}</td>`, duration(v))
			}
			p.Put("</tr>\n")
		}
		p.Put("</tbody></table></div>")
	}
	p.Put("\n\n<h3>What visitors were told</h3>\n")
	e := p.r.Estimates
	if e.Compared == 0 {
		p.Put("<p>No estimate can be compared.</p>\n")
		return
	}
	p.Put(`<p>Of {} visitors admitted from the queue whose first estimate is known, {} waited longer than it said`, whole(e.Compared), percent(e.LateOf))
	if e.Late != nil {
		p.Put(`: half of these by at most {}, 95 of 100 by at most {}`, duration(e.Late.P50), duration(e.Late.P95))
	}
	p.Put(".")
	if e.Early != nil {
		p.Put(` Of the others, half were admitted up to {} sooner.`, duration(e.Early.P50))
	}
	p.Put("</p>\n")
}

// between says the bounds of a limit.
func between(b *Bounds) string {
	if b.Min == b.Max {
		return whole(b.Min)
	}
	return whole(b.Min) + " to " + whole(b.Max)
}

func (p *page) limits() {
	l := p.r.Limits
	p.Put("\n<h2>Limits</h2>\n<p>")
	if l.ActiveUsers != nil {
		p.Put(`Active users: the limit was {}.`, between(l.ActiveUsers))
	}
	if most := p.r.Peaks.ActiveUsers; most != nil {
		p.Put(` At most {} were active.`, whole(most.Value))
	}
	if l.OverActive > 0 {
		p.Put("\nIn {} of the spans of the timeline there were more active users than the limit: sessions do not end early when it is lowered.</p>\n", whole(l.OverActive))
	} else {
		p.Put("\nIt was never exceeded.</p>\n")
	}
	if l.NewUsers == nil {
		return
	}
	p.Put(`<p>New users per minute: the limit was {}.`, between(l.NewUsers))
	switch over := l.OverNew; {
	case over == nil:
	case *over == 0:
		p.Put(" It was never exceeded.")
	default:
		p.Put(" It was exceeded in {} minutes.", whole(*over))
	}
	p.Put("</p>\n")
}

func (p *page) order() {
	p.Put("\n<h2>Order</h2>\n<ul>")
	for _, sentence := range p.r.Order.Statement {
		p.Put("<li>{}</li>\n", sentence)
	}
	p.Put("</ul>\n")
	if len(p.r.Order.Manual) > 0 {
		p.Put(`<table><caption>Admissions by hand</caption><thead><tr><th scope="col">When</th><th scope="col" class="n">Asked for</th><th scope="col">By</th></tr></thead>
<tbody>`)
		for _, m := range p.r.Order.Manual {
			p.Put("<tr><td class=\"t\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n", p.at(m.At), whole(m.Count), some(m.By))
		}
		p.Put("</tbody></table>")
	}
	p.Put("\n")
	for _, d := range p.r.Draws {
		p.draw(&d)
	}
}

func (p *page) draw(d *Draw) {
	p.Put("<h3>Shuffle of event {}, number {}</h3>\n", d.Event, strconv.Itoa(d.Number))
	if d.Done {
		p.Put("<p>{} took part. The commitment was published before the start, the seed after it. Anybody can recompute the places:</p>\n", whole(d.Count))
	} else {
		p.Put("<p>It has not happened; its commitment is known.</p>\n")
	}
	p.Put("<table><tbody>\n<tr><th scope=\"row\">Commitment (SHA-256 of the seed)</th><td><code>{}</code></td></tr>\n", d.Commitment)
	if d.Done {
		at := ""
		if d.At != nil {
			at = p.at(*d.At)
		}
		p.Put(`<tr><th scope="row">Shuffled at</th><td>{}</td></tr>
<tr><th scope="row">Seed</th><td><code>{}</code></td></tr>
<tr><th scope="row">Entries (SHA-256 of the ids)</th><td><code>{}</code></td></tr>`, at, d.Seed, d.Entries)
	}
	p.Put("\n<tr><th scope=\"row\">Command</th><td><code>{}</code></td></tr>\n</tbody></table>\n\n", d.Command)
}

func (p *page) inForce() {
	p.Put("<h2>In force</h2>\n")
	if len(p.r.InForce) == 0 {
		p.Put("<p>Not known.</p>")
	} else {
		p.Put(`<div class="scroll" role="region" tabindex="0" aria-label="In force"><table><thead><tr><th scope="col">From</th><th scope="col">To</th><th scope="col">Method</th><th scope="col">Event</th><th scope="col" class="n">Active user limit</th><th scope="col" class="n">New users per minute</th><th scope="col">Held</th></tr></thead>
<tbody>`)
		for _, s := range p.r.InForce {
			held := missing
			if s.Suspended {
				held = "suspended"
			} else if s.QueueAll {
				held = "everybody held"
			}
			p.Put("<tr><td class=\"t\">{}</td><td class=\"t\">{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
				p.at(s.From), p.at(s.To), string(s.Method), some(s.Event), whole(s.Active), whole(s.New), held)
		}
		p.Put("</tbody></table></div>")
	}
	p.Put("\n")
	if len(p.r.Events) > 0 {
		p.Put(`<h3>Events</h3>
<table><thead><tr><th scope="col">Event</th><th scope="col" class="n">Number</th><th scope="col">Prequeue</th><th scope="col">Start</th><th scope="col">End</th><th scope="col">Shuffle</th></tr></thead>
<tbody>`)
		for _, e := range p.r.Events {
			prequeue, shuffle := missing, "no"
			if e.Prequeue != nil {
				prequeue = p.at(*e.Prequeue)
			}
			if e.Shuffle {
				shuffle = "yes"
			}
			p.Put("<tr><td>{}</td><td class=\"n\">{}</td><td class=\"t\">{}</td><td class=\"t\">{}</td><td class=\"t\">{}</td><td>{}</td></tr>\n",
				e.Name, strconv.Itoa(e.Number), prequeue, p.at(e.Start), p.at(e.End), shuffle)
		}
		p.Put("</tbody></table>")
	}
	p.Put("\n")
}

func (p *page) changes() {
	p.Put("\n<h2>Changes</h2>\n")
	if len(p.r.Changes) == 0 {
		p.Put("<p>None that are known.</p>\n")
		return
	}
	p.Put(`<div class="scroll" role="region" tabindex="0" aria-label="Changes"><table><thead><tr><th scope="col">When</th><th scope="col">By</th><th scope="col">What</th><th scope="col">Field</th><th scope="col">Before</th><th scope="col">After</th></tr></thead>
<tbody>`)
	for _, c := range p.r.Changes {
		what := c.Operation
		if c.Name != "" {
			what += " " + c.Name
		}
		p.Put(`<tr><td class="t">{}</td><td>{}</td><td>{}</td>`, p.at(c.At), some(c.By), what)
		for i, f := range c.Fields {
			if i > 0 {
				p.Put(`<tr><td></td><td></td><td></td>`)
			}
			p.Put("<td>{}</td><td>{}</td><td>{}</td></tr>\n", f.Name, text(f.Before), text(f.After))
		}
		if len(c.Fields) == 0 {
			p.Put("<td></td><td></td><td></td></tr>\n")
		}
		if c.Omitted > 0 {
			p.Put("<tr><td></td><td></td><td></td><td>and {} more</td><td></td><td></td></tr>\n", strconv.Itoa(c.Omitted))
		}
	}
	p.Put("</tbody></table></div>\n")
}

func (p *page) further() {
	f := p.r.Figures
	p.Put("\n<h2>Further figures</h2>\n<table><tbody>\n")
	for _, one := range []struct {
		name  string
		count int64
	}{{"Places taken in the queue", f.Joined}, {"Requests turned away without a place", f.TurnedAway}, {"Sessions ended by the origin or an operator", f.Revoked},
		{"Requests that bypassed the room", f.Bypassed}, {"Tickets that were not accepted", f.Refused}} {
		p.Put("<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td></tr>\n", one.name, whole(one.count))
	}
	p.Put("</tbody></table>\n")
	for _, one := range []struct {
		name   string
		counts map[string]int64
	}{{"Decisions", p.r.Decisions}, {"Tickets that were not accepted", p.r.TicketRefusals}, {"Requests that bypassed the room", p.r.Bypasses}} {
		if len(one.counts) == 0 {
			continue
		}
		p.Put("<h3>{}</h3>\n<table><tbody>", one.name)
		for _, word := range slices.Sorted(maps.Keys(one.counts)) {
			p.Put("<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td></tr>\n", word, whole(one.counts[word]))
		}
		p.Put("</tbody></table>\n")
	}
}
