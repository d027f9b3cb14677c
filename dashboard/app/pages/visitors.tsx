import { useState } from 'preact/hooks'
import type { RoomPageProps } from '../pages'
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
  waiting: { word: 'In line', tone: 'busy', why: 'Waits for a turn. The place is kept for a while when the page is closed.' },
  active: { word: 'Inside', tone: 'ok', why: 'Has a session: requests go to your site.' },
  used: { word: 'Ticket used', tone: 'off', why: 'This place was taken by a session that is over. Whoever shows it again is new in line.' },
}

/** Who has the code that the waiting page shows: for whoever calls and asks. */
export function Visitors({ room, query }: RoomPageProps) {
  const code = query.get('code') ?? ''
  const [text, write] = useState(code)
  const clean = tidy(text)
  const asked = useAsk<Visitor[]>(code ? `${ownPath(room)}/visitors/${encodeURIComponent(code)}` : null, 5)
  const revoke = (v: Visitor) => async () => {
    if (!(await confirm({ title: 'End this session?', action: 'End the session', danger: true, body: <p>The next request of {v.reference} is one of a newcomer, who waits where others do. It cannot be taken back.</p> }))) return
    await call('DELETE', `${ownPath(room)}/sessions/${v.id}`)
    tell('The session is ended')
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
        <Empty icon="visitors" title="Nobody has this code here">It may be of another room, misheard, or of a place that has lapsed: then the visitor is new in line.</Empty>
      ) : !asked.data ? <Skeleton /> : asked.data.map((v) => (
        <Card key={v.id} title={<>{v.reference} <Pill tone={standings[v.standing].tone}>{standings[v.standing].word}</Pill></>} lead={standings[v.standing].why}
          actions={v.standing === 'active' && may('edit', room.zone.id, room.id) && <Button kind="danger" onClick={revoke(v)}>End the session…</Button>}>
          <dl class="pairs">
            {v.ahead !== null && <div><dt>People before</dt><dd><b>{number(v.ahead)}</b></dd></div>}
            {v.standing === 'waiting' && v.ahead === null && <div><dt>People before</dt><dd>not known: places are drawn</dd></div>}
            <Moment title="Came" at={v.arrived_at} />
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
