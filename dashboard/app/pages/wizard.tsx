import { useMemo, useRef, useState } from 'preact/hooks'
import { call, Problem, useAsk } from '../core/api'
import { languageName, languages } from '../core/languages'
import { useRooms } from '../core/live'
import { roomHref } from '../core/room'
import { go } from '../core/router'
import { may } from '../core/session'
import { Button, Card, Choice, curl, done, Head, Names, Note, NumberField, SelectField, Snippet, TextArea, TextField, Toggle } from '../ui'
import { zonesOf } from './model/zones'
import { roomInTerraform, zoneInTerraform } from './model/snippet'
import { useUnsaved } from './parts'
import './wizard.css'

interface Draft {
  name: string
  host: string
  path: string
  total_active_users: number | null
  new_users_per_minute: number | null
  description: string
  queueing_method: 'fifo' | 'random' | 'passthrough' | 'reject'
  session_duration: number | null
  disable_session_renewal: boolean
  queue_all: boolean
  protect: boolean
  json_response_enabled: boolean
  default_template_language: string
  queueing_status_code: '200' | '202' | '429'
}

const empty: Draft = {
  name: '', host: '', path: '/', total_active_users: 300, new_users_per_minute: 200, description: '', queueing_method: 'fifo', session_duration: 5,
  disable_session_renewal: false, queue_all: false, protect: true, json_response_enabled: false, default_template_language: 'en-US', queueing_status_code: '200',
}

const steps = ['Room', 'Customize', 'Review'] as const
const firstStep = ['name', 'host', 'path', 'total_active_users', 'new_users_per_minute']

const within = (host: string, zone: string) => zone === '*' || host === zone || host.endsWith('.' + zone)

/** Five fields make a room; what else it can be told stands behind them. */
export function Wizard() {
  const [step, to] = useState(0)
  const [d, set] = useState(empty)
  const [zoneName, choose] = useState<string | null>(null)
  const [faults, fail] = useState<Record<string, string>>({})
  const [problem, say] = useState<string | null>(null)
  const top = useRef<HTMLDivElement>(null)
  useUnsaved(d !== empty)
  const zones = useAsk<{ id: string; name: string }[]>('/anteroom/v1/zones?per_page=1000')
  const rooms = useRooms()
  const put = (part: Partial<Draft>) => {
    set((now) => ({ ...now, ...part }))
    fail((f) => Object.fromEntries(Object.entries(f).filter(([name]) => !(name in part))))
  }
  const host = d.host.trim().toLowerCase().replace(/^https?:\/\//, '').replace(/\/.*$/, '').replace(/:\d+$/, '')
  const known = useMemo(() => (zones.data ?? []).filter((z) => host && z.name !== '*' && within(host, z.name)).toSorted((a, b) => b.name.length - a.name.length), [zones.data, host])
  const names = [...new Set([...known.map((z) => z.name), ...zonesOf(host)])]
  const zone = zoneName && names.includes(zoneName) ? zoneName : (names[0] ?? '')
  const existing = zones.data?.find((z) => z.name === zone)
  const body = {
    name: d.name.trim(), host, path: d.path.trim() || '/', total_active_users: d.total_active_users, new_users_per_minute: d.new_users_per_minute,
    ...(d.description && { description: d.description }), ...(d.queueing_method !== 'fifo' && { queueing_method: d.queueing_method }),
    ...(d.session_duration !== 5 && { session_duration: d.session_duration }), ...(d.disable_session_renewal && { disable_session_renewal: true }),
    ...(d.queue_all && { queue_all: true }), ...(d.protect && { protect: true, protect_return: '10m0s' }), ...(d.json_response_enabled && { json_response_enabled: true }),
    ...(d.default_template_language !== 'en-US' && { default_template_language: d.default_template_language }),
    ...(d.queueing_status_code !== '200' && { queueing_status_code: Number(d.queueing_status_code) }),
  }
  const move = (n: number) => {
    to(n)
    top.current?.querySelector<HTMLElement>('h2')?.focus()
  }
  // What can be told without the server; it has the last word.
  const check = () => {
    const f: Record<string, string> = {}
    if (!/^[\w-]{1,64}$/.test(body.name)) f.name = 'has 1 to 64 letters, digits, _ and -'
    else if (rooms.some((r) => r.name === body.name && r.zone.name === zone)) f.name = `there is a room with this name in ${zone}`
    if (!host) f.host = 'is missing'
    else if (host.startsWith('*.')) f.host = 'names one host; make a room for each, or use * for every host'
    if (!body.path.startsWith('/')) f.path = 'begins with /'
    if (d.total_active_users == null) f.total_active_users = 'is missing'
    if (d.new_users_per_minute == null) f.new_users_per_minute = 'is missing'
    else if (d.total_active_users != null && d.new_users_per_minute > d.total_active_users) f.new_users_per_minute = 'is at most the number of active users'
    fail(f)
    return !Object.keys(f).length
  }
  const next = (n: number) => {
    say(null)
    if (n === 0 || check()) move(n)
    else move(0)
  }
  const make = async () => {
    say(null)
    if (!check()) return move(0)
    let zoning = false
    const create = async (api: string) => {
      zoning = !existing
      const z = existing ?? (await call<{ id: string; name: string }>('POST', `${api}/zones`, { name: zone })).result
      zoning = false
      const path = `${api}/zones/${z.id}/waiting_rooms`
      return { z, path, made: (await call<{ id: string; name: string }>('POST', path, body)).result }
    }
    try {
      // For a room that is refused, no zone is to be created.
      if (!existing) await create(`/anteroom/v1/rehearsals/${Math.random().toString(36).slice(2)}/client/v4`)
      const { z, path, made } = await create('/client/v4')
      go(roomHref({ name: made.name, zone: z }), { replace: true })
      done(`${made.name} created.`, async () => {
        await call('DELETE', `${path}/${made.id}`)
        go('/')
      })
    } catch (e) {
      if (!(e instanceof Problem)) throw e
      zones.reload()
      // The name of a zone comes from the host.
      const at: Record<string, string> = zoning && e.fields.name ? { host: e.fields.name } : e.fields
      fail(at)
      say(at === e.fields ? e.message : `host: ${at.host}`)
      const wrong = Object.keys(at)
      if (wrong.some((n) => firstStep.includes(n))) move(0)
      else if (wrong.length) move(1)
    }
  }
  const path = `/client/v4/zones/${existing?.id ?? '$ZONE'}/waiting_rooms`
  const makeZone = existing ? '' : `ZONE=$(${curl('POST', '/anteroom/v1/zones', { name: zone })} | jq -r .result.id)\n`
  const newZone = existing ? null : zoneInTerraform(zone)
  const terraform = [newZone?.text, roomInTerraform(existing?.id ?? newZone!.id, body)].filter(Boolean).join('\n\n')
  if (!may('edit') && !rooms.some((r) => may('edit', r.zone.id))) return <><Head title="New room" /><Note tone="warn" title="Your token cannot create rooms">It needs the edit permission for a zone or for everything.</Note></>
  return (
    <div class="wizard" ref={top}>
      <Head title="New room" lead="Five fields define a room. It works as soon as you create it, and you can change everything later."><Names /></Head>
      <ol class="steps" aria-label="Steps">
        {steps.map((s, i) => (
          <li key={s} class={i < step ? 'past' : ''} aria-current={i === step ? 'step' : undefined}>
            <button type="button" onClick={() => next(i)}><span class="n" aria-hidden="true">{i + 1}</span>{s}</button>
          </li>
        ))}
      </ol>
      {problem && <Note tone="bad" title="The room was not created">{problem}</Note>}
      {step === 0 && (
        <form onSubmit={(e) => { e.preventDefault(); next(2) }} noValidate>
          <Card>
            <h2 tabIndex={-1}>What it protects</h2>
            <div class="fields">
              <TextField label="Name" name="name" required autofocus value={d.name} onChange={(name) => put({ name })} placeholder="checkout" maxLength={64} error={faults.name} help="Letters, digits, _ and -" />
              <TextField label="Host" name="host" required value={d.host} onChange={(v) => put({ host: v })} placeholder="shop.example.com" error={faults.host} help={zone ? <>{existing ? 'In the zone' : 'Creates the zone'} <strong>{zone}</strong></> : <>The host name of your application, or <code>*</code> for every host</>} />
              <TextField label="Path" name="path" value={d.path} onChange={(v) => put({ path: v })} placeholder="/checkout" error={faults.path} help="This path and everything below it; / is the whole host" />
            </div>
          </Card>
          <Card>
            <h2>Limits</h2>
            <div class="fields">
              <NumberField label="Active users" name="total_active_users" required unit="visitors" min={0} value={d.total_active_users} onChange={(v) => put({ total_active_users: v })} error={faults.total_active_users} help="As many as your application can serve well. Never exceeded." />
              <NumberField label="New users per minute" name="new_users_per_minute" required unit="visitors" min={0} value={d.new_users_per_minute} onChange={(v) => put({ new_users_per_minute: v })} error={faults.new_users_per_minute} help="As many as login and search can handle. Never exceeded." />
            </div>
          </Card>
          <div class="actions finish">
            <Button onClick={() => next(1)}>Customize</Button>
            <Button kind="main" type="submit">Review</Button>
          </div>
        </form>
      )}
      {step === 1 && (
        <form onSubmit={(e) => { e.preventDefault(); next(2) }} noValidate>
          <Card>
            <h2 tabIndex={-1}>Queue</h2>
            <div class="stack">
              <div class="field">
                <span class="label">Order <code>queueing_method</code></span>
                <Choice label="Order" value={d.queueing_method} onChange={(v) => put({ queueing_method: v })} options={[{ value: 'fifo', text: 'FIFO' }, { value: 'random', text: 'Random' }, { value: 'passthrough', text: 'Passthrough' }, { value: 'reject', text: 'Reject' }]} />
                <p class="help">{{ fifo: 'First come, first served.', random: 'Random order: every waiting visitor has the same chance.', passthrough: 'Every visitor is admitted and counted.', reject: 'No queue: when the room is full, visitors are turned away.' }[d.queueing_method]}</p>
              </div>
              <Toggle label="Queue all from the start" name="queue_all" value={d.queue_all} onChange={(v) => put({ queue_all: v })} help="Every visitor without a session waits until you turn it off on the room's page." />
            </div>
          </Card>
          <Card>
            <h2>Sessions</h2>
            <div class="fields">
              <NumberField label="Session" name="session_duration" unit="minutes" min={1} max={1440} value={d.session_duration} onChange={(v) => put({ session_duration: v })} error={faults.session_duration} help={d.disable_session_renewal ? 'From admission' : 'After the last request'} />
              <Toggle label="Sessions end after their duration" name="disable_session_renewal" value={d.disable_session_renewal} onChange={(v) => put({ disable_session_renewal: v })} help="Requests do not renew a session." />
            </div>
          </Card>
          <Card>
            <h2>Your application</h2>
            <div class="fields">
              <Toggle label="Protect the origin" name="protect" value={d.protect} onChange={(protect) => put({ protect })} help="Admit fewer visitors while more than 10% of its requests fail, and no one new while it is down. Visitors who lose their session to an outage come back first for 10 minutes." />
            </div>
          </Card>
          <Card>
            <h2>The waiting page</h2>
            <div class="fields">
              <SelectField label="Language" name="default_template_language" value={d.default_template_language} onChange={(v) => put({ default_template_language: v })} options={languages.map((l) => ({ value: l, text: languageName(l) }))} error={faults.default_template_language} help="For visitors whose browser asks for no available language" />
              <SelectField label="Status code" name="queueing_status_code" value={d.queueing_status_code} onChange={(v) => put({ queueing_status_code: v })} options={[{ value: '200', text: '200 OK' }, { value: '202', text: '202 Accepted' }, { value: '429', text: '429 Too many requests' }]} />
              <Toggle label="JSON for apps" name="json_response_enabled" value={d.json_response_enabled} onChange={(v) => put({ json_response_enabled: v })} help="Clients that ask for JSON get the waiting page as JSON." />
            </div>
            <TextArea label="Description" name="description" rows={2} maxLength={1000} value={d.description} onChange={(v) => put({ description: v })} error={faults.description} help="For your colleagues" />
          </Card>
          <div class="actions finish">
            <Button onClick={() => move(0)}>Back</Button>
            <Button kind="main" type="submit">Review</Button>
          </div>
        </form>
      )}
      {step === 2 && (
        <>
          <Card>
            <h2 tabIndex={-1}>Review</h2>
            <dl class="terms">
              <div><dt>Room</dt><dd><strong>{body.name}</strong></dd></div>
              <div><dt>Covers</dt><dd>{host}{body.path === '/' ? ' and everything on it' : `${body.path} and everything below it`}</dd></div>
              <div><dt>Active users</dt><dd>{d.total_active_users}</dd></div>
              <div><dt>New users per minute</dt><dd>{d.new_users_per_minute}</dd></div>
              <div><dt>Session</dt><dd>{d.session_duration} min {d.disable_session_renewal ? 'from admission' : 'after the last request'}</dd></div>
              <div><dt>Order</dt><dd>{{ fifo: 'first come, first served', random: 'in random order', passthrough: 'every visitor is admitted', reject: 'no queue: visitors are turned away when the room is full' }[d.queueing_method]}</dd></div>
              <div><dt>Origin</dt><dd>{d.protect ? 'protected: fewer visitors while it returns errors, no one new while it is down' : 'not protected: visitors are admitted while it is down'}</dd></div>
            </dl>
            {names.length > 1 && (
              <SelectField label="Zone" name="zone" value={zone} onChange={choose} options={names.map((n) => ({ value: n, text: zones.data?.some((z) => z.name === n) ? n : `${n} (new)` }))} help="The domain that the room belongs to. Token permissions and the crawler bypass apply to zones." />
            )}
            {!existing && <Note>The zone {zone} will be created too.</Note>}
            {d.queue_all && <Note tone="warn">All visitors will wait until you turn off Queue all.</Note>}
          </Card>
          <Snippet parts={[{ title: 'curl', text: makeZone + curl('POST', path, body) }, { title: 'Terraform', text: terraform }, { title: 'JSON', text: JSON.stringify(body, null, 2) }]} />
          <div class="actions finish">
            <Button onClick={() => move(1)}>Customize</Button>
            <Button onClick={() => move(0)}>Back</Button>
            <Button kind="main" icon="check" onClick={make}>Create room</Button>
          </div>
        </>
      )}
    </div>
  )
}
