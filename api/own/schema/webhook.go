package schema

import (
	"time"

	"github.com/anteroom/anteroom"
)

// WebhookSpec is what callers set of a webhook.
type WebhookSpec struct {
	_                struct{}         `doc:"A change leaves the members that are not sent as they are; a new webhook gets their defaults and needs name and url. null sets the default."`
	Name             string           `json:"name" optional:"true" min:"1" max:"64"`
	URL              string           `json:"url" optional:"true" max:"2048" doc:"An https URL. Only those who may change the webhook can see it."`
	Format           string           `json:"format" optional:"true" enum:"json,slack,teams"`
	Events           []string         `json:"events" optional:"true" enum:"room.queueing,room.recovered,room.queue_longer,room.event_starting,room.stuck,room.limit_saturated,config.changed,visitor.called" doc:"Event types to send; empty means all but visitor.called, including those of later releases."`
	Zone             *anteroom.ZoneID `json:"zone" optional:"true" doc:"Only for rooms in this zone."`
	Room             *anteroom.RoomID `json:"room" optional:"true" doc:"Only for this room; needs zone too."`
	LongerThan       int              `json:"longer_than" optional:"true" min:"1" max:"2147483647" doc:"Queue length above which room.queue_longer is sent."`
	MinutesBefore    int              `json:"minutes_before" optional:"true" min:"1" max:"10080" doc:"How long before the start of an event room.event_starting is sent."`
	SaturatedMinutes int              `json:"saturated_minutes" optional:"true" min:"1" max:"1440" doc:"How long a limit has to be used up before room.limit_saturated is sent."`
	Enabled          bool             `json:"enabled" optional:"true"`
}

// Webhook is a webhook without its secret.
type Webhook struct {
	ID anteroom.WebhookID `json:"id"`
	WebhookSpec
	CreatedOn  time.Time `json:"created_on"`
	ModifiedOn time.Time `json:"modified_on"`
	CreatedBy  string    `json:"created_by"`
	Secrets    []Secret  `json:"secrets" doc:"The secrets that sign, newest first, by their first characters."`
}

// NewWebhook is a webhook with a new secret.
type NewWebhook struct {
	_ struct{} `doc:"A webhook with its new secret, which is shown only this once."`
	Webhook
	Secret string `json:"secret" pattern:"^anw_[0-9A-Za-z]{49}$"`
}

// Delivery is the delivery of one message to a webhook.
type Delivery struct {
	ID           string     `json:"id" pattern:"^[0-9a-f]{32}$"`
	Type         string     `json:"type" enum:"room.queueing,room.recovered,room.queue_longer,room.event_starting,room.stuck,room.limit_saturated,config.changed,visitor.called,webhook.test"`
	Text         string     `json:"text"`
	CreatedOn    time.Time  `json:"created_on"`
	State        string     `json:"state" enum:"pending,delivered,failed"`
	Attempts     int        `json:"attempts"`
	Status       *int       `json:"status" doc:"HTTP status of the last response; null when there was none."`
	Error        *string    `json:"error" doc:"Why the last attempt failed."`
	Milliseconds int64      `json:"milliseconds" doc:"Duration of the last attempt."`
	LastOn       *time.Time `json:"last_attempt_on"`
	NextOn       *time.Time `json:"next_attempt_on"`
}
