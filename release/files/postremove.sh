#!/bin/sh
# Debian calls it with "purge" when configuration and data have to go too. The user stays, so that
# nobody else gets its number while files of its own are left somewhere.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
	rm -rf /var/lib/anteroom /etc/anteroom
fi
