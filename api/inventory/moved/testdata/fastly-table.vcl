table waiting_room {
  "enabled": "true",
  "allow_percentage": "20",
  "allow_period_duration": "1800",
}
