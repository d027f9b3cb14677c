import type { RoomPageProps } from '../core/page'
import { callAsShown, patch, Problem, useAsk } from '../core/api'
import { ago, count, duration, full, moment } from '../core/format'
import { useLive, type Room } from '../core/live'
import { ownPath, publishedPath, roomHref, type Tone } from '../core/room'
import { setQuery } from '../core/router'
import { mayLeave } from '../core/unsaved'
import { Button, Card, confirm, done, Empty, Failed, Icon, Pill, Skeleton, Table, tell } from '../ui'
import { EventForm } from './event-form'
import { begins, draft, phaseOf, type Phase, sideBySide, sorted, spanOf, stampsAfter } from './model/event'
import type { Values } from './model/fields'
import { stamp } from './model/range'
import { deeds, editable, WhyNot } from './parts'
import './pages.css'

const phases: Record<Phase, { word: string; tone: Tone }> = {
  running: { word: 'Running', tone: 'ok' }, prequeueing: { word: 'Prequeue', tone: 'busy' }, upcoming: { word: 'Planned', tone: 'event' },
  suspended: { word: 'Suspended', tone: 'hold' }, over: { word: 'Over', tone: 'off' },
}

/** The events of a room: what runs, what comes, what was. */
export function Events({ room, query }: RoomPageProps) {
  const path = publishedPath(room) + '/events'
  const asked = useAsk<Values[]>(path)
  const settings = useAsk<Values>(publishedPath(room))
  const now = useLive().at * 1000 || Date.now()
  if (asked.error && !asked.data) return <Failed error={asked.error} retry={asked.reload} />
  if (!asked.data || !settings.data) return settings.error ? <Failed error={settings.error} retry={settings.reload} /> : <Skeleton lines={6} />

  const events = sorted(asked.data, now)
  const chosen = query.get('event')
  if (chosen) {
    const like = events.find((e) => e.id === query.get('like'))
    const start = chosen === 'new' ? { ...draft(now), ...(like && { ...like, ...stampsAfter(like, now), name: '', id: undefined, repeat: null }) } : events.find((e) => e.id === chosen)
    if (!start) return <Empty icon="event" title="There is no such event" action={<Button onClick={() => setQuery({ event: null })}>All events</Button>} />
    return (
      <EventForm key={chosen} room={room} settings={settings.data} event={start} before={chosen === 'new' ? undefined : start} others={asked.data} fixed={!editable(room)}
        onClose={async () => { if (await mayLeave()) setQuery({ event: null, like: null }) }} onSaved={() => { asked.reload(); setQuery({ event: null, like: null }) }} onConflict={(now) => asked.put(asked.data!.map((o) => (o.id === now.id ? now : o)))} />
    )
  }

  const reload = asked.reload
  const onNow = (e: Values) => ['running', 'prequeueing'].includes(phaseNow(room, e, now))
  const suspend = (e: Values, to: boolean) => async () => {
    if (to && onNow(e) && !(await confirm({ title: `Suspend ${e.name} now?`, action: 'Suspend', body: <p>The event is active: the settings of the room apply again immediately.</p> }))) return
    await patch(`${path}/${e.id}`, { suspended: to }) // the only member that is written
    reload()
    done(`${e.name} is ${to ? 'suspended' : 'active again'}`, async () => { await patch(`${path}/${e.id}`, { suspended: !to }); reload() })
  }
  const remove = (e: Values) => async () => {
    if (!(await confirm({ title: `Delete ${e.name}?`, action: 'Delete the event', danger: true, typed: onNow(e) ? String(e.name) : undefined, body: <p>{onNow(e) ? 'The event is active: the settings of the room apply again immediately.' : 'Its figures stay, but are no longer linked to it.'}</p> }))) return
    try {
      await callAsShown('DELETE', `${path}/${e.id}`, e)
      tell(`${e.name} deleted`)
    } catch (x) {
      if (!(x instanceof Problem) || x.status !== 412) throw x
      tell(`Someone else changed ${e.name} in the meantime, so it was not deleted. You see it as it is now.`, 'bad')
    }
    reload()
  }
  const next = events.find((e) => phaseOf(e, now) === 'upcoming' && begins(e) > now)
  const on = events.find(onNow)
  const may = editable(room)
  return (
    <>
      <WhyNot room={room} />
      <Card flush title="Events" lead={
        on ? <><span class="live-dot" aria-hidden="true" /> <b>{on.name}</b> {phaseNow(room, on, now) === 'running' ? `runs until ${moment(on.event_end_time)}` : `admits visitors at ${moment(on.event_start_time)}, ${ago(on.event_start_time, now)}`}</>
          : next ? <>Next: <b>{next.name}</b>, {ago(next.event_start_time, now)}</> : 'No event is planned.'
      } actions={may && <Button kind="main" icon="plus" onClick={() => setQuery({ event: 'new' })}>Schedule an event</Button>}>
        {!events.length ? (
          <Empty icon="event" title="No events" action={may && <Button kind="main" icon="plus" onClick={() => setQuery({ event: 'new' })}>Schedule an event</Button>}>
            An event gives the room other settings for a while, and can let visitors wait before it starts: for a sale, sign-ups, or a maintenance window.
          </Empty>
        ) : (
          <Table caption="Events" rows={events} id={(e) => e.id} columns={[
            { title: 'Event', name: true, cell: (e) => (
              <>
                {onNow(e) && <span class="live-dot" aria-hidden="true" />}
                <button type="button" class="link" onClick={() => setQuery({ event: e.id })}>{e.name}</button>
                {e.description && <span class="below quiet">{e.description}</span>}
                {e.repeat && <span class="below quiet"><Icon name="refresh" size={13} /> every {e.repeat.interval > 1 ? `${e.repeat.interval} ${e.repeat.every}s` : e.repeat.every}{e.repeat.times ? `, ${e.repeat.times} times` : ''}</span>}
              </>
            ) },
            { title: 'State', by: (e) => phaseOf(e, now), cell: (e) => <State e={e} now={now} room={room} /> },
            { title: 'Start', by: begins, cell: (e) => <span title={full(e.event_start_time)}>{moment(e.event_start_time)}{e.prequeue_start_time && <span class="below quiet">prequeue {moment(e.prequeue_start_time)}</span>}</span> },
            { title: 'Length', wide: true, cell: (e) => duration((Date.parse(e.event_end_time) - Date.parse(e.event_start_time)) / 1000) },
            { title: 'Differs from the room', wide: true, cell: (e) => differs(settings.data!, e) },
            { title: deeds, cell: (e) => (
              <div class="actions end">
                {begins(e) <= now && <Button small kind="quiet" icon="chart" label={`Analytics of ${e.name}`} href={`${roomHref(room, 'analytics')}?from=${stamp(spanOf(e).from)}&to=${stamp(Math.max(spanOf(e).from + 60_000, Math.min(spanOf(e).to, now)))}`} />}
                {begins(e) <= now && <Button small kind="quiet" icon="report" label={`Report of ${e.name}`} href={`${roomHref(room, 'report')}?event=${e.id}`} />}
                {e.shuffle_at_event_start && begins(e) <= now && <Button small kind="quiet" icon="check" label={`Record of the shuffle of ${e.name}`} href={`/dash/api${ownPath(room)}/events/${e.id}/shuffles/0`} target="_blank" />}
                {may && <Button small kind="quiet" icon="copy" label={`Copy ${e.name}`} onClick={() => setQuery({ event: 'new', like: e.id })} />}
                {may && phaseOf(e, now) !== 'over' && <Button small kind="quiet" icon={e.suspended ? 'play' : 'pause'} label={`${e.suspended ? 'Resume' : 'Suspend'} ${e.name}`} onClick={suspend(e, !e.suspended)} />}
                {may && <Button small kind="quiet" icon="trash" label={`Delete ${e.name}`} onClick={remove(e)} />}
              </div>
            ) },
          ]} />
        )}
      </Card>
    </>
  )
}

// Of a repeated event the server knows which time is on.
function phaseNow(room: Room, e: Values, now: number): Phase {
  const f = room.status?.in_force
  return f?.event?.id === e.id && f!.phase !== 'none' ? (f!.phase === 'started' ? 'running' : 'prequeueing') : phaseOf(e, now)
}

function State({ e, now, room }: { e: Values; now: number; room: Room }) {
  const phase = phaseNow(room, e, now)
  return (
    <>
      <Pill tone={phases[phase].tone}>{phases[phase].word}</Pill>
      {e.shuffle_at_event_start && <span class="below quiet">random order at the start</span>}
    </>
  )
}

function differs(settings: Values, e: Values): string {
  const own = sideBySide(settings, e).filter((x) => x.own)
  if (!own.length) return 'nothing'
  return own.map((x) => x.field.label.toLowerCase()).slice(0, 3).join(', ') + (own.length > 3 ? ` and ${count(own.length - 3, 'other')}` : '')
}
