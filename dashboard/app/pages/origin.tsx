import { number, percent } from '../core/format'
import type { Origin, Room } from '../core/live'
import { Card, Table } from '../ui'

const seconds = (s: number | null) => (s == null ? '–' : s < 1 ? `${number(Math.round(s * 1000))} ms` : `${s.toFixed(1)} s`)

/** How the servers behind a room do, next to whom it admits. */
export function Origins({ room }: { room: Room }) {
  if (!room.origins?.length) return null
  return (
    <Card title="Origin" lead="The last minute, as this node sees it.">
      <Table rows={room.origins.map((o, i) => ({ ...o, name: o.url ?? `Origin ${i + 1}` }))} id={(o) => o.name} caption="Origins of the room" columns={[
        { title: 'Server', cell: (o: Origin & { name: string }) => o.name, name: true },
        { title: 'Health', cell: (o) => (o.healthy ? 'Healthy' : 'Not answering') },
        { title: 'Median', cell: (o) => seconds(o.p50_seconds), figure: true },
        { title: '95%', cell: (o) => seconds(o.p95_seconds), figure: true },
        { title: 'Failed', cell: (o) => percent(o.error_share), figure: true },
        { title: 'In flight', cell: (o) => number(o.in_flight), figure: true },
      ]} />
    </Card>
  )
}
