package engine

import "github.com/anteroom/anteroom"

// InLine reports whether the ticket has a place in the line: waiting, away or called.
func (c *Coordinator) InLine(id anteroom.ID) bool { return c.line.places.find(&id) != 0 }

// Drawn returns the tickets on which the draw has fallen in the last call, in that order:
// those that were called and those whose win is set aside until they are back. It is valid
// until the next call.
func (c *Coordinator) Drawn() []anteroom.ID { return c.line.drawn }
