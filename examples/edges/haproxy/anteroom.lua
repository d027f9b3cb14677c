-- /etc/haproxy/anteroom.lua: asks Anteroom for the verdict about a request. Without a verdict within a second, the whole
-- request goes to Anteroom, which decides about it itself.
local url = "http://127.0.0.1:8082/check/haproxy"

core.register_action("anteroom", {"http-req"}, function(txn)
  local asked = {}
  for name, values in pairs(txn.http:req_get_headers()) do
    local lines = {}
    for i = 0, #values do lines[#lines + 1] = values[i] end
    asked[name] = lines
  end
  -- Not the visitor's body, and nothing that changes the connection.
  for _, name in ipairs({"content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"}) do
    asked[name] = nil
  end
  local host = asked["host"]
  asked["x-original-method"] = {txn.f:method()}
  asked["x-original-host"] = host
  asked["x-original-uri"] = {txn.f:pathq()}
  asked["x-forwarded-for"] = {txn.f:src()}

  local answer = core.httpclient():get{url = url, headers = asked, timeout = 1000}
  local function set(name, header)
    local lines = answer.headers and answer.headers[header]
    if lines and lines[0] then txn:set_var("txn.anteroom_" .. name, lines[0]) end
  end
  set("verdict", "x-anteroom-verdict")
  set("proof", "x-anteroom-assertion")
  set("ticket", "x-anteroom-set-ticket")
end, 0)
