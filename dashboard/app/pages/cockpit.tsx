import { useState } from 'preact/hooks'
import type { RoomPageProps } from '../core/page'
import { forecast, newcomer } from '../core/forecast'
import { ago, clock, count, duration, moment, number, percent } from '../core/format'
import { arrivals, holed, useMinutes } from '../core/history'
import { kept, samplesOf, useLive, type LaneStatus, type Room, type Sample } from '../core/live'
import { paceWhy } from '../core/pace'
import { roomHref } from '../core/room'
import { may } from '../core/session'
import { Bar, Button, Card, Chart, Note, Table } from '../ui'
import { Admit, Controls, Message, Remaining } from './cockpit-controls'
import { TryIt } from './cockpit-crowd'
import { Limits } from './cockpit-limits'
import { Origins } from './origin'
import './cockpit.css'

/** A room as it is this second, and the operator's hand on it. */
export function Cockpit({ room }: RoomPageProps) {
  const { at } = useLive()
  const [opened] = useState(() => Math.floor(samplesOf(room.id)[0]?.at ?? Date.now() / 1000))
  const samples = holed([...useMinutes(room, kept, opened), ...samplesOf(room.id)])
  const s = room.status
  const says = forecast(room, samplesOf(room.id), at)
  const held = room.controls.paused || !!s?.in_force?.queue_all
  const edits = may('edit', room.zone.id, room.id)
  return (
    <div class="cockpit">
      <section class="now" aria-label="Now">
        <p class="says">{says.head}</p>
        {says.more && <p class="quiet">{says.more}</p>}
        {s && paceWhy(s) && <Note tone="warn">{paceWhy(s)}</Note>}
        {room.controls.message && <p class="told"><span class="quiet">Message to the queue:</span> {room.controls.message}</p>}
      </section>
      {s && (
        <dl class="four">
          <Figure title="Active users" value={number(s.active_users)} of={number(s.total_active_users)} note={`${percent(s.active_users / s.total_active_users)} of the limit${s.offered ? `, ${number(s.offered)} called` : ''}`}>
            <Bar value={s.active_users} of={s.total_active_users} label="Active users, of the limit" />
          </Figure>
          <Figure title="Waiting" value={number(s.waiting)} note={s.dormant ? `and ${number(s.dormant)} not in touch` : s.oldest_waiting_since ? `the first for ${duration(at - Date.parse(s.oldest_waiting_since) / 1000)}` : 'the queue is empty'} strong={s.waiting > 0} />
          <Figure title="Admitted, last minute" value={number(s.admitted_last_minute)} of={number(s.new_users_per_minute)} note={`${percent(s.admitted_last_minute / s.new_users_per_minute)} of the limit`}>
            <Bar value={s.admitted_last_minute} of={s.new_users_per_minute} label="Admitted in the last minute, of the limit" />
          </Figure>
          <Figure title="Wait for new visitors" value={held ? 'no end' : s.waiting || s.wait_of_newcomer_seconds ? newcomer(s) : 'none'} note={held ? 'until you resume' : s.wait_of_newcomer_seconds ? `admitted at about ${clock(at + s.wait_of_newcomer_seconds)}` : s.waiting ? (s.wait_of_newcomer_at_least_seconds ? 'according to the limits, until sessions end' : 'not known yet') : 'admitted right away'} />
        </dl>
      )}
      <div class="halves">
        <div class="stack charts">
          {!!s?.lanes.length && <Lanes lanes={s.lanes} />}
          <Flow samples={samples} now={at} room={room} />
          <Origins room={room} />
          {edits && <InForce room={room} />}
        </div>
        {edits ? (
          <div class="stack hand">
            <Controls room={room} />
            <Limits room={room} />
            <Message room={room} />
            <Admit room={room} />
            <Remaining room={room} />
            <TryIt room={room} />
          </div>
        ) : (
          <div class="stack">
            <Note>Your token can read this room, but not change it.</Note>
            <InForce room={room} />
          </div>
        )}
      </div>
    </div>
  )
}

/** The lanes of the queue, each with what the room promises it. */
function Lanes({ lanes }: { lanes: LaneStatus[] }) {
  return (
    <Card flush title="Lanes" lead="In the order in which visitors are called. A share is what a lane gets at least while visitors wait in it.">
      <Table caption="Lanes" rows={lanes} id={(l) => String(l.priority)} columns={[
        { title: 'Lane', name: true, cell: (l) => <><b>{l.name ?? 'All others'}</b><span class="below quiet">priority {l.priority}</span></> },
        { title: 'Waiting', figure: true, cell: (l) => number(l.waiting) },
        { title: 'Active', figure: true, cell: (l) => number(l.active_users) },
        { title: 'New visitors wait', figure: true, cell: (l) => (l.wait_of_newcomer_seconds == null ? 'not known yet' : duration(l.wait_of_newcomer_seconds)) },
        { title: 'Share', figure: true, cell: (l) => (l.share ? l.share + '%' : '') },
        { title: 'Reserved', figure: true, cell: (l) => (l.reserved ? l.reserved + '%' : '') },
      ]} />
    </Card>
  )
}

function Figure({ title, value, of, note, strong, children }: { title: string; value: string; of?: string; note: string; strong?: boolean; children?: preact.ComponentChildren }) {
  return (
    <div class={'figure-card' + (strong ? ' strong' : '')}>
      <dt>{title}</dt>
      <dd>
        <span class="value">{value}{of && <span class="of"> / {of}</span>}</span>
        {children}
        <span class="below quiet">{note}</span>
      </dd>
    </div>
  )
}

function Flow({ samples, now, room }: { samples: Sample[]; now: number; room: Room }) {
  const times = samples.map((s) => s.at)
  const from = Math.min(Math.max(now - kept, times[0] ?? now), now - 60)
  const common = { times, from, to: now, sync: 'cockpit-' + room.id, height: 190 }
  const gap = (n: number) => (Number.isNaN(n) ? null : n)
  return (
    <Card title={`The last ${count(Math.ceil(Math.min(kept, now - from) / 60), 'minute')}`} lead="Visitors who left immediately are not counted." actions={<Button small kind="quiet" icon="chart" href={roomHref(room, 'analytics')}>Longer ranges</Button>}>
      <Chart {...common} title="Active users and queue" series={[
        { title: 'Waiting', values: samples.map((s) => gap(s.waiting)), color: '--c2', kind: 'area' },
        { title: 'Active users', values: samples.map((s) => gap(s.active)), color: '--c1' },
        { title: 'Limit', values: samples.map((s) => gap(s.limit)), color: '--climit', kind: 'limit' },
      ]} />
      <Chart {...common} title="Per minute" series={[
        { title: 'Arrived', values: arrivals(samples), color: '--c4' },
        { title: 'Admitted', values: samples.map((s) => gap(s.admitted)), color: '--c3', kind: 'area' },
        { title: 'Limit', values: samples.map((s) => gap(s.pace)), color: '--climit', kind: 'limit' },
      ]} />
    </Card>
  )
}

const methods: Record<string, string> = { fifo: 'first come, first served', random: 'in random order', passthrough: 'every visitor is admitted', reject: 'new visitors are turned away' }

function InForce({ room }: { room: Room }) {
  const s = room.status, f = s?.in_force
  if (!s || !f) return null
  const rows: [string, preact.ComponentChildren][] = [
    ['Order', methods[f.queueing_method] ?? f.queueing_method],
    ['Session', `${duration(f.session_duration_seconds)} ${f.disable_session_renewal ? 'from admission' : 'after the last request'}`],
    ['Event', f.event ? <>{f.event.name}, {f.phase === 'prequeueing' ? `starts ${ago(f.event.start)}` : `until ${moment(f.event.end)}`}</> : room.events ? 'none at the moment' : 'none planned'],
    ['Next change', f.until ? <span title={moment(f.until)}>{ago(f.until)}</span> : 'none planned'],
    ['Open streams', number(s.streams)],
    ['Bypass rules', number(room.rules)],
  ]
  return (
    <Card title="In force">
      <dl class="terms">{rows.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
    </Card>
  )
}
