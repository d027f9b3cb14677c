// Functions without a body (go:linkname) need a file like this one in their package.
