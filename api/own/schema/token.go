package schema

import (
	"net/netip"
	"time"

	"github.com/anteroom/anteroom"
)

// Grant is a permission and where it applies.
type Grant struct {
	Permission string           `json:"permission" enum:"scrape,read,edit,admin" doc:"scrape allows only /metrics and /-/status of an admin address; read allows reading; edit also allows changes; admin allows everything, including tokens, keys, the audit log and backups."`
	Zone       *anteroom.ZoneID `json:"zone" optional:"true" doc:"Only in this zone."`
	Room       *anteroom.RoomID `json:"room" optional:"true" doc:"Only for this room."`
}

// TokenSpec is a token to be made.
type TokenSpec struct {
	Name      string         `json:"name" min:"1" max:"64"`
	Grants    []Grant        `json:"grants" min:"1" max:"100"`
	Networks  []netip.Prefix `json:"networks" optional:"true" max:"100" doc:"Addresses and networks in CIDR notation that may use the token; empty means any."`
	ExpiresOn *time.Time     `json:"expires_on" optional:"true" doc:"90 days from now by default; null means never."`
}

// Token is a token without its secret.
type Token struct {
	ID        string         `json:"id" pattern:"^[0-9a-f]{32}$"`
	Name      string         `json:"name"`
	Grants    []Grant        `json:"grants"`
	Networks  []netip.Prefix `json:"networks" doc:"Networks that may use the token; empty means any."`
	CreatedOn time.Time      `json:"created_on"`
	CreatedBy string         `json:"created_by"`
	ExpiresOn *time.Time     `json:"expires_on" doc:"null means never."`
	LastUsed  *time.Time     `json:"last_used_on" doc:"To the minute, since this process started."`
	Secrets   []Secret       `json:"secrets" doc:"The valid secrets, newest first, by their first characters."`
}

// Secret is as much of a secret as may be shown.
type Secret struct {
	Prefix    string     `json:"prefix"`
	CreatedOn time.Time  `json:"created_on"`
	ExpiresOn *time.Time `json:"expires_on" doc:"null means that it is valid until the next rotation or as long as the token."`
}

// NewToken is a token with a new secret.
type NewToken struct {
	_ struct{} `doc:"A token with its new secret."`
	Token
	Secret  string `json:"secret" doc:"Shown only this once; Anteroom keeps a hash of it."`
	AuthKey string `json:"auth_key" pattern:"^[0-9a-f]{37}$" doc:"What clients without bearer tokens send as X-Auth-Key."`
}

// Rotation says how long the previous secret stays valid.
type Rotation struct {
	OverlapSeconds int `json:"overlap_seconds" max:"2592000" doc:"How long the current secret stays valid; 0 ends it at once."`
}

// KeyRotation says what becomes of the earlier ticket keys.
type KeyRotation struct {
	Forget bool `json:"forget" optional:"true" doc:"Drop all earlier keys, after a leak: every ticket is void, and every visitor starts over."`
}
