package anteroom

import "time"

// RuleID names a rule: 32 lower-case hexadecimal digits.
type RuleID string

// ActionBypass is the one action of a rule: the request passes untouched and uncounted.
const ActionBypass = "bypass_waiting_room"

// Rule is a condition on the request and what happens when it holds. Package rules compiles
// the expression.
type Rule struct {
	ID          RuleID
	Version     int    // 1, and one more with each change
	Action      string `key:"action" default:"bypass_waiting_room" enum:"bypass_waiting_room" doc:"What happens if the expression matches."`
	Expression  string `key:"expression" required:"true" max:"4096" doc:"The condition, in the Rules language."`
	Description string `key:"description" max:"1024" doc:"Free text, at most 1024 bytes."`
	Disabled    bool   // a draft: it is checked and does nothing
	LastUpdated time.Time
}

// ListID names a list: 32 lower-case hexadecimal digits.
type ListID string

// Kinds of lists.
const (
	ListOfIPs       = "ip"
	ListOfASNs      = "asn"
	ListOfHostnames = "hostname"
)

// List is a named set of values that the rules of every room can use: ip.src in $name.
type List struct {
	ID          ListID
	Name        string `key:"name" required:"true" doc:"1 to 50 lower-case letters, digits and _; unique."`
	Description string `key:"description" doc:"Free text."`
	Kind        string `key:"kind" required:"true" enum:"ip,asn,hostname" doc:"What the items are."`
	Items       []ListItem

	CreatedOn, ModifiedOn time.Time
}

// ListItem is one value of a list.
type ListItem struct {
	ID      ListID
	Value   string // an address or network, the number of an autonomous system, or a host name
	Comment string

	CreatedOn, ModifiedOn time.Time
}
