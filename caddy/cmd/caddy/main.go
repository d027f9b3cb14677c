// Command caddy is Caddy with its own modules and Anteroom's.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/anteroom/anteroom/caddy"
)

func main() { caddycmd.Main() }
