package own

import (
	"time"

	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
)

func (f *face) touch(r *api.Request, b schema.Touches) (schema.Touched, error) {
	list := make([]manage.Touch, len(b.Touches))
	for i, one := range b.Touches {
		list[i] = manage.Touch{Ticket: one.Ticket, Ago: time.Duration(min(one.SecondsAgo, maxSecondsAgo)) * time.Second}
	}
	results, err := f.manage.Touch(r.By, b.Room, list)
	out := schema.Touched{Refused: []schema.RefusedTouch{}}
	for i, result := range results {
		if result == manage.TouchTaken {
			out.Taken++
			continue
		}
		out.Refused = append(out.Refused, schema.RefusedTouch{Index: i, Reason: result})
	}
	return out, err
}

// maxSecondsAgo is beyond what counts, and not beyond a duration.
const maxSecondsAgo = 3600
