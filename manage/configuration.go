package manage

import "github.com/anteroom/anteroom"

// Configuration is what a process was started or last reloaded with.
type Configuration struct {
	File         string   `json:"file" doc:"The configuration file; empty if there are only flags and the environment."`
	YAML         string   `json:"yaml" doc:"The configuration in force as a file that gives the same, defaults included. Remarks say which values do not come from the file."`
	NeedsRestart []string `json:"needs_restart" doc:"Keys whose last change takes effect at the next restart."`
}

// Configuration returns the configuration in force. It requires the permission to read everything.
func (m *Manager) Configuration(by Caller) (Configuration, error) {
	if err := by.need(Read, "", ""); err != nil {
		return Configuration{}, err
	}
	if m.cfg.Configuration == nil {
		return Configuration{}, anteroom.Errorf(anteroom.Unavailable, "this process has no configuration")
	}
	return m.cfg.Configuration(), nil
}
