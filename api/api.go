// Package api is what the APIs of an installation have in common: the published envelope with its error codes, both
// styles of authentication, a router that answers every request in that envelope, and bounded bodies.
//
// An API is a list of [Route]; [New] makes a handler of it. Package api/rest is the published API, package api/own has
// what that lacks. Package manage decides what an operation does and who may call it.
//
// Where to read on: router.go for the life of a request, json.go and field.go for bodies, envelope.go for answers.
package api

// Bounds of a request to the API. The admin listener's server bounds how long it may take.
const (
	maxBodyBytes   = 2 << 20
	maxBodyDepth   = 32   // objects and arrays in each other
	maxBodyMembers = 1000 // of one object
	maxFaults      = 20   // reported at once
)
