package anteroompass

import (
	"context"
	"net/http"
	"testing"
)

// Without what tells one room from another, the plugin does not start.
func TestAPluginNeedsItsRoom(t *testing.T) {
	good := func() *Config {
		c := CreateConfig()
		c.Anteroom, c.Host, c.Zone, c.Room = "http://127.0.0.1:8080", "shop.example.com", "shop.example.com", "0123456789abcdef0123456789abcdef"
		return c
	}
	if _, err := New(context.Background(), http.NotFoundHandler(), good(), "anteroom"); err != nil {
		t.Error(err)
	}
	for name, drop := range map[string]func(*Config){
		"anteroom": func(c *Config) { c.Anteroom = "127.0.0.1:8080" },
		"host":     func(c *Config) { c.Host = "" },
		"zone":     func(c *Config) { c.Zone = "" },
		"room":     func(c *Config) { c.Room = "" },
	} {
		c := good()
		drop(c)
		if _, err := New(context.Background(), http.NotFoundHandler(), c, "anteroom"); err == nil {
			t.Errorf("it starts without %s", name)
		}
	}
}
