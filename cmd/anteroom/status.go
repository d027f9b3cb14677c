package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
)

// overview is what the command status shows.
type overview struct {
	Rooms   []roomFigures        `json:"rooms"`
	Proxied []manage.ProxiedSite `json:"proxied_sites"`
}

// roomFigures are the live figures of a room with its name.
type roomFigures struct {
	Name string `json:"name"`
	schema.Status
}

// mostRooms bounds the rooms that status asks about, one by one.
const mostRooms = 100

func statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the live figures of the rooms and their origins",
		Long: `Show the live figures of up to 100 rooms and of their origins, as the node that answers sees them. PACE
is how many new users per minute a room admits at the moment: its limit, or less while it protects its
origin. WHY is what keeps new visitors out. The token needs permission to read everything.`,
		Example: `  anteroom status
  anteroom status --json`,
		Args: noArgs,
	}
	return action(remoteFlags(cmd), cmd, func(ctx context.Context, c *client.Client, _ []string) (o overview, err error) {
		rooms, err := every[room](ctx, c, ours+"/rooms", nil)
		if err != nil {
			return o, err
		}
		for _, rm := range rooms[:min(len(rooms), mostRooms)] {
			one := roomFigures{Name: rm.String()}
			if err := c.Do(ctx, http.MethodGet, rm.of(ours)+"/status", nil, nil, &one.Status); err != nil {
				return o, err
			}
			o.Rooms = append(o.Rooms, one)
		}
		return o, c.Do(ctx, http.MethodGet, ours+"/origins", nil, nil, &o.Proxied)
	}, showOverview)
}

// why says what keeps new visitors of a room out, or that nothing does.
func why(s *schema.Status) string {
	f := cmp.Or(s.InForce, &schema.InForce{})
	switch {
	case f.Suspended:
		return "suspended"
	case f.Draining && f.QueueAll: // nor is anybody admitted who waits
		return "draining, and paused or queue_all"
	case f.Draining:
		return "draining"
	case f.QueueAll:
		return "paused or queue_all"
	case f.Phase == anteroom.Prequeueing.String():
		return "before the event"
	case f.QueueingMethod == anteroom.Reject:
		return "reject"
	case s.Mode == "cut":
		return "cut off"
	case s.PaceReason != nil:
		return strings.ReplaceAll(*s.PaceReason, "_", " ")
	case f.QueueingMethod == anteroom.Passthrough:
	case s.ActiveUsers >= s.TotalActiveUsers:
		return "active users at the limit"
	case s.AdmittedLastMinute >= s.NewUsersPerMinute:
		return "new users at the limit"
	}
	return ""
}

func showOverview(w io.Writer, o overview) error {
	t := newTable(w, "ROOM", "ACTIVE USERS", "LAST MINUTE", "PACE", "WAITING", "WHY")
	for _, r := range o.Rooms {
		t.row(r.Name, fmt.Sprintf("%d of %d", r.ActiveUsers, r.TotalActiveUsers), fmt.Sprintf("%d of %d", r.AdmittedLastMinute, r.NewUsersPerMinute),
			r.PacePerMinute, r.Waiting, why(&r.Status))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t = newTable(w, "SITE", "ORIGIN", "HEALTHY", "REQUESTS", "FAILED", "MEDIAN", "95%", "IN FLIGHT")
	for _, site := range o.Proxied {
		for _, one := range site.Origins {
			healthy, median, tail := "no", "-", "-"
			if one.Healthy {
				healthy = "yes"
			}
			if one.P95 != nil {
				median, tail = milliseconds(*one.P50), milliseconds(*one.P95)
			}
			t.row(strings.Join(site.Hosts, ", "), one.URL, healthy, one.Requests, fmt.Sprintf("%.1f%%", 100*one.ErrorShare), median, tail, one.InFlight)
		}
	}
	return t.Flush()
}
