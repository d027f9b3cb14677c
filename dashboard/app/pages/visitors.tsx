import { useState } from 'preact/hooks'
import type { RoomPageProps } from '../core/page'
import { call, useAsk } from '../core/api'
import { ago, full, number } from '../core/format'
import { ownPath, type Tone } from '../core/room'
import { setQuery } from '../core/router'
import { may } from '../core/session'
import { Button, Card, confirm, Empty, Failed, Pill, Skeleton, tell, TextField } from '../ui'
import './pages.css'

interface Visitor {
  id: string
  reference: string
  standing: 'waiting' | 'active' | 'used'
  arrived_at: string | null
  accepted_at: string | null
  last_seen_at: string | null
  ahead: number | null
}

const standings: Record<Visitor['standing'], { word: string; tone: Tone; why: string }> = {
  waiting: { word: 'Waiting', tone: 'busy', why: 'Is in the queue. The place is kept for a while if the page is closed.' },
  active: { word: 'Active', tone: 'ok', why: 'Has a session: requests go to the origin.' },
  used: { word: 'Ticket used', tone: 'off', why: 'The session of this ticket has ended. A visitor who returns with it starts over.' },
}

/** Who has the code that the waiting page shows: for whoever calls and asks. */
export function Visitors({ room, query }: RoomPageProps) {
  const code = query.get('code') ?? ''
  const [text, write] = useState(code)
  const clean = tidy(text)
  const asked = useAsk<Visitor[]>(code ? `${ownPath(room)}/visitors/${encodeURIComponent(code)}` : null, 5)
  const revoke = (v: Visitor) => async () => {
    if (!(await confirm({ title: 'End this session?', action: 'End the session', danger: true, body: <p>The next request of {v.reference} counts as a new visitor's. You cannot undo this.</p> }))) return
    await call('DELETE', `${ownPath(room)}/sessions/${v.id}`)
    tell('Session ended')
    asked.reload()
  }
  return (
    <>
      <Card title="Find a visitor" lead="By the code at the bottom of the waiting page, like 3f9a1-c07be.">
        <form class="row lookup" role="search" onSubmit={(e) => { e.preventDefault(); if (clean) { setQuery({ code: clean }); asked.reload() } }}>
          <TextField label="Code" mono value={text} placeholder="3f9a1-c07be" autofocus onChange={write} error={text.length > 11 && !clean ? 'ten digits and letters a to f' : undefined} />
          <Button type="submit" kind="main" icon="search" disabled={!clean}>Find</Button>
        </form>
      </Card>
      {!code ? null : asked.error && asked.error.status !== 404 ? <Failed error={asked.error} retry={asked.reload} /> : asked.error || asked.data?.length === 0 ? (
        <Empty icon="visitors" title="No visitor with this code">The code may belong to another room, may have been misheard, or the place has expired: then the visitor starts over.</Empty>
      ) : !asked.data ? <Skeleton /> : asked.data.map((v) => (
        <Card key={v.id} title={<>{v.reference} <Pill tone={standings[v.standing].tone}>{standings[v.standing].word}</Pill></>} lead={standings[v.standing].why}
          actions={v.standing === 'active' && may('edit', room.zone.id, room.id) && <Button kind="danger" onClick={revoke(v)}>End the session…</Button>}>
          <dl class="pairs">
            {v.ahead !== null && <div><dt>Visitors ahead</dt><dd><b>{number(v.ahead)}</b></dd></div>}
            {v.standing === 'waiting' && v.ahead === null && <div><dt>Visitors ahead</dt><dd>none in particular: the order is random</dd></div>}
            <Moment title="Arrived" at={v.arrived_at} />
            <Moment title="Admitted" at={v.accepted_at} />
            <Moment title="Last seen" at={v.last_seen_at} />
            <div><dt>Ticket</dt><dd><code>{v.id}</code></dd></div>
          </dl>
        </Card>
      ))}
    </>
  )
}

const Moment = ({ title, at }: { title: string; at: string | null }) => (at ? <div><dt>{title}</dt><dd>{full(at)} <span class="quiet">({ago(at)})</span></dd></div> : null)

/** A code as it was heard or pasted; "" while it is none. */
function tidy(text: string): string {
  const hex = text.toLowerCase().replace(/o/g, '0').replace(/[^0-9a-f]/g, '')
  return hex.length === 10 ? `${hex.slice(0, 5)}-${hex.slice(5)}` : ''
}
