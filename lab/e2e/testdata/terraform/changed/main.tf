# The same, changed: attributes that were set are gone, others are new. The address of the API and the token come from the environment:
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
  total_active_users   = 300
  description          = "A little more"
}

resource "cloudflare_waiting_room" "full" {
  zone_id              = cloudflare_zone.tickets.id
  name                 = "full"
  host                 = "shop.tickets.example"
  path                 = "/buy"
  new_users_per_minute = 400
  total_active_users   = 405
  cookie_suffix        = "tickets"
  cookie_attributes    = { samesite = "lax", secure = "auto" }
  additional_routes = [
    { host = "www.tickets.example", path = "/buy" },
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
  zone_id          = cloudflare_zone.tickets.id
  waiting_room_id  = cloudflare_waiting_room.full.id
  name             = "full"
  event_start_time = "2036-05-01T12:00:00.5+02:00"
  event_end_time   = "2036-05-01T16:00:00.000Z"
}

resource "cloudflare_waiting_room_rules" "full" {
  zone_id         = cloudflare_zone.tickets.id
  waiting_room_id = cloudflare_waiting_room.full.id
  rules = [
    {
      action      = "bypass_waiting_room"
      expression  = "http.request.uri.path.extension in {\"css\" \"js\"}"
      description = "Assets"
    },
  ]
}

resource "cloudflare_waiting_room_settings" "tickets" {
  zone_id                      = cloudflare_zone.tickets.id
  search_engine_crawler_bypass = false
}

resource "cloudflare_list" "office" {
  account_id  = var.account
  name        = "office"
  kind        = "ip"
  description = "Our own"
  items = [
    { ip = "192.0.2.7", comment = "The desk" },
    { ip = "198.51.100.0/24" },
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
