package figure

import (
	"fmt"
	"time"

	"github.com/anteroom/anteroom/internal/chart"
	"github.com/anteroom/anteroom/sim"
)

// origin shows the pace that the room chose, and what it saw of the origin.
func origin(r *sim.Result) Figure {
	const tall, low = 170, 110
	title := titled("The pace, and the origin", r)
	height := chart.HeadHeight + tall + chart.GapHeight + low + chart.GapHeight + low + chart.FootHeight
	return Figure{Title: title, Width: width, Height: height, draw: func(c *chart.Canvas) {
		o := r.Origin
		c.Head(title, fmt.Sprintf("%s of %s requests failed · %s admitted while it was dead · %s · seed %d",
			chart.Thousands(o.Failed), chart.Thousands(o.Requests), chart.Thousands(o.AdmittedDead), r.Algorithm, r.Seed))
		p := panel{chart.Panel{On: c, Left: chart.MarginLeft, Top: chart.HeadHeight, Width: width - chart.MarginLeft - chart.MarginRight, Height: tall, X: chart.Times(ended(r), 10)}}
		p.against(r, "New users per minute that the room admits", chart.Green, false,
			func(q sim.Point) int { return q.Pace }, func(q sim.Point) int { return q.Rate })
		s := r.Scenario.WithDefaults()
		p.Top, p.Height = p.Bottom()+chart.GapHeight, low
		p.against(r, "Response time that one in twenty exceeds, ms", chart.Blue, false,
			func(q sim.Point) int { return int(q.Took / time.Millisecond) }, func(sim.Point) int { return int(s.ProtectLatency / time.Millisecond) })
		p.Top = p.Bottom() + chart.GapHeight
		p.against(r, "Failed requests, %", chart.Plum, true,
			func(q sim.Point) int { return int(100 * q.Failed) }, func(sim.Point) int { return s.ProtectErrors })
	}}
}
