package anteroom

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// ZoneID names a zone: 32 lower-case hexadecimal digits.
type ZoneID string

// ZoneIDOf derives the stable identifier of a zone from its name.
func ZoneIDOf(name string) ZoneID {
	h := sha256.New()
	h.Write([]byte("anteroom-zone\x00" + name))
	return ZoneID(hex.EncodeToString(h.Sum(nil)[:16]))
}

// Zone is a domain and what its rooms have in common. The hosts of a zone's rooms are its
// name or below it; the zone "*" is for rooms that cover every host.
type Zone struct {
	ID   ZoneID
	Name string // a canonical host name, or "*"

	SearchEngineCrawlerBypass bool `key:"search_engine_crawler_bypass" default:"false" doc:"Whether verified search-engine crawlers bypass every room of the zone."`

	CreatedOn, ModifiedOn time.Time
}
