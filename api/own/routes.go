package own

import (
	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics/report"
	"github.com/anteroom/anteroom/manage"
)

// Parameters of several operations.
var (
	from   = parameter{name: "from", is: "date-time", doc: "RFC 3339; 24 hours before to by default."}
	to     = parameter{name: "to", is: "date-time", doc: "RFC 3339; now by default."}
	format = parameter{name: "format", enum: []string{"json", "html", "csv"}, doc: "json by default. html is one page without scripts and external requests."}
	zoned  = parameter{name: "time_zone", is: "string", doc: "With html, the time zone of all times, by its IANA name like Europe/Berlin; UTC by default."}
)

// operations returns all operations, grouped by tag, in the order of the document.
func (f *face) operations() [][]operation {
	const (
		tokens = Prefix + "/tokens"
		token  = tokens + "/{token}"
		hooks  = Prefix + "/webhooks"
		hook   = hooks + "/{webhook}"
		zones  = Prefix + "/zones"
		zone   = zones + "/{zone}"
		room   = zone + "/rooms/{room}"
		event  = room + "/events/{event}"
	)
	reports := []medium{{name: "text/html"}, {name: "text/csv"}}
	restore := writes[manage.Restored](f.restore)
	restore.takes = "application/gzip"
	return [][]operation{
		tagged("tokens",
			op("GET", tokens, "listTokens", "List the tokens, without their secrets", pages(f.listTokens)),
			op("POST", tokens, "createToken", "Create a token; the answer has its secret, once", changes(f.createToken)),
			op("GET", token, "getToken", "Show a token", gives(f.getToken)),
			op("DELETE", token, "deleteToken", "Delete a token; it stops working at once", gives(f.deleteToken)),
			op("POST", token+"/rotate", "rotateToken", "Give a token a new secret", takes(f.rotateToken))),
		tagged("webhooks",
			op("GET", hooks, "listWebhooks", "List the webhooks that the token may change, without their secrets", pages(f.listWebhooks)),
			op("POST", hooks, "createWebhook", "Create a webhook; the answer has its secret, once", changes(f.createWebhook)),
			op("GET", hook, "getWebhook", "Show a webhook", gives(f.getWebhook)),
			op("PATCH", hook, "changeWebhook", "Change a webhook", changes(f.changeWebhook)),
			op("DELETE", hook, "deleteWebhook", "Delete a webhook and its pending deliveries", gives(f.deleteWebhook)),
			op("POST", hook+"/rotate", "rotateWebhook", "Give a webhook a new secret", takes(f.rotateWebhook)),
			op("POST", hook+"/test", "testWebhook", "Send a webhook.test now, without retries, and show the result", gives(f.testWebhook)),
			op("GET", hook+"/deliveries", "listDeliveries", "List the recent deliveries of a webhook, newest first", pages(f.listDeliveries))),
		tagged("keys",
			op("POST", Prefix+"/keys/rotate", "rotateKeys", "Rotate the ticket key; existing tickets stay valid", mayTake(f.rotateKeys)).
				noted("In a cluster, the new key seals tickets about 10 seconds later, when every node has it; with forget, at once. Send the request to a core. Requires the admin permission.")),
		tagged("zones",
			op("GET", zones, "listZones", "List the zones", pages(f.listZones)),
			op("POST", zones, "createZone", "Create a zone", takes(f.createZone)),
			op("GET", zone, "getZone", "Show a zone", gives(f.getZone)),
			op("PATCH", zone, "changeZone", "Change a zone", changes(f.changeZone)),
			op("DELETE", zone, "deleteZone", "Delete a zone without rooms", gives(f.deleteZone))),
		tagged("rooms",
			op("GET", Prefix+"/rooms", "listRooms", "List the rooms of all zones", pages(f.listRooms),
				parameter{name: "zone", is: "string", doc: "Only rooms of the zone with this name."},
				parameter{name: "name", is: "string", doc: "Only rooms with this name."},
				parameter{name: "id", is: "string", doc: "Only the room with this id."}),
			op("GET", room, "getRoom", "Show a room in brief", gives(f.getRoom)),
			op("GET", room+"/status", "getStatus", "Show the live figures of a room", gives(f.getStatus))),
		tagged("visitors",
			op("GET", room+"/visitors/{reference}", "findVisitors", "Find a visitor by the code on the waiting page", gives(f.findVisitors)).
				noted("Codes are short: in a large room two visitors may share one, and the answer has both."),
			op("DELETE", room+"/sessions/{session}", "revokeSession", "End a session", gives(f.revokeSession))),
		tagged("edges",
			op("POST", Prefix+"/touch", "touch", "Report requests that an edge has admitted by a pass", takes(f.touch)).
				noted("Each counts as a request of its visitor, when it is reported: the session lasts that much longer, if there is one. Nobody is admitted. A ticket proves its own session, so a token with the permission read for the room is enough. The process that answers must serve visitors.")),
		tagged("invites",
			op("GET", room+"/invites", "listInvites", "List the batches of invite codes of a room, without the codes", counts(f.listInvites)),
			op("POST", room+"/invites", "createInvites", "Make invite codes; the answer has them, once", takes(f.createInvites)),
			op("POST", room+"/invites/revoke", "revokeInvite", "Revoke one code, with all uses that are left", takes(f.revokeInvite)).
				noted("The answer is its batch; the uses that were left count as used."),
			op("DELETE", room+"/invites/{invites}", "deleteInvites", "Revoke the unused codes of a batch", gives(f.deleteInvites)).
				noted("Visitors who have joined the queue with a code keep their place.")),
		tagged("controls",
			op("POST", room+"/admit", "admit", "Admit the next visitors now, even while the room is paused, but never beyond the limits", takes(f.admit)),
			op("POST", room+"/pause", "pause", "Stop admitting new visitors", gives(f.control(func(c *anteroom.Controls) { c.Paused = true }))),
			op("POST", room+"/drain", "drain", "Close the queue to new visitors; visitors in it are admitted", gives(f.control(func(c *anteroom.Controls) { c.Draining = true }))),
			op("POST", room+"/resume", "resume", "End a pause or a drain", gives(f.control(func(c *anteroom.Controls) { c.Paused, c.Draining = false, false }))),
			op("POST", room+"/reset", "reset", "Remove all visitors from the queue; sessions stay", takes(f.reset)),
			op("PUT", room+"/message", "setMessage", "Show a message on the waiting page", takes(f.putMessage)),
			op("DELETE", room+"/message", "deleteMessage", "Remove the message", gives(f.control(func(c *anteroom.Controls) { c.Message = "" }))),
			op("PUT", room+"/remaining", "setRemaining", "Tell visitors how many items are left; 0 closes the room as sold out", takes(f.putRemaining)),
			op("POST", room+"/remaining", "countSold", "Subtract sold items from the number that is left", takes(f.countSold)),
			op("DELETE", room+"/remaining", "deleteRemaining", "Remove the number of items left, and open a room that was sold out", gives(f.control(func(c *anteroom.Controls) { c.Remaining = anteroom.Remaining{} })))),
		tagged("crowd",
			op("POST", room+"/crowd", "sendCrowd", "Try a room with simulated visitors", takes(f.sendCrowd)).
				noted("They send real requests through the gateway of the process that answers, each from an address of its own in 198.18.0.0/15, and the room counts them like any visitors. Once they are admitted, Anteroom itself answers them: the origin gets no requests. Refused while anyone waits in the room, and while another crowd runs in this process. It ends when all have left, at the latest 10 minutes after the last arrival."),
			op("GET", room+"/crowd", "getCrowd", "Show how the last simulated visitors are doing", gives(f.crowd(f.manage.CrowdOf))),
			op("DELETE", room+"/crowd", "stopCrowd", "Stop simulated visitors; their places and sessions end by themselves", gives(f.crowd(f.manage.StopCrowd)))),
		tagged("analytics",
			op("GET", Prefix+"/analytics", "totalAnalytics", "Show the totals of every room that the token may read", gives(f.totalAnalytics), from, to),
			op("GET", room+"/analytics", "getAnalytics", "Show what was recorded of a room",
				writes[Analytics](f.getAnalytics, medium{name: "text/csv", doc: "A line for each span: its time in RFC 3339, then the series. An empty cell means no value."}), from, to,
				parameter{name: "resolution", enum: resolutionNames, doc: "auto: the finest with at most 750 spans."},
				parameter{name: "format", enum: []string{"json", "csv"}})),
		tagged("report",
			op("GET", room+"/report", "getReport", "Show what happened in a room", writes[report.Report](f.roomReport, reports...), from, to, format, zoned),
			op("GET", event+"/report", "getEventReport", "Show what happened in an occurrence of an event, including its prequeue", writes[report.Report](f.eventReport, reports...),
				parameter{name: "number", is: "integer", max: 1<<20 - 1, doc: "Number of the occurrence, from 0; the latest that has begun by default."}, format, zoned)),
		tagged("events",
			op("GET", event+"/checklist", "getChecklist", "Check what an event needs before it begins", gives(f.getChecklist)).
				noted("Limits, waiting page, webhooks, challenge, clock, certificates and the doctor's findings, as the node that answers sees them. The doctor reports the same for the events of the next seven days."),
			op("GET", event+"/repeat", "getRepeat", "Show when an event happens again", gives(f.getRepeat)),
			op("PUT", event+"/repeat", "putRepeat", "Set when an event happens again", takes(f.putRepeat)),
			op("DELETE", event+"/repeat", "deleteRepeat", "Let an event happen only once", gives(f.deleteRepeat)),
			op("GET", event+"/shuffles/{number}", "getShuffle", "Show the record of a shuffle", gives(f.getShuffle)),
			op("GET", event+"/shuffles/{number}/ids", "getShuffleIDs", "Get the ids of all participants of a shuffle",
				sends(f.getShuffleIDs, medium{"application/octet-stream", "Sorted, 16 bytes each.", true}))),
		tagged("rules",
			op("POST", Prefix+"/rules/test", "testRule", "Test an expression on a request, as the gateway would evaluate it", takes(f.testRule))),
		tagged("templates",
			op("POST", Prefix+"/templates/check", "checkTemplate", "Check a custom page and get previews of it", takes(f.checkTemplate))),
		tagged("audit",
			op("GET", Prefix+"/audit", "listAudit", "Show who changed what", counts(f.listAudit),
				parameter{name: "after", is: "integer", doc: "Only records after the one with this number."},
				parameter{name: "limit", is: "integer", min: 1, max: manage.MaxAuditPage},
				parameter{name: "last", is: "integer", min: 1, max: manage.MaxAuditPage, doc: "Instead of the other two: the number of newest records to show."}),
			op("GET", Prefix+"/audit/verify", "verifyAudit", "Check that every record exists and is unchanged", gives(f.verifyAudit))),
		tagged("origins",
			op("GET", Prefix+"/origins", "listOrigins", "Show the proxied sites and the state of their origins", gives(f.listOrigins)).
				noted("As the node that answers sees them. Requires the permission to read everything.")),
		tagged("cluster",
			op("GET", Prefix+"/cluster", "getCluster", "Show the state of the cluster", gives(f.getCluster)).
				noted("Nodes and roles of the site that answers, all sites as the rooms' coordinators see them, and what is wrong. A standalone process has no name and one node. Requires the permission to read everything."),
			op("POST", Prefix+"/cluster/add", "addCores", "Make this process one of several cores", gives(f.addCores)).
				noted("Applies cluster.cores of the configuration file to the only core of a site, or makes a standalone process a core. Start the other cores first: they wait for this one, which brings the data. Requires the admin permission."),
			op("POST", Prefix+"/cluster/shrink", "shrinkCores", "Make this core the only one of its site", gives(f.shrinkCores)).
				noted("Remove cluster.cores from the configuration file of this core first. The other cores hand over their roles and stop. A majority of the cores must run. Requires the admin permission."),
			op("DELETE", Prefix+"/cluster/nodes/{node}", "removeNode", "Remove a core", gives(f.removeNode),
				parameter{name: "force", is: "boolean", doc: "Remove it even if it runs and this is another node."}).
				noted("The core no longer counts toward the majority. Send the request to the core itself, which hands over its roles and stops, or, if it does not run, to another core of the same site. Refused if too few cores would be left. Requires the admin permission."),
			op("POST", Prefix+"/cluster/nodes/{node}/replace", "replaceNode", "Remove a core whose place another core has taken", takes(f.replaceNode)).
				noted("Start the other core first, under the address of the lost one and with an empty data directory, and send the request to it or to another core of the same site. The answer waits some seconds for the copies. Requires the admin permission."),
			op("DELETE", Prefix+"/cluster/sites/{site}", "forgetSite", "Write off a site that is lost for good", gives(f.forgetSite)).
				noted("The other sites can use its units at once, and its name is free. Refused while the site answers and for a minute after it was last heard. If the site still admits visitors, the limits can be exceeded by the units that it holds. Requires the admin permission.")),
		tagged("configuration",
			op("GET", Prefix+"/configuration", "getConfiguration", "Show the configuration in force, with defaults", gives(f.getConfiguration)).
				noted("From file, environment and flags, as of the last reload. Contains no secrets. Requires the permission to read everything.")),
		tagged("backup",
			op("GET", Prefix+"/backup", "backup", "Download a backup of everything that is managed here", sends(f.backup, medium{"application/gzip", "A backup.", true}),
				parameter{name: "keys", is: "boolean", doc: "Include the ticket keys. Anyone who has them can make tickets."}).
				noted("Contains tokens as hashes. The file is gzip with a checksum that a restore verifies."),
			op("POST", Prefix+"/restore", "restore", "Replace everything that is managed here with a backup", restore,
				parameter{name: "confirm", enum: []string{"replace"}, required: true, doc: "Confirms that the backup replaces everything."}).
				noted("The token of the request stays, the audit log continues, and so do queues and sessions of rooms that exist before and after.")),
	}
}
