# The lines of the published documentation, one request a paragraph, as people copy them:
# the address is that of the original API. What the answer is called by goes into the
# variables that later lines use: "> NAME" after the title takes result.id.

# Zones
curl "https://api.cloudflare.com/client/v4/zones" \
  --request POST \
  --header "Authorization: Bearer $CLOUDFLARE_API_TOKEN" \
  --json '{ "name": "example.com", "account": { "id": "'$ACCOUNT_ID'" }, "type": "full" }'
# > ZONE_ID

# The zone by its name
curl "https://api.cloudflare.com/client/v4/zones?name=example.com" \
  --header "X-Auth-Email: $CLOUDFLARE_EMAIL" \
  --header "X-Auth-Key: $CLOUDFLARE_API_KEY"

# Create a room
curl -X POST "https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms" \
--header "Authorization: Bearer $CLOUDFLARE_API_TOKEN" \
--header 'Content-Type: application/json' \
--data '{
    "name": "shop_waiting_room",
    "description": "Waiting room for webshop",
    "host": "shop.example.com",
    "path": "/shop",
    "queue_all": true,
    "new_users_per_minute": 200,
    "total_active_users": 300,
    "session_duration": 1,
    "disable_session_renewal": false,
    "json_response_enabled": false,
    "queueing_method": "FIFO",
    "cookie_attributes": { "samesite": "auto", "secure": "auto" },
    "cookie_suffix": "",
    "custom_page_html": "{{#waitTimeKnown}} {{waitTime}} mins {{/waitTimeKnown}} {{^waitTimeKnown}} Queue all enabled {{/waitTimeKnown}}"
}'
# > WAITING_ROOM_ID

# List rooms
curl https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms \
    -H "X-Auth-Email: $CLOUDFLARE_EMAIL" \
    -H "X-Auth-Key: $CLOUDFLARE_API_KEY"

# List the account's rooms
curl https://api.cloudflare.com/client/v4/accounts/$ACCOUNT_ID/waiting_rooms \
    -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN"

# Room details
curl https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms/$WAITING_ROOM_ID \
    -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN"

# Edit a room
curl "https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms/$WAITING_ROOM_ID" \
  --request PATCH \
  --header "Authorization: Bearer $CLOUDFLARE_API_TOKEN" \
  --json '{ "custom_page_html": "<p>{{waitTime}} minutes</p>" }'

# Update a room
curl https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms/$WAITING_ROOM_ID \
    -X PUT \
    -H 'Content-Type: application/json' \
    -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN" \
    -d '{
          "host": "shop.example.com",
          "name": "production_webinar",
          "new_users_per_minute": 200,
          "total_active_users": 200,
          "additional_routes": [ { "host": "shop2.example.com", "path": "/shop2/checkout" } ],
          "cookie_attributes": { "samesite": "auto", "secure": "auto" },
          "cookie_suffix": "abcd",
          "custom_page_html": "{{#waitTimeKnown}} {{waitTime}} mins {{/waitTimeKnown}} {{^waitTimeKnown}} Queue all enabled {{/waitTimeKnown}}",
          "default_template_language": "es-ES",
          "description": "Production - DO NOT MODIFY",
          "disable_session_renewal": false,
          "enabled_origin_commands": [ "revoke" ],
          "json_response_enabled": false,
          "path": "/shop/checkout",
          "queue_all": true,
          "queueing_method": "fifo",
          "queueing_status_code": 202,
          "session_duration": 1,
          "suspended": true,
          "turnstile_action": "log",
          "turnstile_mode": "off"
        }'

# Status
curl https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms/$WAITING_ROOM_ID/status \
    -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN"

# Create an event
curl https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms/$WAITING_ROOM_ID/events \
    -H 'Content-Type: application/json' \
    -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN" \
    -d '{
          "event_end_time": "2021-09-28T17:00:00.000Z",
          "event_start_time": "2021-09-28T15:30:00.000Z",
          "name": "production_webinar_event",
          "custom_page_html": "{{#waitTimeKnown}} {{waitTime}} mins {{/waitTimeKnown}} {{^waitTimeKnown}} Event is prequeueing / Queue all enabled {{/waitTimeKnown}}",
          "description": "Production event - DO NOT MODIFY",
          "disable_session_renewal": true,
          "new_users_per_minute": 200,
          "prequeue_start_time": "2021-09-28T15:00:00.000Z",
          "queueing_method": "random",
          "session_duration": 1,
          "shuffle_at_event_start": true,
          "suspended": true,
          "total_active_users": 200,
          "turnstile_action": "log",
          "turnstile_mode": "off"
        }'
# > EVENT_ID

# List events
curl https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms/$WAITING_ROOM_ID/events \
    -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN"

# Event details
curl https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms/$WAITING_ROOM_ID/events/$EVENT_ID/details \
    -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN"

# Edit an event
curl "https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms/$WAITING_ROOM_ID/events/$EVENT_ID" \
  --request PATCH \
  --header "Authorization: Bearer $CLOUDFLARE_API_TOKEN" \
  --json '{ "suspended": false, "queueing_method": null }'

# Create a rule
curl -X POST "https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms/$WAITING_ROOM_ID/rules" \
--header "Authorization: Bearer $CLOUDFLARE_API_TOKEN" \
--header "Content-Type: application/json" \
--data '{
    "description": "subpath bypass",
    "expression": "starts_with(http.request.uri.path, \"/bypassme/\")",
    "action": "bypass_waiting_room"
}'

# Replace the rules
curl -X PUT "https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms/$WAITING_ROOM_ID/rules" \
--header "Authorization: Bearer $CLOUDFLARE_API_TOKEN" \
--header "Content-Type: application/json" \
--data '[
    {
        "description": "query string bypass",
        "expression": "http.request.uri.query contains \"bypassme=true\"",
        "action": "bypass_waiting_room"
    },
    {
        "description": "file extension bypass",
        "expression": "http.request.uri.path.extension in {\"js\" \"css\" \"png\"}",
        "action": "bypass_waiting_room",
        "enabled": false
    }
]'

# List rules
curl https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms/$WAITING_ROOM_ID/rules \
    -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN"

# Preview
curl https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms/preview \
    -H 'Content-Type: application/json' \
    -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN" \
    -d '{ "custom_html": "{{#waitTimeKnown}} {{waitTime}} mins {{/waitTimeKnown}} {{^waitTimeKnown}} Queue all enabled {{/waitTimeKnown}}" }'

# Settings of the zone
curl https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms/settings \
    -X PATCH \
    -H 'Content-Type: application/json' \
    -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN" \
    -d '{ "search_engine_crawler_bypass": true }'

# Delete the event, with a body as the schema asks for
curl https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms/$WAITING_ROOM_ID/events/$EVENT_ID \
    -X DELETE \
    -H 'Content-Type: application/json' \
    -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN" \
    -d '{}'

# Delete the room
curl https://api.cloudflare.com/client/v4/zones/$ZONE_ID/waiting_rooms/$WAITING_ROOM_ID \
    -X DELETE \
    -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN"

# Delete the zone
curl https://api.cloudflare.com/client/v4/zones/$ZONE_ID \
    -X DELETE \
    -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN"
