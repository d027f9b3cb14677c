import type { Room } from '../core/live'
import { samplesOf, useLive } from '../core/live'
import { compact, count, duration, number } from '../core/format'
import { covers, roomHref, stateOf } from '../core/room'
import { go } from '../core/router'
import { may } from '../core/session'
import { Bar, Button, Card, Chart, Empty, Head, Pill, Skeleton, Table } from '../ui'

export function Overview() {
  const { rooms, known } = useLive()
  const canMake = may('edit') || rooms.some((r) => may('edit', r.zone.id))
  const make = canMake && <Button kind="main" icon="plus" href="/new">New room</Button>
  if (!known) return <><Head title="Overview" /><Card><Skeleton lines={5} /></Card></>
  if (!rooms.length)
    return (
      <Empty icon="overview" title="No room yet" action={make}>
        A room lets in as many visitors as your site can serve, and keeps the others in line. Five fields make one; it is in force at once.
      </Empty>
    )
  const sum = (pick: (r: Room) => number) => rooms.reduce((n, r) => n + pick(r), 0)
  const waiting = sum((r) => r.status?.waiting ?? 0), inside = sum((r) => r.status?.active_users ?? 0)
  return (
    <>
      <Head title="Overview" lead={<>{count(rooms.length, 'room')} · {number(waiting)} waiting · {number(inside)} inside</>}>{make}</Head>
      <Card flush>
        <Table
          caption="Rooms"
          rows={rooms}
          id={(r) => r.id}
          onRow={(r) => go(roomHref(r))}
          columns={[
            { title: 'Room', name: true, by: (r) => r.name, cell: (r) => <><a class="strong" href={roomHref(r)}>{r.name}</a><span class="quiet below">{covers(r, 1)}</span></> },
            { title: 'State', by: (r) => stateOf(r).word, cell: (r) => { const s = stateOf(r); return <Pill tone={s.tone} title={s.why}>{s.word}</Pill> } },
            { title: 'Inside', by: (r) => (r.status?.active_users ?? 0) / Math.max(1, r.status?.total_active_users ?? 1), cell: (r) => r.status ? <span class="gauge"><span>{compact(r.status.active_users)} <span class="quiet">of {compact(r.status.total_active_users)}</span></span><Bar value={r.status.active_users} of={r.status.total_active_users} label={`Inside ${r.name}`} /></span> : '–' },
            { title: 'Waiting', figure: true, by: (r) => r.status?.waiting ?? 0, cell: (r) => <b class={r.status?.waiting ? '' : 'quiet'}>{number(r.status?.waiting)}</b> },
            { title: 'New a minute', figure: true, by: (r) => r.status?.admitted_last_minute ?? 0, cell: (r) => <>{number(r.status?.admitted_last_minute)} <span class="quiet">of {compact(r.status?.new_users_per_minute)}</span></> },
            { title: 'Wait now', figure: true, by: (r) => r.status?.wait_of_newcomer_seconds ?? -1, cell: (r) => (r.status?.waiting ? duration(r.status.wait_of_newcomer_seconds) : <span class="quiet">none</span>) },
            { title: 'Line', wide: true, cell: (r) => <Spark room={r} /> },
          ]}
        />
      </Card>
    </>
  )
}

function Spark({ room }: { room: Room }) {
  const list = samplesOf(room.id)
  return <Chart bare height={32} title={`Waiting in ${room.name}`} times={list.map((s) => s.at)} series={[{ title: 'waiting', values: list.map((s) => s.waiting), colour: '--c2', kind: 'area' }]} />
}
