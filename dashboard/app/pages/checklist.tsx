import { useAsk } from '../core/api'
import { count, moment } from '../core/format'
import type { Room } from '../core/live'
import { ownPath, roomHref, type Tone } from '../core/room'
import { Button, Card, Failed, Pill, Skeleton, Table } from '../ui'

interface Check { check: string; result: 'ok' | 'unknown' | 'note' | 'warning' | 'error'; where: string; what: string; why: string; fix: string }

const names: Record<string, string> = { event: 'Event', limits: 'Limits', invites: 'Invites', page: 'Waiting page', webhook: 'Webhook', challenge: 'Challenge', clock: 'Clock', certificate: 'Certificate', installation: 'Installation' }
const results: Record<Check['result'], { word: string; tone: Tone }> = {
  ok: { word: 'OK', tone: 'ok' }, unknown: { word: 'Not known', tone: 'off' }, note: { word: 'Note', tone: 'event' }, warning: { word: 'Warning', tone: 'busy' }, error: { word: 'Error', tone: 'bad' },
}

/** What an event needs before it begins, as it is saved. */
export function Checklist({ room, event }: { room: Room; event: string }) {
  const asked = useAsk<{ event_start_time: string; checks: Check[] }>(`${ownPath(room)}/events/${event}/checklist`)
  const list = asked.data
  const bad = list?.checks.filter((c) => c.result === 'warning' || c.result === 'error') ?? []
  const pages: Record<string, string> = { limits: roomHref(room, 'settings'), invites: roomHref(room, 'invites'), page: roomHref(room, 'template'), webhook: '/webhooks', challenge: roomHref(room, 'settings'), installation: '/cluster' }
  return (
    <Card flush title="Before the start: checklist" lead={!list ? 'What this event needs.' : <>{bad.length ? <b>{count(bad.length, 'thing')} to look at</b> : 'Nothing to do'} before {moment(list.event_start_time)}. As the event is saved.</>}
      actions={<Button small icon="refresh" onClick={asked.reload}>Check again</Button>}>
      {asked.error && <Failed error={asked.error} retry={asked.reload} />}
      {!list ? !asked.error && <Skeleton lines={4} /> : (
        <Table caption="Checklist" rows={list.checks} id={(c) => c.check} columns={[
          { title: 'Check', name: true, cell: (c) => (c.result !== 'ok' && pages[c.check] ? <a href={pages[c.check]}>{names[c.check] ?? c.check}</a> : names[c.check] ?? c.check) },
          { title: 'Result', cell: (c) => <Pill tone={results[c.result].tone}>{results[c.result].word}</Pill> },
          { title: 'Found', cell: (c) => (
            <>
              {c.what}
              {c.why && <span class="below quiet">{c.why}</span>}
              {c.fix && <span class="below"><b>Fix:</b> {c.fix} <span class="quiet">({c.where})</span></span>}
            </>
          ) },
        ]} />
      )}
    </Card>
  )
}
