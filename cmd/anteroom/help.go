package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// usage writes what help says below a command's sentence. Cobra's own lists the command help, which is the last line of
// ours, and its templates keep the linker from dropping anything (ADR 0039).
func usage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:")
	if cmd.Runnable() {
		b.WriteString("\n  " + cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n  " + cmd.CommandPath() + " [command]")
	}
	if cmd.HasExample() {
		b.WriteString("\n\nExamples:\n" + cmd.Example)
	}
	list := func(title, group string) {
		heading := "\n\n" + title
		for _, below := range cmd.Commands() {
			if below.IsAvailableCommand() && below.GroupID == group {
				fmt.Fprintf(&b, "%s\n  %-*s %s", heading, below.NamePadding(), below.Name(), below.Short)
				heading = ""
			}
		}
	}
	for _, group := range cmd.Groups() {
		list(group.Title, group.ID)
	}
	list("Available Commands:", "")
	if cmd.HasAvailableLocalFlags() {
		b.WriteString("\n\nFlags:\n" + strings.TrimRight(cmd.LocalFlags().FlagUsages(), " \n"))
	}
	if cmd.HasAvailableInheritedFlags() {
		b.WriteString("\n\nGlobal Flags:\n" + strings.TrimRight(cmd.InheritedFlags().FlagUsages(), " \n"))
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n\nUse \"" + cmd.CommandPath() + " [command] --help\" for more information about a command.")
	}
	b.WriteByte('\n')
	_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
	return err
}
