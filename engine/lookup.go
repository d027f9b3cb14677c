package engine

import "github.com/anteroom/anteroom"

// InLine reports whether the ticket has a place in the line: waiting, away or called.
func (c *Coordinator) InLine(id anteroom.ID) bool { return c.line.places.find(&id) != 0 }
