package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	var form *output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of Anteroom and of Go",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !form.people() {
				return form.data(cmd.OutOrStdout(), map[string]string{
					"version": versionString(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return nil
		},
	}
	form = outputFlags(cmd.Flags())
	return cmd
}

// versionLine is what "anteroom version" and "anteroom --version" print.
func versionLine() string {
	return fmt.Sprintf("anteroom %s (%s, %s/%s)", versionString(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
