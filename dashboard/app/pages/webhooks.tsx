import { useState } from 'preact/hooks'
import type { PageProps } from '../core/page'
import { call, patch, post, Problem, useAsk } from '../core/api'
import { ago, full, moment, number } from '../core/format'
import { useRooms } from '../core/live'
import type { Tone } from '../core/room'
import { setQuery } from '../core/router'
import { may } from '../core/session'
import { Button, Card, confirm, curl, Dialog, done, Empty, Failed, Head, Named, Names, Note, NumberField, Pill, SelectField, Skeleton, Snippet, Table, tell, TextField, Toggle } from '../ui'
import { changes } from '../ui/diff'
import { deeds, ShownOnce, useList } from './parts'
import './pages.css'

interface Webhook {
  id: string
  name: string
  url: string
  format: string
  events: string[]
  zone: string | null
  room: string | null
  longer_than: number
  minutes_before: number
  saturated_minutes: number
  enabled: boolean
  created_by: string
  created_on: string
  secrets: { prefix: string; created_on: string; expires_on: string | null }[]
}

type Spec = Pick<Webhook, 'name' | 'url' | 'format' | 'events' | 'zone' | 'room' | 'longer_than' | 'minutes_before' | 'saturated_minutes' | 'enabled'>

interface Delivery {
  id: string
  type: string
  text: string
  created_on: string
  state: 'pending' | 'delivered' | 'failed'
  attempts: number
  status: number | null
  error: string | null
  milliseconds: number
  last_attempt_on: string | null
  next_attempt_on: string | null
}

const path = '/anteroom/v1/webhooks'

const events: [string, string][] = [
  ['room.queueing', 'Visitors have to wait'], ['room.recovered', 'The queue is empty again'], ['room.queue_longer', 'The queue is longer than a given number'], ['room.event_starting', 'An event is about to start'],
  ['room.stuck', 'Visitors wait although slots are free'], ['room.limit_saturated', 'A limit has been reached for a while'], ['config.changed', 'The configuration changed'], ['visitor.called', 'It is the turn of a visitor who asked for a message'],
]

/** Who is told what happens. */
export function Webhooks({ query }: PageProps) {
  const list = useList<Webhook>(path)
  const rooms = useRooms()
  const [making, make] = useState<Webhook | 'new' | null>(null)
  const [secret, show] = useState<{ name: string; secret: string } | null>(null)
  const chosen = list.data?.find((w) => w.id === query.get('webhook'))
  const can = may('edit') || rooms.some((r) => may('edit', r.zone.id, r.id))
  const where = (w: Webhook) => (w.room ? rooms.find((r) => r.id === w.room)?.name ?? 'one room' : w.zone ? rooms.find((r) => r.zone.id === w.zone)?.zone.name ?? 'one zone' : 'all rooms')

  const turn = (w: Webhook) => async () => {
    await patch(`${path}/${w.id}`, { enabled: !w.enabled })
    list.reload()
    done(`${w.name} ${w.enabled ? 'disabled' : 'enabled'}`, async () => { await patch(`${path}/${w.id}`, { enabled: w.enabled }); list.reload() })
  }
  const rotate = (w: Webhook) => async () => {
    if (!(await confirm({ title: `Rotate the secret of ${w.name}?`, action: 'Rotate', body: <p>Both secrets sign for a day, so that you can update the receiver.</p> }))) return
    show({ name: w.name, secret: (await post<{ secret: string }>(`${path}/${w.id}/rotate`, { overlap_seconds: 86400 })).secret })
    list.reload()
  }
  const remove = (w: Webhook) => async () => {
    if (!(await confirm({ title: `Delete ${w.name}?`, danger: true, action: 'Delete the webhook', body: <p>Pending deliveries are dropped.</p> }))) return
    await call('DELETE', `${path}/${w.id}`)
    tell(`${w.name} deleted`)
    setQuery({ webhook: null })
    list.reload()
  }
  const test = (w: Webhook) => async () => {
    const d = await post<Delivery>(`${path}/${w.id}/test`)
    tell(d.state === 'delivered' ? `Delivered in ${number(d.milliseconds)} ms, response ${d.status}` : `Not delivered: ${d.error ?? d.state}`, d.state === 'delivered' ? 'ok' : 'bad')
    setQuery({ webhook: w.id })
  }
  return (
    <>
      <Head title="Webhooks" lead="Notify other systems. Deliveries are signed and retried for a day. Slack and Microsoft Teams work directly.">
        {can && <Button kind="main" icon="plus" onClick={() => make('new')}>New webhook</Button>}
      </Head>
      {list.error ? <Failed error={list.error} retry={list.reload} /> : !list.data ? <Skeleton lines={4} /> : !list.data.length ? (
        <Empty icon="webhook" title="No webhooks" action={can && <Button kind="main" onClick={() => make('new')}>New webhook</Button>}>Get a notification when a queue forms, gets long or stops moving, and when an event is about to start.</Empty>
      ) : (
        <Card flush>
          <Table caption="Webhooks" rows={list.data} id={(w) => w.id} columns={[
            { title: 'Name', name: true, by: (w) => w.name, cell: (w) => <><button type="button" class="link" onClick={() => setQuery({ webhook: w.id })}>{w.name}</button><span class="below quiet">{hostOf(w.url)}</span></> },
            { title: 'State', cell: (w) => <Pill tone={w.enabled ? 'ok' : 'off'}>{w.enabled ? 'On' : 'Off'}</Pill> },
            { title: 'Events', cell: (w) => (w.events.length ? `${number(w.events.length)} types` : 'all') },
            { title: 'Scope', cell: where },
            { title: 'Format', wide: true, cell: (w) => w.format },
            { title: deeds, cell: (w) => (
              <div class="actions end">
                <Button small onClick={test(w)}>Test</Button>
                <Button small kind="quiet" icon="edit" label={`Change ${w.name}`} onClick={() => make(w)} />
                <Button small kind="quiet" icon={w.enabled ? 'pause' : 'play'} label={`${w.enabled ? 'Disable' : 'Enable'} ${w.name}`} onClick={turn(w)} />
                <Button small kind="quiet" icon="refresh" label={`Rotate the secret of ${w.name}`} onClick={rotate(w)} />
                <Button small kind="quiet" icon="trash" label={`Delete ${w.name}`} onClick={remove(w)} />
              </div>
            ) },
          ]} />
        </Card>
      )}
      {chosen && <Deliveries key={chosen.id} webhook={chosen} />}
      {making && <Form webhook={making === 'new' ? undefined : making} rooms={rooms} onClose={() => make(null)} onSaved={(w) => { make(null); list.reload(); if (w.secret) show({ name: w.name, secret: w.secret }) }} />}
      {secret && (
        <ShownOnce title={`The secret of ${secret.name}`} saved="I have saved it" onClose={() => show(null)}>
          <Note tone="warn">This secret is shown only once. The receiver needs it to verify signatures.</Note>
          <Snippet parts={[{ title: 'Secret', text: secret.secret }]} />
        </ShownOnce>
      )}
    </>
  )
}

function hostOf(url: string) {
  try {
    return new URL(url).host
  } catch {
    return url
  }
}

const states: Record<Delivery['state'], { word: string; tone: Tone }> = { delivered: { word: 'Delivered', tone: 'ok' }, pending: { word: 'Pending', tone: 'busy' }, failed: { word: 'Failed', tone: 'bad' } }

function Deliveries({ webhook }: { webhook: Webhook }) {
  const asked = useAsk<Delivery[]>(`${path}/${webhook.id}/deliveries?per_page=100`, 5)
  return (
    <Card flush title={`Deliveries of ${webhook.name}`} actions={<Button small icon="cross" onClick={() => setQuery({ webhook: null })}>Close</Button>}>
      {asked.error && !asked.data ? <Failed error={asked.error} retry={asked.reload} /> : !asked.data ? <Skeleton /> : !asked.data.length ? <Empty icon="message" title="No deliveries yet">Press Test to send a test event.</Empty> : (
        <Table caption={`Deliveries of ${webhook.name}`} rows={asked.data} id={(d) => d.id} columns={[
          { title: 'When', cell: (d) => <span class="block" title={full(d.created_on)}>{moment(d.created_on)}</span> },
          { title: 'What', name: true, cell: (d) => <><code>{d.type}</code><span class="below">{d.text}</span></> },
          { title: 'State', cell: (d) => <Pill tone={states[d.state].tone}>{states[d.state].word}</Pill> },
          { title: 'Attempts', figure: true, cell: (d) => <>{number(d.attempts)}{d.next_attempt_on && <span class="below quiet">next {ago(d.next_attempt_on)}</span>}</> },
          { title: 'Response', cell: (d) => <>{d.status ?? '–'} <span class="quiet">{number(d.milliseconds)} ms</span>{d.error && <span class="below warned">{d.error}</span>}</> },
        ]} />
      )}
    </Card>
  )
}

interface FormProps {
  webhook?: Webhook
  rooms: ReturnType<typeof useRooms>
  onClose: () => void
  onSaved: (w: Webhook & { secret?: string }) => void
}

const fresh: Spec = { name: '', url: '', format: 'json', events: [], zone: null, room: null, longer_than: 1000, minutes_before: 15, saturated_minutes: 10, enabled: true }
const specOf = (w: Webhook): Spec => Object.fromEntries(Object.keys(fresh).map((k) => [k, w[k as keyof Webhook]])) as unknown as Spec

function Form({ webhook, rooms, onClose, onSaved }: FormProps) {
  const before = webhook ? specOf(webhook) : fresh
  const [w, set] = useState<Spec>(before)
  const [faults, fault] = useState<Record<string, string>>({})
  const put = (v: Partial<Spec>) => { set({ ...w, ...v }); fault({}) }
  const told = (e: string) => !w.events.length || w.events.includes(e)
  const body = webhook ? Object.fromEntries(changes(before as any, w as any).map((c) => [c.name, c.after])) : w
  const zones = [...new Map(rooms.map((r) => [r.zone.id, r.zone.name]))]
  const save = async () => {
    try {
      onSaved(webhook ? await patch(`${path}/${webhook.id}`, body) : await post(path, body))
      tell(`${w.name} saved`)
    } catch (e) {
      if (!(e instanceof Problem)) throw e
      fault(e.fields)
      tell(e.message, 'bad')
    }
  }
  return (
    <Dialog wide title={webhook ? `Change ${webhook.name}` : 'New webhook'} onClose={onClose}
      actions={<><Names /><Button onClick={onClose}>Cancel</Button><Button kind="main" disabled={!w.name.trim() || !w.url.trim()} onClick={save}>Save</Button></>}>
      <div class="fields">
        <TextField label="Name" name="name" required autofocus value={w.name} error={faults.name} onChange={(name) => put({ name })} />
        <TextField label="URL" name="url" type="url" required value={w.url} error={faults.url} placeholder="https://hooks.example.com/…" help="Must use TLS. It can contain a secret: only tokens that can edit this webhook show it." onChange={(url) => put({ url })} />
        <SelectField label="Format" name="format" value={w.format} error={faults.format} onChange={(format) => put({ format })} options={[{ value: 'json', text: 'JSON' }, { value: 'slack', text: 'Slack' }, { value: 'teams', text: 'Microsoft Teams' }]} />
        <SelectField label="Scope" name="zone" value={w.room ? `room:${w.room}` : w.zone ? `zone:${w.zone}` : ''} error={faults.zone ?? faults.room}
          onChange={(v) => { const [kind, id] = v.split(':'); put(kind === 'zone' ? { zone: id, room: null } : kind === 'room' ? { zone: rooms.find((r) => r.id === id)!.zone.id, room: id } : { zone: null, room: null }) }}
          options={[{ value: '', text: 'All rooms (admin)' }, ...zones.map(([id, name]) => ({ value: `zone:${id}`, text: `Zone ${name}` })), ...rooms.map((r) => ({ value: `room:${r.id}`, text: `Room ${r.name} (${r.zone.name})` }))]} />
      </div>
      <fieldset class="choices">
        <legend>Events <Named name="events" /></legend>
        <label><input type="checkbox" checked={!w.events.length} onChange={(e) => put({ events: e.currentTarget.checked ? [] : ['room.queueing', 'room.recovered'] })} /> all, including future types</label>
        {w.events.length > 0 && events.map(([type, words]) => (
          <label key={type}><input type="checkbox" checked={w.events.includes(type)} onChange={(e) => put({ events: e.currentTarget.checked ? [...w.events, type] : w.events.filter((x) => x !== type) })} /> {words} <Named name={type} /></label>
        ))}
        {faults.events && <p class="error">{faults.events}</p>}
      </fieldset>
      <div class="fields">
        {told('room.queue_longer') && <NumberField label="Queue longer than" name="longer_than" unit="visitors" min={1} value={w.longer_than} error={faults.longer_than} onChange={(n) => put({ longer_than: n ?? 0 })} />}
        {told('room.event_starting') && <NumberField label="Before an event" name="minutes_before" unit="minutes" min={1} value={w.minutes_before} error={faults.minutes_before} onChange={(n) => put({ minutes_before: n ?? 0 })} />}
        {told('room.limit_saturated') && <NumberField label="Limit reached for" name="saturated_minutes" unit="minutes" min={1} value={w.saturated_minutes} error={faults.saturated_minutes} onChange={(n) => put({ saturated_minutes: n ?? 0 })} />}
        <Toggle label="Enabled" name="enabled" value={w.enabled} onChange={(enabled) => put({ enabled })} />
      </div>
      <details><summary>As code</summary><Snippet parts={[{ title: 'curl', text: curl(webhook ? 'PATCH' : 'POST', path + (webhook ? `/${webhook.id}` : ''), body) }]} /></details>
    </Dialog>
  )
}
