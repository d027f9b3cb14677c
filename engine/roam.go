package engine

// Tickets that turn up at another site than the one where they live.

import (
	"github.com/anteroom/anteroom"
)

// ReceiveInquiry takes a question of the coordinator: tickets named in it have turned up at
// another site.
func (s *Site) ReceiveInquiry(now anteroom.Time, q Inquiry) {}

// ReceiveFindings takes the answer to what this site asked.
func (s *Site) ReceiveFindings(now anteroom.Time, f Findings) {}
