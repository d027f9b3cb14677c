package schema

import (
	"time"

	"github.com/anteroom/anteroom"
)

// InvitesSpec is a batch of invite codes to be made.
type InvitesSpec struct {
	Name      string            `json:"name" optional:"true" max:"64" doc:"Who the codes are for."`
	Event     *anteroom.EventID `json:"event" optional:"true" doc:"Accept the codes only while this event of the room is active, including its prequeue."`
	Lane      string            `json:"lane" optional:"true" max:"50" doc:"Name of a lane of the room: visitors who enter a code move up to it. It needs a priority of 1 or more."`
	Count     int               `json:"count" min:"1" max:"10000" doc:"How many codes to make."`
	Uses      *int              `json:"uses" optional:"true" min:"1" max:"10000" doc:"How many visitors can join the queue with each code; 1 by default."`
	ExpiresOn *time.Time        `json:"expires_on" optional:"true" doc:"At most 366 days from now, and after the event begins; by default 30 days, or until the end of the event if that is later."`
}

// InviteCode is a code to be revoked.
type InviteCode struct {
	Code string `json:"code" min:"1" doc:"As a visitor may write it: in any case, with or without hyphens."`
}

// Invites is a batch of invite codes without the codes.
type Invites struct {
	_         struct{}          `doc:"A batch of invite codes, without the codes."`
	ID        string            `json:"id" pattern:"^[0-9a-f]{32}$"`
	Name      string            `json:"name"`
	Event     *anteroom.EventID `json:"event" doc:"null: accepted at any time."`
	Lane      *string           `json:"lane" doc:"Name of the lane that the codes are for; null: none."`
	Count     int               `json:"count" doc:"How many codes there are."`
	Uses      int               `json:"uses" doc:"How many visitors can join the queue with each code."`
	Used      int               `json:"used" doc:"How many visitors have."`
	ExpiresOn time.Time         `json:"expires_on"`
	CreatedOn time.Time         `json:"created_on"`
	CreatedBy string            `json:"created_by"`
}

// NewInvites is a batch with its codes.
type NewInvites struct {
	_ struct{} `doc:"A batch of invite codes with the codes, which are shown only this once; Anteroom keeps hashes of them."`
	Invites
	Codes []string `json:"codes"`
}
