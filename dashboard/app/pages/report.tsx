import { useState } from 'preact/hooks'
import type { RoomPageProps } from '../core/page'
import { address, useAsk } from '../core/api'
import { useLive } from '../core/live'
import { moment } from '../core/format'
import { shownZone } from '../core/kept'
import { ownPath, publishedPath, roomHref } from '../core/room'
import { setQuery } from '../core/router'
import { Button, Card, curl, Failed, NumberField, Snippet } from '../ui'
import { begins, fromLocal, sorted, spanOf, toLocal } from './model/event'
import type { Values } from './model/fields'
import { bounded, rangeOf, stamp } from './model/range'
import './analytics.css'

/** What came of an event or of any time, as a page to print and to keep. */
export function Report({ room, query }: RoomPageProps) {
  const now = useLive().at * 1000 || Date.now()
  const [asOf] = useState(now)
  const asked = useAsk<Values[]>(publishedPath(room) + '/events')
  const events = sorted(asked.data ?? [], asOf).filter((e) => begins(e) <= asOf)
  const event = events.find((e) => e.id === query.get('event'))
  const [number, count] = useState<number | null>(null)
  const range = event ? bounded(spanOf(event).from, Math.min(spanOf(event).to, asOf)) : rangeOf(query, asOf)
  const path = event
    ? `${ownPath(room)}/events/${event.id}/report${event.repeat && number !== null ? `?number=${number}` : ''}`
    : `${ownPath(room)}/report?from=${stamp(range.from)}&to=${stamp(range.to)}`
  const as = (format: string) => `${path}${path.includes('?') ? '&' : '?'}format=${format}${format === 'html' ? `&time_zone=${encodeURIComponent(shownZone())}` : ''}`
  const name = `${room.name}-${event ? event.name : stamp(range.from).slice(0, 10)}`
  return (
    <>
      {asked.error && <Failed error={asked.error} retry={asked.reload} />}
      <Card title="Report" lead="Timeline, peaks, waits, changes, accuracy of the estimated waits, order of the queue, and records of shuffles. One page without scripts that you can print, send and keep.">
        <div class="row">
          <label class="inline">For
            <select value={event?.id ?? ''} onChange={(e) => setQuery({ event: e.currentTarget.value || null })}>
              <option value="" selected={!event}>a time</option>
              {events.map((e) => <option key={e.id} value={e.id} selected={e === event}>the event {e.name}, {moment(e.event_start_time)}</option>)}
            </select>
          </label>
          {event
            ? <span class="quiet">{moment(stamp(range.from))} – {moment(stamp(range.to))}{event.prequeue_start_time && ', including its prequeue'}</span>
            : <>
              <label class="inline">From <input type="datetime-local" value={toLocal(stamp(range.from))} onChange={(e) => at(fromLocal(e.currentTarget.value), stamp(range.to))} /></label>
              <label class="inline">To <input type="datetime-local" value={toLocal(stamp(range.to))} onChange={(e) => at(stamp(range.from), fromLocal(e.currentTarget.value))} /></label>
            </>}
        </div>
        {event?.repeat && <div class="fields"><NumberField label="Occurrence" help="0 is the first. Empty: the latest that has begun." min={0} value={number} onChange={count} /></div>}
        <div class="actions">
          <Button kind="main" icon="report" href={address(as('html'))} target="_blank">Open the report</Button>
          <Button icon="download" href={address(as('html'))} download={`${name}.html`}>HTML</Button>
          <Button icon="download" href={address(as('csv'))} download={`${name}.csv`}>CSV</Button>
          <Button icon="download" href={address(as('json'))} download={`${name}.json`}>JSON</Button>
          <Button icon="chart" href={`${roomHref(room, 'analytics')}?from=${stamp(range.from)}&to=${stamp(range.to)}`}>Analytics for this time</Button>
        </div>
        <Snippet parts={[{ title: 'curl', text: curl('GET', as('html')) }]} />
      </Card>
      {asked.data && <Card flush><iframe class="report" title="The report" src={address(as('html'))} sandbox="allow-same-origin" onLoad={grow} /></Card>}
    </>
  )
}

// The frame is as high as what is in it, also after something in it was unfolded: the page scrolls, the frame does not.
function grow(e: Event) {
  const frame = e.currentTarget as HTMLIFrameElement
  const body = frame.contentDocument?.body
  if (!body) return
  const fit = () => { frame.style.height = `${frame.contentDocument!.documentElement.offsetHeight}px` }
  new ResizeObserver(fit).observe(body)
  fit()
}

function at(from: string | null, to: string | null) {
  if (from && to && from < to) setQuery({ from, to, range: null }, { replace: true })
}
