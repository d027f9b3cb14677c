#!/bin/sh
# Debian calls it with "remove" or "upgrade"; RPM with 0 when no version is left, else 1.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now anteroom.socket anteroom.service || true
	fi
	;;
esac
