import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { RoomPageProps } from '../core/page'
import { address, useAsk } from '../core/api'
import { count, decimal, duration, full, moment, number, second } from '../core/format'
import { ownPath, publishedPath, roomHref } from '../core/room'
import { setQuery } from '../core/router'
import { Button, Card, Chart, Choice, curl, Dialog, Empty, Failed, Note, type Series, Skeleton, Snippet } from '../ui'
import { begins, fromLocal, sorted, spanOf, toLocal } from './model/event'
import type { Values } from './model/fields'
import { bounded, moved, rangeOf, stamp, words, type Range } from './model/range'
import { advice, type Analytics as Answer, graphql, recorded, series } from './model/series'
import { telling } from './parts'
import './analytics.css'

/** What was measured of a room, over any time; a range drawn in one chart is that of all. */
export function Analytics({ room, query }: RoomPageProps) {
  const [now, tick] = useState(Date.now)
  const range = useMemo(() => rangeOf(query, now), [query, now])
  const short = range.to - range.from <= 2 * 3_600_000
  useEffect(() => {
    if (!range.live) return
    const timer = setInterval(() => !document.hidden && tick(Date.now()), short ? 5_000 : 60_000)
    return () => clearInterval(timer)
  }, [range.live, short])

  const resolution = query.get('resolution') ?? 'auto'
  const ask = (r: Range) => `${ownPath(room)}/analytics?from=${stamp(r.from)}&to=${stamp(r.to)}` + (resolution === 'auto' ? '' : `&resolution=${encodeURIComponent(resolution)}`)
  const path = ask(range)
  const asked = useAsk<Answer>(path)
  const a = useLast(asked.data)
  const events = useAsk<Values[]>(publishedPath(room) + '/events').data ?? []
  const settings = useAsk<Values>(publishedPath(room)).data
  const [elsewhere, show] = useState(false)
  // The report knows what was done to the room; to the minute, so that it is not asked for more often.
  const minute = 60_000
  const changes = useLast(useAsk<{ changes: Change[] }>(`${ownPath(room)}/report?from=${stamp(Math.floor(range.from / minute) * minute)}&to=${stamp(Math.ceil(range.to / minute) * minute)}`).data)?.changes ?? none

  const to = (r: Range) => setQuery({ range: r.live ?? null, from: r.live ? null : stamp(r.from), to: r.live ? null : stamp(r.to) })
  const zoom = (from: number, until: number) => to(bounded(from * 1000, until * 1000))
  const other = before(query.get('compare'), range, events)
  const than = useAsk<Answer>(other && a ? `${ask(other.range).split('&resolution')[0]}&resolution=${a.resolution}` : null).data

  return (
    <>
      <Ranges range={range} now={now} events={events} query={query} to={to} />
      {asked.error && <Failed error={asked.error} retry={asked.reload} />}
      {!a ? !asked.error && <Skeleton lines={6} height="48px" /> : (
        <>
          {a.incomplete && <Note tone="warn" title="Some figures are missing">{a.incomplete}</Note>}
          {recorded(a) === 0 ? (
            <Empty icon="chart" title="Nothing was recorded in this time" action={<Button onClick={() => to(moved(range, 'out', now))}>Show a longer time range</Button>}>
              A minute is recorded when a visitor requests a page of the room, waits or has a session.
            </Empty>
          ) : (
            <>
              <Tiles a={a} than={than} />
              {settings && advice(a, settings).map((s) => <Note key={s}>{s}</Note>)}
              <Charts a={a} than={than} words={other?.words} range={range} zoom={zoom} events={events} changes={changes} />
            </>
          )}
          <div class="row between">
            <span class="quiet">One bar is {duration(a.every_seconds)}. Figures as of {second(a.as_of)}.</span>
            <div class="actions">
              <Button small icon="download" href={address(path) + '&format=csv'} download={`${room.name}.csv`}>CSV</Button>
              <Button small icon="download" href={address(path)} download={`${room.name}.json`}>JSON</Button>
              <Button small onClick={() => { show(true) }}>GraphQL, curl</Button>
              <Button small icon="report" href={`${roomHref(room, 'report')}?from=${stamp(range.from)}&to=${stamp(range.to)}`}>Report</Button>
            </div>
          </div>
          {elsewhere && (
            <Dialog wide title="The same figures as code" onClose={() => show(false)}>
              <Snippet parts={[
                { title: 'GraphQL', text: graphql(room.zone.id, room.id, a) },
                { title: 'GraphQL with curl', text: curl('POST', '/client/v4/graphql', { query: graphql(room.zone.id, room.id, a) }) },
                { title: 'curl', text: curl('GET', path) },
              ]} />
            </Dialog>
          )}
        </>
      )}
    </>
  )
}

interface Change {
  at: string
  by: string
  operation: string
  name: string
  fields: { name: string; before: string; after: string }[]
}
const none: Change[] = []

const mostChanges = 50 // of the list; the report has all

function inWords(c: Change): string {
  const fields = (c.fields ?? []).filter((f) => telling(f.name))
  return [c.by && `${c.by}:`, c.operation, fields.slice(0, 2).map((f) => `${f.name} ${f.before || 'none'} → ${f.after || 'none'}`).join(', '), fields.length > 2 && '…'].filter(Boolean).join(' ')
}

/** What was there last, until something else is: charts do not blink while the next answer comes. */
function useLast<T>(value: T | undefined): T | undefined {
  const last = useRef(value)
  if (value !== undefined) last.current = value
  return last.current
}

function Ranges({ range, now, events, query, to }: { range: Range; now: number; events: Values[]; query: URLSearchParams; to: (r: Range) => void }) {
  const [asking, ask] = useState(false)
  const past = sorted(events, now).filter((e) => begins(e) <= now)
  const jump = (id: string) => {
    const e = events.find((x) => x.id === id)
    if (e) to(bounded(spanOf(e).from, Math.min(spanOf(e).to, Math.max(now, spanOf(e).from + 60_000))))
  }
  const here = past.find((e) => !range.live && range.from === bounded(spanOf(e).from, spanOf(e).to).from)
  return (
    <div class="ranges">
      <div class="row">
        <Choice small label="Time" value={range.live ?? ''} onChange={(w) => to({ from: 0, to: 0, live: w })} options={words.map((w) => ({ value: w.word, text: w.label }))} />
        <div class="actions">
          <Button small icon="left" label="Earlier" onClick={() => to(moved(range, 'back', now))} />
          <Button small icon="right" label="Later" disabled={!!range.live || range.to >= now} onClick={() => to(moved(range, 'on', now))} />
          <Button small icon="minus" label="Zoom out" onClick={() => to(moved(range, 'out', now))} />
          <Button small icon="clock" pressed={asking} onClick={() => ask(!asking)}>{range.live ? 'Other' : `${moment(stamp(range.from))} – ${moment(stamp(range.to))}`}</Button>
        </div>
      </div>
      <div class="row">
        {past.length > 0 && (
          <label class="inline">Event
            <select value={here?.id ?? ''} onChange={(e) => jump(e.currentTarget.value)}>
              <option value="">jump to …</option>
              {past.map((e) => <option key={e.id} value={e.id}>{e.name}, {moment(e.event_start_time)}</option>)}
            </select>
          </label>
        )}
        <label class="inline">Compare with
          <select value={query.get('compare') ?? ''} onChange={(e) => setQuery({ compare: e.currentTarget.value || null }, { replace: true })}>
            <option value="">nothing</option>
            <option value="before">the period before</option>
            <option value="day">a day earlier</option>
            <option value="week">a week earlier</option>
            {past.map((e) => <option key={e.id} value={e.id}>{e.name}, {moment(e.event_start_time)}</option>)}
          </select>
        </label>
        <label class="inline">Bars
          <select value={query.get('resolution') ?? 'auto'} onChange={(e) => setQuery({ resolution: e.currentTarget.value === 'auto' ? null : e.currentTarget.value }, { replace: true })}>
            {['auto', 'minute', 'quarter', 'hour', 'day'].map((r) => <option key={r} value={r}>{r === 'quarter' ? '15 minutes' : r}</option>)}
          </select>
        </label>
      </div>
      {asking && <Custom range={range} to={(r) => { ask(false); to(r) }} />}
    </div>
  )
}

function Custom({ range, to }: { range: Range; to: (r: Range) => void }) {
  const [from, setFrom] = useState(toLocal(stamp(range.from)))
  const [until, setUntil] = useState(toLocal(stamp(range.to)))
  const a = Date.parse(fromLocal(from) ?? ''), b = Date.parse(fromLocal(until) ?? '')
  return (
    <form class="row" onSubmit={(e) => { e.preventDefault(); if (b > a) to(bounded(a, b)) }}>
      <label class="inline">From <input type="datetime-local" value={from} onInput={(e) => setFrom(e.currentTarget.value)} /></label>
      <label class="inline">To <input type="datetime-local" value={until} onInput={(e) => setUntil(e.currentTarget.value)} /></label>
      <Button type="submit" kind="main" disabled={!(b > a)}>Show</Button>
      {b <= a && <span class="quiet" role="alert">The end is before the beginning.</span>}
    </form>
  )
}

/** The time that another one is compared with. */
function before(what: string | null, r: Range, events: readonly Values[]): { range: Range; words: string } | null {
  const back = (ms: number, words: string) => ({ range: { from: r.from - ms, to: r.to - ms }, words })
  if (what === 'before') return back(r.to - r.from, 'before')
  if (what === 'day') return back(86_400_000, 'a day earlier')
  if (what === 'week') return back(7 * 86_400_000, 'a week earlier')
  const e = events.find((x) => x.id === what)
  return e ? { range: { from: spanOf(e).from, to: spanOf(e).from + (r.to - r.from) }, words: e.name } : null
}

function Tiles({ a, than }: { a: Answer; than?: Answer }) {
  const tile = (title: string, value: string, below: string, was?: string) => (
    <div class="tile" key={title}>
      <dt>{title}</dt>
      <dd><strong>{value}</strong> <span class="quiet">{below}</span>{was !== undefined && <span class="quiet was">was {was}</span>}</dd>
    </div>
  )
  const t = a.total, o = than?.total
  const usual = (x: Answer['total'], span: string) => (x[`${span}_p50`] === x[`${span}_p75`] ? duration(x[`${span}_p50`]) : `${duration(x[`${span}_p50`])} – ${duration(x[`${span}_p75`])}`)
  return (
    <dl class="tiles">
      {tile('Most active users', number(t.active_users), t.active_limit == null ? '' : `of ${number(t.active_limit)}`, o && number(o.active_users))}
      {tile('Longest queue', number(t.queued_users), 'visitors', o && number(o.queued_users))}
      {tile('New users', decimal(t.new_users), `per minute; maximum ${number(t.new_users_max)}`, o && decimal(o.new_users))}
      {tile('Typical wait', usual(t, 'waited'), `95 % below ${duration(t.waited_p95)}`, o && usual(o, 'waited'))}
      {tile('Typical session', usual(t, 'on_origin'), `95 % below ${duration(t.on_origin_p95)}`, o && usual(o, 'on_origin'))}
      {tile('Left the queue', number(t.abandoned), `of ${number(t.joined)} who joined`, o && number(o.abandoned))}
    </dl>
  )
}

interface ChartsProps {
  a: Answer
  than?: Answer
  words?: string
  range: Range
  zoom: (from: number, to: number) => void
  events: readonly Values[]
  changes: Change[]
}

function Charts({ a, than, words, range, zoom, events, changes }: ChartsProps) {
  const marks = useMemo(() => changes.map((c) => ({ at: Date.parse(c.at) / 1000, title: inWords(c) })), [changes])
  const common = {
    times: a.time, from: range.from / 1000, to: range.to / 1000, sync: 'analytics', onZoom: zoom, marks,
    spans: events.filter((e) => spanOf(e).from < range.to && spanOf(e).to > range.from).map((e) => ({ from: spanOf(e).from / 1000, to: spanOf(e).to / 1000, title: String(e.name) })),
  }
  const charts = useMemo(() => {
    const s = (title: string, name: string, color: string, more: Partial<Series> = {}): Series => ({ title, values: series(a, name), color, ...more })
    // The other time lies over this one: its figures stand at the same distance from the beginning.
    const was = (title: string, name: string): Series[] =>
      than ? [{ title: `${title}, ${words}`, values: a.time.map((_, i) => than.series[name]?.[i] ?? null), color: '--c5', kind: 'limit' }] : []
    const fine = a.every_seconds <= 60
    const three = (span: string): Series[] => [
      s('95 % below', `${span}_p95`, '--c5'), s('75 % below', `${span}_p75`, '--c4'), s('50 % below', `${span}_p50`, '--c1', { kind: 'area' }),
    ]
    return [
      { title: 'Active users and queue', series: [s('active users', 'active_users', '--c1', { kind: 'bars', stacked: true }), s('queue', 'queued_users', '--c2', { kind: 'bars', stacked: true }),
        s('limit', 'active_limit', '--climit', { kind: 'limit' }), ...was('active users', 'active_users'), ...was('queue', 'queued_users')], height: 260 },
      { title: 'New users per minute', series: [s(fine ? 'admitted' : 'admitted, mean', 'new_users', '--c3', { kind: 'bars' }), ...(fine ? [] : [s('busiest minute', 'new_users_max', '--c6')]),
        s('limit', 'new_limit', '--climit', { kind: 'limit' }), ...was('admitted', 'new_users')] },
      { title: 'Wait of admitted visitors', unit: 'seconds' as const, series: [...three('waited'), ...was('50 % below', 'waited_p50')] },
      { title: 'Length of sessions', unit: 'seconds' as const, series: [...three('on_origin'), ...was('50 % below', 'on_origin_p50')] },
      { title: 'Estimated waits and actual waits', unit: 'seconds' as const, series: [s('longest estimate', 'estimate_seconds', '--c1', { kind: 'area' }), s('longer than estimated, 95 % below', 'late_p95', '--c5'), s('shorter than estimated, 95 % below', 'early_p95', '--c3')] },
      { title: 'Joining and leaving the queue', series: [s('joined', 'joined', '--c1', { kind: 'area' }), s('gave up', 'abandoned', '--c5'), s('called, did not come', 'no_shows', '--c2'), s('admitted before others', 'overtakes', '--c4')] },
      { title: 'Outside the queue', series: [s('bypassed by rules', 'bypassed', '--c6', { kind: 'area' }), s('turned away', 'turned_away', '--c5'), s('tickets refused', 'refused', '--c2'), s('sessions ended', 'revoked', '--c4')] },
    ]
  }, [a, than, words])
  return (
    <>
      <h2 class="unseen">Charts</h2>
      <p class="quiet">Drag across any chart to zoom in on all of them. The browser's Back button zooms out. {common.spans.length > 0 && `Shaded: ${common.spans.map((x) => x.title).slice(0, 3).join(', ')}${common.spans.length > 3 ? ` and ${count(common.spans.length - 3, 'event')} more` : ''}.`}</p>
      <Card><Chart {...common} {...charts[0]} /></Card>
      <div class="grid wide">
        {charts.slice(1).map((c) => <Card key={c.title}><Chart {...common} {...c} /></Card>)}
      </div>
      {changes.length > 0 && (
        <Card title="Changes in this time" lead={`Each is a line with a triangle in the charts.${changes.length > mostChanges ? ` The report has all ${number(changes.length)}.` : ''}`}>
          <ol class="changes">{changes.slice(-mostChanges).map((c, i) => <li key={i}><time dateTime={c.at} title={full(c.at)}>{moment(c.at)}</time> {inWords(c)}</li>)}</ol>
        </Card>
      )}
    </>
  )
}
