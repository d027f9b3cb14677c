import type { PageProps } from '../core/page'
import { useAsk } from '../core/api'
import { ago, count, duration, full, moment, number, percent } from '../core/format'
import type { Tone } from '../core/room'
import { Button, Card, Empty, Failed, Head, Note, Pill, Skeleton, Table } from '../ui'
import './pages.css'

interface Touch { ok: boolean; since: string | null; lag_seconds: number; detail: string }

interface Status {
  name: string
  site: string
  node: string
  hub: boolean
  nodes: { node: string; version: string; wire: [number, number]; core: boolean; started: string; clock_offset_seconds: number; files: string; roles: number }[]
  roles: { role: string; node: string; epoch: number }[]
  sites: { site: string; rooms: number; heard_seconds_ago: number; trip_seconds: number; seats_granted: number; seats_used: number; idle_permits: number }[]
  store: { site: Touch; shared: Touch }
  edges_seen: { kind: string; zone?: string; name?: string; peer?: string; last_seen: string; requests_last_minute: number; fresh_share: number; late_share: number; over_share: number; clock_offset_seconds: number | null }[]
  findings: { severity: 'error' | 'warning' | 'note'; what: string; why: string; fix: string }[]
}

const milliseconds = (s: number) => (Math.abs(s) < 1 ? `${Math.round(s * 1000)} ms` : duration(s))

/** How the nodes stand together, with what the doctor finds. */
export function Cluster(_: PageProps) {
  const asked = useAsk<Status>('/anteroom/v1/cluster', 5)
  const s = asked.data
  if (asked.error && !s) return <><Head title="Cluster" /><Failed error={asked.error} retry={asked.reload} /></>
  if (!s) return <><Head title="Cluster" /><Skeleton lines={6} /></>
  const bad = s.findings.filter((f) => f.severity !== 'note')
  return (
    <>
      <Head title="Cluster" lead={s.name ? `${s.name}: ${count(s.nodes.length, 'node')} of the site ${s.site}, as ${s.node} sees it` : 'Standalone process'}>
        <Button icon="refresh" onClick={asked.reload}>Refresh</Button>
      </Head>
      {asked.error && <Failed error={asked.error} retry={asked.reload} />}
      <Card title="Doctor">
        {bad.length === 0 && <Note tone="ok" title="No problems found">{s.findings.length ? 'There are notes.' : 'Clocks, versions, stores and journals are fine.'}</Note>}
        {s.findings.map((f) => (
          <Note key={f.what} tone={f.severity === 'error' ? 'bad' : f.severity === 'warning' ? 'warn' : 'info'} title={f.what}>
            {f.why}{f.fix && <span class="below"><b>Fix:</b> {f.fix}</span>}
          </Note>
        ))}
      </Card>
      <Card flush title="Nodes">
        <Table caption="Nodes" rows={s.nodes} id={(n) => n.node} columns={[
          { title: 'Node', name: true, by: (n) => n.node, cell: (n) => <><b>{n.node}</b>{n.node === s.node && <span class="below quiet">this node</span>}</> },
          { title: 'Kind', cell: (n) => (!s.name ? 'standalone' : n.core ? 'core' : 'edge') },
          { title: 'Version', cell: (n) => n.version },
          { title: 'Started', by: (n) => n.started, cell: (n) => <span title={full(n.started)}>{ago(n.started)}</span> },
          { title: 'Clock', figure: true, by: (n) => Math.abs(n.clock_offset_seconds), cell: (n) => <Skew s={n.clock_offset_seconds} /> },
          { title: 'Roles', figure: true, by: (n) => n.roles, cell: (n) => number(n.roles) },
          { title: 'Configuration', wide: true, cell: (n) => <code>{n.files ? n.files.slice(0, 12) : '–'}</code> },
        ]} />
      </Card>
      <div class="grid wide">
        <Card title="Store">
          <dl class="pairs stores">
            <Store title="This site" t={s.store.site} />
            <Store title="Shared" t={s.store.shared} />
          </dl>
        </Card>
        {s.roles.length > 0 && (
          <Card flush title="Roles" lead="Which node decides for which part of the rooms.">
            <div class="tall"><Table caption="Roles" rows={s.roles} id={(r) => r.role} columns={[
              { title: 'Role', name: true, by: (r) => r.role, cell: (r) => r.role },
              { title: 'Node', by: (r) => r.node, cell: (r) => r.node || <Pill tone="bad">none</Pill> },
              { title: 'Epoch', figure: true, cell: (r) => number(r.epoch) },
            ]} /></div>
          </Card>
        )}
      </div>
      <Edges edges={s.edges_seen} />
      {s.name && (s.sites.length ? (
        <Card flush title="Sites" lead="As the coordinators of the rooms see them.">
          <Table caption="Sites" rows={s.sites} id={(x) => x.site} columns={[
            { title: 'Site', name: true, by: (x) => x.site, cell: (x) => <><b>{x.site}</b>{s.hub && x.site === s.site && <span class="below quiet">keeps the order of the queue</span>}</> },
            { title: 'Rooms', figure: true, by: (x) => x.rooms, cell: (x) => number(x.rooms) },
            { title: 'Last report', figure: true, by: (x) => x.heard_seconds_ago, cell: (x) => <Heard s={x.heard_seconds_ago} /> },
            { title: 'Round trip', figure: true, by: (x) => x.trip_seconds, cell: (x) => (x.trip_seconds ? milliseconds(x.trip_seconds) : '–') },
            { title: 'Seats used', figure: true, by: (x) => x.seats_used, cell: (x) => `${number(x.seats_used)} of ${number(x.seats_granted)}` },
            { title: 'Idle permits', figure: true, wide: true, by: (x) => x.idle_permits, cell: (x) => number(x.idle_permits) },
          ]} />
        </Card>
      ) : <Card title="Sites"><Empty icon="cluster" title="No site has served a room yet" /></Card>)}
    </>
  )
}

const flagged = (tone: Tone, text: string) => <Pill tone={tone}>{text}</Pill>
const Skew = ({ s }: { s: number }) => (Math.abs(s) >= 2 ? flagged('bad', milliseconds(s)) : Math.abs(s) >= 1 ? flagged('busy', milliseconds(s)) : <>{milliseconds(s)}</>)
const Heard = ({ s }: { s: number }) => (s >= 10 ? flagged('bad', `${duration(s)} ago`) : <>{milliseconds(s)} ago</>)

function Store({ title, t }: { title: string; t: Touch }) {
  return <div><dt>{title}</dt><dd><Pill tone={t.ok ? 'ok' : 'bad'}>{t.ok ? 'Connected' : 'Not reachable'}</Pill> {t.since && <span class="quiet" title={full(t.since)}>since {moment(t.since)}</span>}{t.lag_seconds > 0 && ` ${duration(t.lag_seconds)} behind`}{t.detail && <span class="below">{t.detail}</span>}</dd></div>
}

/** The proxies and edges in front. Of a proxy that asks, there are no passes; of a pass, no clock: what is not known is not a number. */
function Edges({ edges }: { edges: Status['edges_seen'] }) {
  if (!edges.length) return null
  type Edge = Status['edges_seen'][number]
  const share = (title: string, of: (e: Edge) => number) =>
    ({ title, figure: true, cell: (e: Edge) => (e.kind === 'pass' && e.requests_last_minute ? percent(of(e)) : '–') })
  return (
    <Card flush title="Edges in front" lead="The last minute, as this node sees it. Requests that an edge sends straight to the origin do not appear here.">
      <Table caption="Edges in front" rows={edges} id={(e) => [e.kind, e.zone, e.name, e.peer].join(' ')} columns={[
        { title: 'Edge', name: true, by: (e) => e.peer ?? e.zone ?? '', cell: (e) => <><b>{e.kind === 'pass' ? e.name || e.zone : `${e.kind} ${e.peer ?? ''}`}</b><span class="below quiet">{e.kind === 'pass' ? `verifies passes${e.name ? ` of ${e.zone}` : ''}` : 'asks about each request'}</span></> },
        { title: 'Last seen', by: (e) => e.last_seen, cell: (e) => <span title={full(e.last_seen)}>{ago(e.last_seen)}</span> },
        { title: 'Requests', figure: true, by: (e) => e.requests_last_minute, cell: (e) => number(e.requests_last_minute) },
        share('Fresh passes', (e) => e.fresh_share),
        share('Renewals', (e) => e.late_share),
        share('Ended passes', (e) => e.over_share),
        { title: 'Clock', figure: true, cell: (e) => (e.clock_offset_seconds == null ? 'not known' : <Skew s={e.clock_offset_seconds} />) },
      ]} />
    </Card>
  )
}
