package own

import (
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
)

// getConfiguration shows the configuration in force.
func (f *face) getConfiguration(r *api.Request) (manage.Configuration, error) {
	return f.manage.Configuration(r.By)
}
