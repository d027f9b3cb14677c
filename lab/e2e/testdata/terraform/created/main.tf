# A zone with two rooms, one by its defaults and one with everything set; events, rules,
# settings and a list. The address of the API and the token come from the environment:
# CLOUDFLARE_BASE_URL and CLOUDFLARE_API_TOKEN.
terraform {
  required_providers {
    cloudflare = {
      source = "cloudflare/cloudflare"
    }
  }
}

provider "cloudflare" {}

variable "account" {
  type = string
}

resource "cloudflare_zone" "tickets" {
  account = { id = var.account }
  name    = "tickets.example"
}

resource "cloudflare_waiting_room" "least" {
  zone_id              = cloudflare_zone.tickets.id
  name                 = "least"
  host                 = "tickets.example"
  new_users_per_minute = 200
  total_active_users   = 200
}

resource "cloudflare_waiting_room" "full" {
  zone_id                   = cloudflare_zone.tickets.id
  name                      = "full"
  host                      = "shop.tickets.example"
  path                      = "/buy"
  description               = "Everything set"
  new_users_per_minute      = 400
  total_active_users        = 405
  session_duration          = 10
  disable_session_renewal   = true
  queueing_method           = "random"
  queueing_status_code      = 429
  queue_all                 = false
  suspended                 = true
  json_response_enabled     = true
  custom_page_html          = "<p>{{waitTime}} minutes"
  default_template_language = "de-DE"
  cookie_suffix             = "tickets"
  cookie_attributes         = { samesite = "none", secure = "always" }
  enabled_origin_commands   = ["revoke"]
  turnstile_mode            = "off"
  turnstile_action          = "log"
  additional_routes = [
    { host = "www.tickets.example", path = "/buy" },
    { host = "m.tickets.example" },
  ]
}

resource "cloudflare_waiting_room_event" "least" {
  zone_id          = cloudflare_zone.tickets.id
  waiting_room_id  = cloudflare_waiting_room.least.id
  name             = "least"
  event_start_time = "2036-05-01T10:00:00Z"
  event_end_time   = "2036-05-01T11:00:00Z"
}

resource "cloudflare_waiting_room_event" "full" {
  zone_id                 = cloudflare_zone.tickets.id
  waiting_room_id         = cloudflare_waiting_room.full.id
  name                    = "full"
  description             = "Everything set"
  prequeue_start_time     = "2036-05-01T09:30:00.000Z"
  event_start_time        = "2036-05-01T12:00:00.5+02:00"
  event_end_time          = "2036-05-01T15:00:00.000Z"
  shuffle_at_event_start  = true
  suspended               = false
  new_users_per_minute    = 500
  total_active_users      = 1000
  session_duration        = 7
  disable_session_renewal = false
  queueing_method         = "fifo"
  custom_page_html        = "<p>Soon"
  turnstile_mode          = "invisible"
  turnstile_action        = "log"
}

resource "cloudflare_waiting_room_rules" "full" {
  zone_id         = cloudflare_zone.tickets.id
  waiting_room_id = cloudflare_waiting_room.full.id
  rules = [
    {
      action     = "bypass_waiting_room"
      expression = "ip.src in {192.0.2.0/24}"
    },
    {
      action      = "bypass_waiting_room"
      expression  = "http.request.uri.path.extension in {\"css\" \"js\"}"
      description = "Assets"
      enabled     = false
    },
  ]
}

resource "cloudflare_waiting_room_settings" "tickets" {
  zone_id                      = cloudflare_zone.tickets.id
  search_engine_crawler_bypass = true
}

resource "cloudflare_list" "office" {
  account_id  = var.account
  name        = "office"
  kind        = "ip"
  description = "Our own"
  items = [
    { ip = "192.0.2.7", comment = "The desk" },
    { ip = "2001:db8::/32" },
  ]
}

data "cloudflare_waiting_room" "least" {
  zone_id         = cloudflare_zone.tickets.id
  waiting_room_id = cloudflare_waiting_room.least.id
}

data "cloudflare_waiting_rooms" "all" {
  zone_id    = cloudflare_zone.tickets.id
  depends_on = [cloudflare_waiting_room.least, cloudflare_waiting_room.full]
}

data "cloudflare_waiting_room_events" "full" {
  zone_id         = cloudflare_zone.tickets.id
  waiting_room_id = cloudflare_waiting_room.full.id
  depends_on      = [cloudflare_waiting_room_event.full]
}

data "cloudflare_waiting_room_settings" "tickets" {
  zone_id    = cloudflare_zone.tickets.id
  depends_on = [cloudflare_waiting_room_settings.tickets]
}

output "rooms" {
  value = length(data.cloudflare_waiting_rooms.all.result)
}
