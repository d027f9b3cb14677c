package rest

import (
	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
)

// Words of the published status.
const (
	notQueueing      = "not_queueing"
	queueing         = "queueing"
	eventPrequeueing = "event_prequeueing"
	suspended        = "suspended"
)

// status is the published status of a room.
type status struct {
	Status                string `json:"status"`
	EventID               string `json:"event_id"`
	EstimatedQueuedUsers  int    `json:"estimated_queued_users"`
	EstimatedActiveUsers  int    `json:"estimated_total_active_users"`
	MaxEstimatedTimeInMin int    `json:"max_estimated_time_minutes"`
}

func (a *API) getStatus(r *api.Request) (api.Answer, error) {
	room, err := a.roomOf(r)
	if err != nil {
		return api.Answer{}, err
	}
	live, err := a.manage.Status(r.By, anteroom.ZoneID(r.PathValue("zone")), room.ID)
	if err != nil {
		return api.Answer{}, err
	}
	return api.Answer{Result: published(live, room.At(anteroom.TimeOf(a.now())))}, nil
}

// published says a room's numbers in the published words. Somebody is "queueing" where
// somebody waits or would have to: who is let through or turned away does not queue.
func published(live anteroom.Status, now *anteroom.InForce) status {
	if live.InForce != nil {
		now = live.InForce
	}
	s := status{Status: notQueueing, EstimatedQueuedUsers: live.Waiting, EstimatedActiveUsers: live.ActiveUsers}
	if now.Event != nil {
		s.EventID = string(now.Event.ID)
	}
	switch {
	case now.Suspended:
		s.Status = suspended
	case now.QueueAll:
		s.Status = queueing
	case now.Phase == anteroom.Prequeueing:
		s.Status = eventPrequeueing
	case live.Waiting > 0:
		s.Status = queueing
		if live.WaitKnown {
			s.MaxEstimatedTimeInMin = minutes(live.WaitOfNewcomer)
		}
	case now.QueueingMethod != anteroom.Passthrough && now.QueueingMethod != anteroom.Reject && live.Mode != "" && live.Mode != "open":
		s.Status = queueing
	}
	return s
}
