import { useEffect, useState } from 'preact/hooks'
import { get, patch } from '../core/api'
import { inOrder, compact, count, duration, full, number } from '../core/format'
import { newcomer } from '../core/forecast'
import { useMinutes } from '../core/history'
import { samplesOf, useLive, type Room } from '../core/live'
import { covers, nextEvent, publishedPath, roomHref, stateOf, urgency } from '../core/room'
import type { PageProps } from '../core/page'
import { go, setQuery } from '../core/router'
import { may } from '../core/session'
import { Bar, Button, Card, Chart, Choice, confirm, done, Empty, Head, Pill, Skeleton, Switch, Table } from '../ui'
import './overview.css'
import './pages.css'

// What was recorded is asked for anew so often, in seconds.
const every = 60
// With more rooms than that, the line of the last hour is not asked for each.
const few = 12
// With more rooms than that, they can be searched and filtered.
const glance = 3

const filters: { value: string; text: string; has: (r: Room, now: number) => boolean }[] = [
  { value: '', text: 'All', has: () => true },
  { value: 'queueing', text: 'Queueing', has: (r) => !!r.status?.waiting },
  { value: 'stopped', text: 'Stopped or failing', has: (r) => ['hold', 'bad'].includes(stateOf(r).tone) },
  { value: 'event', text: 'Event today', has: (r, now) => (nextEvent(r, now)?.begins ?? Infinity) < now + 86400 },
  { value: 'off', text: 'Off', has: (r) => stateOf(r).tone === 'off' },
]

export function Overview({ query }: PageProps) {
  const { rooms, known, at } = useLive()
  const waits = useWaits()
  const make = (may('edit') || rooms.some((r) => may('edit', r.zone.id))) && <Button kind="main" icon="plus" href="/new">New room</Button>
  if (!known) return <><Head title="Overview" /><Card><Skeleton lines={5} /></Card></>
  if (!rooms.length)
    return (
      <>
        <Head title="Overview" />
        <Card>
          <Empty icon="overview" title="No room yet" action={make}>
            A room admits as many visitors as your application can serve and keeps the others in a queue. Five fields define a room, and it works right away.
          </Empty>
        </Card>
      </>
    )
  const sum = (pick: (r: Room) => number) => rooms.reduce((n, r) => n + pick(r), 0)
  const active = sum((r) => r.status?.active_users ?? 0)
  const text = query.get('q') ?? ''
  const filter = filters.find((f) => f.value === query.get('show')) ?? filters[0]
  const shown = rooms.filter((r) => filter.has(r, at) && (r.name + ' ' + r.zone.name + ' ' + covers(r, 50)).toLowerCase().includes(text.trim().toLowerCase()))
    .sort((a, b) => inOrder(a.name, b.name))
  return (
    <>
      <Head title="Overview" lead={<>{count(rooms.length, 'room')} · <b>{number(sum((r) => r.status?.waiting ?? 0))}</b> waiting · <b>{number(active)}</b> active {active === 1 ? 'user' : 'users'}</>}>{make}</Head>
      {rooms.length > glance && (
        <div class="row between">
          <Choice small label="Show" value={filter.value} onChange={(v) => setQuery({ show: v || null }, { replace: true })}
            options={filters.map((f) => ({ value: f.value, text: `${f.text} ${number(rooms.filter((r) => f.has(r, at)).length)}` }))} />
          <input type="search" class="filter" aria-label="Search" placeholder="Name, zone or host" value={text} onInput={(e) => setQuery({ q: e.currentTarget.value || null }, { replace: true })} />
        </div>
      )}
      <Card flush class="rooms-table">
        <Table
          caption="Rooms"
          rows={shown}
          sort={-1}
          id={(r) => r.id}
          onRow={(r) => go(roomHref(r))}
          columns={[
            { title: 'Room', name: true, by: (r) => r.name, cell: (r) => <><a class="strong" href={roomHref(r)}>{r.name}</a><span class="quiet below">{covers(r, 1)}</span></> },
            { title: 'State', by: urgency, cell: (r) => <State room={r} /> },
            { title: 'Active users', by: (r) => (r.status?.active_users ?? 0) / Math.max(1, r.status?.total_active_users ?? 1), cell: (r) => r.status ? <span class="gauge"><span>{compact(r.status.active_users)} <span class="quiet">of {compact(r.status.total_active_users)}</span></span><Bar value={r.status.active_users} of={r.status.total_active_users} label={`Active users of ${r.name}`} /></span> : '–' },
            { title: 'Waiting', figure: true, by: (r) => r.status?.waiting ?? 0, cell: (r) => <span class={r.status?.waiting ? 'big' : 'quiet'}>{number(r.status?.waiting)}</span> },
            { title: 'New users per minute', figure: true, by: (r) => r.status?.admitted_last_minute ?? 0, cell: (r) => <>{number(r.status?.admitted_last_minute)} <span class="quiet below">of {compact(r.status?.new_users_per_minute)}</span></> },
            {
              title: 'Wait', figure: true, by: (r) => r.status?.wait_of_newcomer_seconds ?? -1,
              cell: (r) => <>{r.status?.waiting ? newcomer(r.status) : <span class="quiet">none</span>}{waits[r.id] && <span class="quiet below" title={`Of the visitors admitted during the last hour, half waited at most ${duration(waits[r.id].half)}, and 5 % longer than ${duration(waits[r.id].most)}`}>typically {duration(waits[r.id].half)}<br />5 % over {duration(waits[r.id].most)}</span>}</>,
            },
            { title: 'Next event', by: (r) => nextEvent(r, at)?.begins ?? Infinity, cell: (r) => <Next room={r} now={at} /> },
            { title: 'Last hour', wide: true, cell: (r) => <Spark room={r} recorded={rooms.length <= few} /> },
            { title: 'Queue all', cell: (r) => <QueueAll room={r} /> },
            { title: 'On', cell: (r) => <On room={r} /> },
          ]}
        />
      </Card>
      {!shown.length && <p class="quiet">No room matches.</p>}
    </>
  )
}

function State({ room }: { room: Room }) {
  const s = stateOf(room)
  return <Pill tone={s.tone} title={s.why}>{s.word}</Pill>
}

/** The event that runs, with a green dot, or comes next. */
function Next({ room, now }: { room: Room; now: number }) {
  const e = nextEvent(room, now)
  if (!e) return <span class="quiet">none</span>
  return <><span class="next" title={e.name}>{e.on && <span class="live-dot" aria-hidden="true" />}<a href={roomHref(room, 'events')}>{e.name}</a></span>{e.words.map((w) => <span key={w} class="quiet below moment" title={full(e.begins)}>{w}</span>)}</>
}

/** Settings of a room of the configuration file are changed there. */
const fixed = (r: Room) => r.file || !may('edit', r.zone.id, r.id)

function QueueAll({ room }: { room: Room }) {
  const set = (on: boolean) => patch(publishedPath(room), { queue_all: on })
  const turn = async (on: boolean) => {
    if (on && !(await confirm({ title: `Queue all: ${room.name}?`, body: <p>Every visitor without a session waits, even if there is room. Active users stay.</p>, action: 'Queue all' }))) return
    await set(on)
    done(`${room.name}: queue all is ${on ? 'on' : 'off'}.`, () => set(!on))
  }
  return <Switch label={`Queue all: ${room.name}`} value={room.queue_all} disabled={fixed(room)} onChange={turn} />
}

function On({ room }: { room: Room }) {
  const set = (on: boolean) => patch(publishedPath(room), { suspended: !on })
  const turn = async (on: boolean) => {
    if (!on && !(await confirm({ title: `Suspend ${room.name}?`, body: <p>Requests bypass the room and are not counted: the origin gets all of them. {room.status?.waiting ? `${count(room.status.waiting, 'visitor')} in the queue would reach it at once.` : ''}</p>, action: 'Suspend', danger: true }))) return
    await set(on)
    done(`${room.name} is ${on ? 'on' : 'suspended'}.`, () => set(!on))
  }
  return <Switch label={`On: ${room.name}`} value={!room.suspended} disabled={fixed(room)} onChange={turn} />
}

/** How long those of the last hour waited: half of them no longer than that, and 95 of 100. */
function useWaits(): Record<string, { half: number; most: number }> {
  const [waits, set] = useState<Record<string, { half: number; most: number }>>({})
  useEffect(() => {
    const ask = () => {
      const now = Date.now()
      const query = new URLSearchParams({ from: new Date(now - 3_600_000).toISOString(), to: new Date(now).toISOString() })
      get<{ id: string; total: Record<string, number | null> }[]>(`/anteroom/v1/analytics?${query}&per_page=1000`)
        .then((rows) => set(Object.fromEntries(rows.flatMap((r) => (r.total.waited_p50 == null ? [] : [[r.id, { half: r.total.waited_p50, most: r.total.waited_p95 ?? r.total.waited_p50 }]])))))
        .catch(() => {}) // nothing is recorded
    }
    ask()
    const timer = setInterval(() => !document.hidden && ask(), every * 1000)
    return () => clearInterval(timer)
  }, [])
  return waits
}

function Spark({ room, recorded }: { room: Room; recorded: boolean }) {
  const now = samplesOf(room.id)
  const [opened] = useState(() => Math.floor(now[0]?.at ?? Date.now() / 1000))
  // Minutes without anybody are not recorded: the line runs through.
  const list = [...useMinutes(room, recorded ? 3600 : 0, opened), ...now]
  return <Chart bare height={34} title={`Waiting in ${room.name}`} times={list.map((s) => s.at)} from={recorded ? opened - 3600 : undefined} series={[{ title: 'waiting', values: list.map((s) => s.waiting), color: '--c2', kind: 'area' }]} />
}
