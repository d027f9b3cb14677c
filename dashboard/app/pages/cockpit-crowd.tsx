import { useEffect, useState } from 'preact/hooks'
import { del, post, useAsk } from '../core/api'
import { count, number } from '../core/format'
import type { Room } from '../core/live'
import { ownPath } from '../core/room'
import { Bar, Button, Card, confirm, Note, NumberField } from '../ui'

interface Crowd {
  visitors: number
  began_at: string | null
  ended_at: string | null
  arrived: number
  waiting: number
  active: number
  admitted: number
  gave_up: number
  failed: number
  failure: string | null
}

/** Simulated visitors, to see how the room does before real ones come. The charts beside it show the room meanwhile. */
export function TryIt({ room }: { room: Room }) {
  const path = ownPath(room) + '/crowd'
  const [running, run] = useState(false)
  const asked = useAsk<Crowd>(path, running ? 1 : undefined)
  const [visitors, come] = useState<number | null>(200)
  const [over, spread] = useState<number | null>(30)
  const crowd = asked.data
  const known = !!crowd?.began_at
  const on = known && !crowd.ended_at
  useEffect(() => run(on), [on])
  const waiting = room.status ? room.status.waiting + room.status.dormant : 0
  const send = async () => {
    if (!(await confirm({ title: `Send ${count(visitors!, 'visitor')} to ${room.name}?`, action: 'Send', body: <p>They queue and take slots like real visitors, and count in the analytics. Real visitors who come meanwhile wait behind them. Your origin gets no requests.</p> }))) return
    asked.put(await post<Crowd>(path, { visitors, over_seconds: over ?? 0 }))
  }
  const valid = visitors !== null && visitors >= 1 && visitors <= 2000 && (over ?? 0) >= 0 && (over ?? 0) <= 600
  return (
    <Card title="Try it" lead="Send simulated visitors with real requests, to see the queue move before the sale.">
      {on ? (
        <div class="actions"><Button icon="stop" onClick={async () => asked.put(await del<Crowd>(path))}>Stop the visitors</Button></div>
      ) : (
        <div class="admit three">
          <NumberField label="Visitors" name="visitors" value={visitors} onChange={come} min={1} max={2000} />
          <NumberField label="Over" name="over_seconds" value={over} onChange={spread} min={0} max={600} unit="seconds" />
          <Button icon="play" disabled={!valid || waiting > 0} onClick={send}>Send</Button>
        </div>
      )}
      {known && (
        <div class="gauge" role="status">
          <Bar value={crowd.admitted + crowd.gave_up} of={crowd.visitors} label="Simulated visitors who were admitted or gave up" />
          <span class="quiet small">{on ? '' : 'Last time: '}{number(crowd.arrived)} of {count(crowd.visitors, 'visitor')} arrived, {number(crowd.waiting)} wait, {number(crowd.admitted)} were admitted, {number(crowd.gave_up)} gave up.</span>
        </div>
      )}
      {known && crowd.failed > 0 && <Note tone="warn" title={`${count(crowd.failed, 'request')} failed`}>{crowd.failure}</Note>}
      {!on && waiting > 0 && <p class="quiet small">Visitors are waiting in this room. Try a quiet one.</p>}
    </Card>
  )
}
