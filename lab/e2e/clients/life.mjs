// The npm SDK runs rooms from creation to deletion. CLOUDFLARE_BASE_URL and the usual
// credentials come from the environment; ACCOUNT names the account.
import assert from 'node:assert/strict';
import Cloudflare from 'cloudflare';

let sent = 0;
const client = new Cloudflare({ fetch: (...a) => { sent++; return fetch(...a); } });
const account_id = process.env.ACCOUNT;
const rooms = client.waitingRooms;
const action = 'bypass_waiting_room';

async function all(pages) {
  const out = [];
  for await (const x of pages) {
    out.push(x);
    assert.ok(out.length < 100, 'the pages do not end');
  }
  return out;
}

async function refused(call, status, code) {
  const before = sent;
  await assert.rejects(call, (e) => {
    assert.equal(e.status, status, e.message);
    assert.ok(e.errors[0].code >= 1000, e.message);
    if (code) assert.equal(e.errors[0].code, code, e.message);
    return true;
  });
  assert.equal(sent - before, 1, 'the client tried again');
}

// Zone, token, settings.
const zone = await client.zones.create({ name: 'tickets.example', account: { id: account_id }, type: 'full' });
const zone_id = zone.id;
assert.match(zone_id, /^[0-9a-f]{32}$/);
assert.deepEqual((await all(client.zones.list({ name: 'tickets.example' }))).map((z) => z.id), [zone_id]);
assert.equal((await client.zones.get({ zone_id })).name, 'tickets.example');
assert.equal((await client.user.tokens.verify()).status, 'active');
assert.deepEqual((await all(client.accounts.list())).map((a) => a.id), [account_id]);
assert.equal((await rooms.settings.get({ zone_id })).search_engine_crawler_bypass, false);
assert.equal((await rooms.settings.update({ zone_id, search_engine_crawler_bypass: true })).search_engine_crawler_bypass, true);
assert.equal((await rooms.settings.edit({ zone_id, search_engine_crawler_bypass: false })).search_engine_crawler_bypass, false);

// Room.
const least = { zone_id, name: 'shop', host: 'tickets.example', total_active_users: 300, new_users_per_minute: 200 };
const room = await rooms.create(least);
const defaults = {
  id: room.id, created_on: room.created_on, name: 'shop', description: '', host: 'tickets.example', path: '/',
  additional_routes: [], cookie_suffix: '', cookie_attributes: { samesite: 'auto', secure: 'auto' }, total_active_users: 300,
  new_users_per_minute: 200, session_duration: 5, disable_session_renewal: false, queueing_method: 'fifo', queueing_status_code: 200,
  queue_all: false, suspended: false, custom_page_html: '', default_template_language: 'en-US', json_response_enabled: false,
  enabled_origin_commands: [], turnstile_mode: 'invisible', turnstile_action: 'log',
  next_event_prequeue_start_time: null, next_event_start_time: null,
};
// Without what changes, and without what is not of the published API.
const stable = ({ modified_on, turn_countdown, web_push, route_suffixes, json_response_exact, resubmit_forms, lottery_percent, lottery_round, lottery_max_wait, lottery_follow, account_issuer, account_audience, account_keys, account_claim, account_lane_claim, lanes, account_cookie, account_header, account_sign_in_url, shadow, page_color, page_color_dark, page_logo, page_site_name, page_title, refresh, unpaced, first_session, place_hold, pass, pass_reported, protect, protect_errors, protect_latency, protect_floor, protect_return, pass_edge, bind, session_networks, session_networks_action, first_request_list, invite_only, ...rest }) => { assert.ok(Date.parse(modified_on)); return rest; };
assert.deepEqual(stable(room), defaults);
const updated = await rooms.update(room.id, {
  ...least, description: 'Everything', path: '/buy', cookie_suffix: 'tickets', additional_routes: [{ host: 'www.tickets.example', path: '/buy' }],
  cookie_attributes: { samesite: 'none', secure: 'always' }, queueing_status_code: 202, session_duration: 12,
});
assert.equal(updated.session_duration, 12);
const edited = await rooms.edit(room.id, { zone_id, description: 'Only this' });
assert.deepEqual(stable(edited), { ...stable(updated), description: 'Only this' });
assert.deepEqual(stable(await rooms.update(room.id, least)), defaults);
assert.deepEqual(stable(await rooms.get(room.id, { zone_id })), defaults);
for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) await rooms.create({ ...least, name, path: '/' + name });
for (const where of [{ zone_id }, { account_id }]) {
  const names = (await all(rooms.list({ ...where, per_page: 5 }))).map((r) => r.name).join(' ');
  assert.equal(names, 'shop a b c d e f');
}

// Events.
const at = (minutes) => new Date(Date.now() + minutes * 60_000).toISOString();
const sale = { zone_id, name: 'sale', event_start_time: at(60), event_end_time: at(120) };
const event = await rooms.events.create(room.id, sale);
assert.equal(event.event_start_time, sale.event_start_time);
assert.equal(event.queueing_method, null);
const waiting_room_id = room.id;
const prequeue_start_time = at(30);
const planned = await rooms.events.edit(event.id, { zone_id, waiting_room_id, prequeue_start_time, shuffle_at_event_start: true, queueing_method: 'random', session_duration: 7 });
assert.equal(planned.prequeue_start_time, prequeue_start_time);
assert.equal(planned.session_duration, 7);
assert.equal((await rooms.events.edit(event.id, { zone_id, waiting_room_id, session_duration: null })).session_duration, null);
const details = await rooms.events.details.get(event.id, { zone_id, waiting_room_id });
assert.deepEqual([details.session_duration, details.queueing_method, details.total_active_users], [5, 'random', 300]);
assert.equal(Date.parse((await rooms.get(room.id, { zone_id })).next_event_start_time), Date.parse(sale.event_start_time));
assert.equal((await rooms.events.update(event.id, { ...sale, waiting_room_id })).prequeue_start_time, null);
assert.equal((await all(rooms.events.list(room.id, { zone_id }))).length, 1);
assert.equal((await rooms.events.get(event.id, { zone_id, waiting_room_id })).name, 'sale');
assert.deepEqual(await rooms.events.delete(event.id, { zone_id, waiting_room_id }), { id: event.id });
await refused(() => rooms.events.get(event.id, { zone_id, waiting_room_id }), 404, 1001);

// Rules.
for (const description of ['one', 'two', 'three']) await rooms.rules.create(room.id, { zone_id, rules: { action, expression: 'ssl', description } });
const order = (rules) => rules.map((r) => r.description).join(' ');
const rules = await all(rooms.rules.get(room.id, { zone_id }));
assert.equal(order(rules), 'one two three');
const move = async (rule, position) => order(await all(rooms.rules.edit(rule.id, { zone_id, waiting_room_id, action, expression: rule.expression, position })));
assert.equal(await move(rules[2], { index: 1 }), 'three one two');
assert.equal(await move(rules[2], { after: '' }), 'one two three');
assert.equal(await move(rules[1], { before: rules[0].id }), 'two one three');
assert.equal((await all(rooms.rules.delete(rules[0].id, { zone_id, waiting_room_id }))).length, 2);
assert.equal((await all(rooms.rules.update(room.id, { zone_id, rules: [{ action, expression: 'not ssl' }] })))[0].expression, 'not ssl');

// Status, preview, lists.
assert.deepEqual(await rooms.statuses.get(room.id, { zone_id }), {
  status: 'not_queueing', event_id: '', estimated_queued_users: 0, estimated_total_active_users: 0, max_estimated_time_minutes: 0,
});
const { preview_url } = await rooms.page.preview({ zone_id, custom_html: '<p>{{waitTime}} minutes' });
assert.match(await (await fetch(preview_url + '?waitTime=42')).text(), /<p>42 minutes/);
const list = await client.rules.lists.create({ account_id, name: 'office', kind: 'ip' });
const { operation_id } = await client.rules.lists.items.create(list.id, { account_id, body: [{ ip: '192.0.2.7' }] });
assert.equal((await client.rules.lists.bulkOperations.get(operation_id, { account_id })).status, 'completed');
assert.deepEqual((await all(client.rules.lists.items.list(list.id, { account_id }))).map((i) => i.ip), ['192.0.2.7']);
await all(rooms.rules.update(room.id, { zone_id, rules: [{ action, expression: 'ip.src in $office' }] }));
await all(rooms.rules.update(room.id, { zone_id, rules: [] }));
await client.rules.lists.delete(list.id, { account_id });

// What is refused, once.
await refused(() => rooms.create({ ...least, name: 'x', path: '/x', new_users_per_minute: 301 }), 400, 1002);
await refused(() => rooms.create({ ...least, path: '/x' }), 400, 1002);
await refused(() => rooms.rules.create(room.id, { zone_id, rules: { action, expression: 'http.host eq' } }), 400);
await refused(() => rooms.get('0'.repeat(32), { zone_id }), 404, 1001);
await refused(() => new Cloudflare({ apiToken: 'x'.repeat(40), apiKey: null, apiEmail: null, fetch: (...a) => { sent++; return fetch(...a); } }).waitingRooms.get(room.id, { zone_id }), 403);

// The end.
for (const r of await all(rooms.list({ zone_id }))) assert.deepEqual(await rooms.delete(r.id, { zone_id }), { id: r.id });
await refused(() => rooms.get(room.id, { zone_id }), 404, 1001);
assert.equal((await client.zones.delete({ zone_id })).id, zone_id);
console.log(`lived, ${sent} requests`);
