#!/bin/sh
# Debian calls it with "configure" and the version before, if there was one; RPM with 1 for a first
# installation and 2 for an upgrade.
set -e
getent group anteroom >/dev/null || groupadd --system anteroom
getent passwd anteroom >/dev/null || useradd --system --gid anteroom --home-dir /var/lib/anteroom \
	--no-create-home --shell /usr/sbin/nologin --comment "Anteroom waiting room" anteroom
install -d -o anteroom -g anteroom -m 0700 /var/lib/anteroom
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	# The new binary takes the listeners over, without a lost connection. If it cannot, the old
	# one goes on, and its log says why.
	if systemctl is-active --quiet anteroom.service; then
		main() { systemctl show --property=MainPID --value anteroom.service || true; } # "systemctl kill --kill-whom" needs systemd 252
		old=$(main)
		if [ "${old:-0}" -gt 1 ] && kill -USR2 "$old"; then
			for _ in 1 2 3 4 5 6 7 8 9 10; do
				[ "$(main)" = "$old" ] || break
				sleep 1
			done
			if [ "$(main)" = "$old" ]; then
				echo "The running Anteroom could not hand over to the new version, and goes on. journalctl --unit anteroom shows why."
				echo "Correct that, then: systemctl restart anteroom"
			fi
		fi
	fi
fi
if [ "$1" = 1 ] || { [ "$1" = configure ] && [ -z "$2" ]; }; then
	echo "Anteroom is installed. Name your web application in /etc/anteroom/anteroom.yaml, then:"
	echo "  systemctl enable --now anteroom"
fi
