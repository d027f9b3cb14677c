// Package api is what the programmatic faces of an installation have in common: the
// published envelope with its error codes, both styles of authentication, a router that
// answers the envelope whatever is asked, and bodies that are read within bounds.
//
// A face is a list of [Route]; [New] makes a handler of it. Package api/rest is the
// published API, package api/own what it lacks. What an operation does and who may do it is
// package manage's.
//
// Where to read on: router.go for the life of a request, json.go and field.go for bodies,
// envelope.go for answers.
package api

// Bounds of a request to the API. The admin listener's server bounds how long it may take.
const (
	maxBodyBytes   = 1 << 20
	maxBodyDepth   = 32   // objects and arrays in each other
	MaxBodyMembers = 1000 // of one object
	maxFaults      = 20   // reported at once
)
