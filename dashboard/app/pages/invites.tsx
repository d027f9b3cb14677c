import { useState } from 'preact/hooks'
import type { RoomPageProps } from '../core/page'
import { call, post, Problem, useAsk } from '../core/api'
import { full, moment, number } from '../core/format'
import { ownPath, publishedPath } from '../core/room'
import { may } from '../core/session'
import { Button, Card, confirm, Dialog, Empty, Failed, Note, NumberField, Pill, SelectField, Skeleton, Snippet, Table, tell, TextField } from '../ui'
import { deeds, saveAs, ShownOnce } from './parts'
import './pages.css'

interface Batch {
  id: string
  name: string
  event: string | null
  lane: string | null
  count: number
  uses: number
  used: number
  expires_on: string
  created_on: string
  created_by: string
}

interface Fresh extends Batch {
  codes: string[]
}

type Lane = { name: string; priority: number }

type Event = { id: string; name: string; invite_only: boolean | null; prequeue_start_time: string | null; event_start_time: string }

const day = 86_400_000

/** Batches of invite codes. The codes themselves are shown once. */
export function Invites({ room }: RoomPageProps) {
  const path = `${ownPath(room)}/invites`
  const asked = useAsk<Batch[]>(path, 15)
  const settings = useAsk<{ invite_only: boolean; lanes: Lane[] }>(publishedPath(room))
  const events = useAsk<Event[]>(`${publishedPath(room)}/events`)
  const [making, make] = useState(false)
  const [revoking, revoke] = useState(false)
  const [fresh, show] = useState<Fresh | null>(null)
  const can = may('edit', room.zone.id, room.id)
  if (asked.error && !asked.data) return <Failed error={asked.error} retry={asked.reload} />
  const lanes = settings.data?.lanes.filter((l) => l.priority > 0) ?? []
  const idle = settings.data && events.data && !lanes.length && !settings.data.invite_only && !events.data.some((e) => e.invite_only)
  const remove = (b: Batch) => async () => {
    if (!(await confirm({ title: 'Revoke these codes?', danger: true, action: 'Revoke the codes', body: <p>Codes that are not used yet stop working. Visitors who have joined the queue with one keep their place. You cannot undo this.</p> }))) return
    await call('DELETE', `${path}/${b.id}`)
    tell('Codes revoked')
    asked.reload()
  }
  const save = (f: Fresh) => () => saveAs(`invites-${room.name}.csv`, 'text/csv', ['code', ...f.codes].join('\r\n') + '\r\n')
  return (
    <>
      {idle && <Note title="No one is asked for a code yet">Turn on “Invited visitors only” in the settings of this room or of one of its events, or give the room lanes.</Note>}
      <Card flush title="Invite codes" lead="With a code, a visitor joins the queue while the room is for invited visitors only, or moves up to a lane." actions={can && <>{!!asked.data?.length && <Button onClick={() => revoke(true)}>Revoke a code</Button>}<Button kind="main" icon="plus" onClick={() => make(true)}>New codes</Button></>}>
        {!asked.data ? <Skeleton /> : !asked.data.length ? <Empty icon="token" title="No invite codes">Make a batch for each group of people, so that you can revoke each separately.</Empty> : (
          <Table caption="Batches of invite codes" rows={asked.data} id={(b) => b.id} columns={[
            { title: 'Name', name: true, by: (b) => b.name, cell: (b) => <><b>{b.name || 'Unnamed'}</b><span class="below quiet">by {b.created_by}, {moment(b.created_on)}</span></> },
            { title: 'Codes', figure: true, by: (b) => b.count, cell: (b) => <>{number(b.count)}{b.uses > 1 && <span class="below quiet">{number(b.uses)} uses each</span>}</> },
            { title: 'Used', figure: true, by: (b) => b.used, cell: (b) => number(b.used) },
            { title: 'Event', cell: (b) => (b.event ? events.data?.find((e) => e.id === b.event)?.name ?? 'deleted' : <span class="quiet">any time</span>) },
            { title: 'Lane', cell: (b) => b.lane ?? <span class="quiet">none</span> },
            { title: 'Expires', by: (b) => b.expires_on, cell: (b) => (Date.parse(b.expires_on) <= Date.now() ? <Pill tone="off">Expired</Pill> : <span title={full(b.expires_on)}>{moment(b.expires_on)}</span>) },
            { title: deeds, cell: (b) => can && <div class="actions end"><Button small kind="quiet" icon="trash" label={`Revoke ${b.name || 'the unnamed codes'}`} onClick={remove(b)} /></div> },
          ]} />
        )}
      </Card>
      {revoking && <Revoke path={path} onClose={() => revoke(false)} onDone={() => { revoke(false); tell('Code revoked'); asked.reload() }} />}
      {making && <Make path={path} events={events.data ?? []} lanes={lanes} onClose={() => make(false)} onMade={(f) => { make(false); show(f); asked.reload() }} />}
      {fresh && (
        <ShownOnce title={`${number(fresh.codes.length)} new ${fresh.codes.length === 1 ? 'code' : 'codes'}`} saved="I have saved them" onClose={() => show(null)}
          more={<Button icon="download" onClick={save(fresh)}>Download CSV</Button>}>
          <Note tone="warn">These codes are shown only once. Anteroom keeps hashes of them.</Note>
          <Snippet parts={[{ title: 'Codes', text: fresh.codes.slice(0, 20).join('\n') + (fresh.codes.length > 20 ? `\n… and ${number(fresh.codes.length - 20)} more in the CSV` : '') }]} />
        </ShownOnce>
      )}
    </>
  )
}

function Make({ path, events, lanes, onClose, onMade }: { path: string; events: Event[]; lanes: Lane[]; onClose: () => void; onMade: (f: Fresh) => void }) {
  const [name, entitle] = useState('')
  const [count, many] = useState<number | null>(100)
  const [uses, often] = useState<number | null>(1)
  const [event, at] = useState('')
  const [lane, rise] = useState('')
  const [days, last] = useState('')
  const [faults, fault] = useState<Record<string, string>>({})
  const during = events.find((e) => e.id === event)
  const begins = during ? Date.parse(during.prequeue_start_time ?? during.event_start_time) : 0
  // Codes that expire before their event begins are refused.
  const lives = [
    { value: '', text: during ? '30 days, or the end of the event if that is later' : '30 days' },
    ...[[1, 'a day'], [7, 'a week'], [90, '90 days'], [366, '366 days']].filter(([d]) => Date.now() + Number(d) * day > begins).map(([d, text]) => ({ value: String(d), text: String(text) })),
  ]
  const choose = (id: string) => { at(id); last('') }
  const make = async () => {
    try {
      onMade(await post<Fresh>(path, { name, count, uses, event: event || null, ...(lane && { lane }), ...(days && { expires_on: new Date(Date.now() + Number(days) * day).toISOString() }) }))
    } catch (e) {
      if (!(e instanceof Problem)) throw e
      fault(e.fields)
      tell(e.message, 'bad')
    }
  }
  return (
    <Dialog title="New invite codes" onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button kind="main" disabled={!count || !uses} onClick={make}>Make codes</Button></>}>
      <TextField label="Name" name="name" autofocus maxLength={64} value={name} error={faults.name} help="Who the codes are for." onChange={entitle} />
      <NumberField label="Codes" name="count" required min={1} max={10000} value={count} error={faults.count} onChange={many} />
      <NumberField label="Uses of each code" name="uses" required min={1} max={10000} value={uses} error={faults.uses} help="How many visitors can join the queue with the same code." onChange={often} />
      <SelectField label="Valid during" name="event" value={event} error={faults.event} onChange={choose} options={[{ value: '', text: 'any time' }, ...events.map((e) => ({ value: e.id, text: `event ${e.name}` }))]} />
      {lanes.length > 0 && <SelectField label="Lane" name="lane" value={lane} error={faults.lane} onChange={rise} options={[{ value: '', text: 'none' }, ...lanes.map((l) => ({ value: l.name, text: l.name }))]} />}
      <SelectField label="Expire after" name="expires_on" value={days} error={faults.expires_on} onChange={last} options={lives} />
    </Dialog>
  )
}

function Revoke({ path, onClose, onDone }: { path: string; onClose: () => void; onDone: () => void }) {
  const [code, write] = useState('')
  const [fault, say] = useState('')
  const revoke = async () => {
    try {
      await post(`${path}/revoke`, { code })
      onDone()
    } catch (e) {
      if (!(e instanceof Problem)) throw e
      say(e.fields.code ?? e.message)
    }
  }
  return (
    <Dialog title="Revoke a code" onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button kind="danger" disabled={!code.trim()} onClick={revoke}>Revoke</Button></>}>
      <TextField label="Code" name="code" autofocus maxLength={64} value={code} error={fault} help="Its uses that are left are taken. Visitors who have joined the queue with it keep their place." onChange={write} />
    </Dialog>
  )
}
