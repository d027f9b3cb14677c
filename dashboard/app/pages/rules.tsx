import { useState } from 'preact/hooks'
import type { RoomPageProps } from '../core/page'
import { type Answer, call, Problem, useAsk } from '../core/api'
import { moment } from '../core/format'
import { publishedPath } from '../core/room'
import { setQuery } from '../core/router'
import { mayLeave } from '../core/unsaved'
import { Button, Card, confirm, done, Empty, Failed, Note, Pill, Skeleton, Table, tell } from '../ui'
import type { Values } from './model/fields'
import { warnings } from './model/rule'
import { deeds, editable, WhyNot } from './parts'
import { RuleForm } from './rule-form'
import { Request, tryRule, useRequest } from './rule-test'
import './pages.css'

/** The rules of a room: what passes it. */
export function Rules({ room, query }: RoomPageProps) {
  const path = publishedPath(room) + '/rules'
  const asked = useAsk<Values[]>(path)
  const request = useRequest(room)
  const [matched, match] = useState<Record<string, string> | null>(null)
  if (asked.error && !asked.data) return <Failed error={asked.error} retry={asked.reload} />
  if (!asked.data) return <Skeleton lines={5} />
  const rules = asked.data
  const may = editable(room)

  // Every change is answered with the whole list.
  const change = async (method: string, at: string, body?: unknown) => {
    try {
      const a = await call<Values[]>(method, path + at, body, { ifMatch: asked.etag || undefined })
      asked.put(a.result, a.etag)
      match(null)
      return a
    } catch (e) {
      if (!(e instanceof Problem) || e.status !== 412) throw e
      const fresh = await call<Values[]>('GET', path)
      asked.put(fresh.result, fresh.etag)
      throw new Problem(412, [{ code: 0, message: 'Someone else changed the rules of this room. You see them as they are now: try again.' }])
    }
  }
  const back = (was: readonly Values[], made: Answer<Values[]>) => async () => {
    const a = await call<Values[]>('PUT', path, was, { ifMatch: made.etag }).catch((e) => {
      asked.reload()
      throw e.status === 412 ? new Problem(412, [{ code: 0, message: 'someone else changed the rules in the meantime. Their change stays.' }]) : e
    })
    asked.put(a.result, a.etag)
  }

  const chosen = query.get('rule')
  if (chosen) {
    const rule = chosen === 'new' ? undefined : rules.find((r) => r.id === chosen)
    if (chosen !== 'new' && !rule) return <Empty icon="rules" title="There is no such rule" action={<Button onClick={() => setQuery({ rule: null })}>All rules</Button>} />
    const close = () => setQuery({ rule: null })
    return (
      <RuleForm key={chosen} room={room} rule={rule} rules={rules} request={request} fixed={!may} path={path} onClose={async () => { if (await mayLeave()) close() }}
        save={async (r) => {
          const made = await change(rule ? 'PATCH' : 'POST', rule ? `/${rule.id}` : '', r)
          close()
          done(`The rule is ${r.enabled ? 'enabled' : 'saved as a draft'}`, back(rules, made))
        }} />
    )
  }

  const turn = (r: Values) => async () => {
    const made = await change('PATCH', `/${r.id}`, { action: r.action, expression: r.expression, enabled: !r.enabled })
    done(r.enabled ? 'The rule is disabled' : 'The rule is enabled', back(rules, made))
  }
  const move = (r: Values, to: number) => () => change('PATCH', `/${r.id}`, { action: r.action, expression: r.expression, position: { index: to + 1 } })
  const remove = (r: Values) => async () => {
    if (!(await confirm({ title: 'Delete this rule?', action: 'Delete the rule', danger: true, body: <p><code>{r.expression}</code></p> }))) return
    const made = await change('DELETE', `/${r.id}`)
    done('Rule deleted', back(rules, made))
  }
  const test = async () => {
    const out: Record<string, string> = {}
    for (const r of rules) {
      const t = await tryRule(r.expression, room.id, request.value)
      out[r.id] = !t.valid ? 'not valid' : t.exhausted ? 'too slow' : t.matches ? 'matches' : 'no match'
    }
    match(out)
    const passes = rules.filter((r) => r.enabled && out[r.id] === 'matches')
    tell(passes.length ? `This request bypasses the room: ${passes.length === 1 ? 'a rule matches' : `${passes.length} rules match`}` : 'No enabled rule matches: the room decides as usual', 'info')
  }
  return (
    <>
      <WhyNot room={room} />
      <Card flush title="Bypass rules" lead="A request that matches one of these rules goes to the origin unchanged and uncounted, whatever the room is doing."
        actions={may && <Button kind="main" icon="plus" onClick={() => setQuery({ rule: 'new' })}>New rule</Button>}>
        {!rules.length ? (
          <Empty icon="rules" title="No rules" action={may && <Button kind="main" icon="plus" onClick={() => setQuery({ rule: 'new' })}>New rule</Button>}>
            Let requests bypass the room that must not wait: from your office, monitoring, payment callbacks, assets of pages.
          </Empty>
        ) : (
          <Table caption="Bypass rules" rows={rules} id={(r) => r.id} columns={[
            { title: 'Rule', name: true, cell: (r) => (
              <>
                <button type="button" class="link" onClick={() => setQuery({ rule: r.id })}>{r.description || 'Without a description'}</button>
                <code class="below">{r.expression}</code>
                {warnings(r.expression).slice(0, 1).map((w) => <span key={w} class="below warned">{w}</span>)}
              </>
            ) },
            { title: 'State', cell: (r) => <Pill tone={r.enabled ? 'ok' : 'off'}>{r.enabled ? 'Enabled' : 'Draft'}</Pill> },
            ...(matched ? [{ title: 'The request', cell: (r: Values) => <b>{matched[r.id]}</b> }] : []),
            { title: 'Changed', wide: true, cell: (r) => <>{moment(r.last_updated)}<span class="below quiet">version {r.version}</span></> },
            { title: deeds, cell: (r) => may && (
              <div class="actions end">
                <Button small kind="quiet" icon="up" label="Move up" disabled={rules[0] === r} onClick={move(r, rules.indexOf(r) - 1)} />
                <Button small kind="quiet" icon="down" label="Move down" disabled={rules.at(-1) === r} onClick={move(r, rules.indexOf(r) + 1)} />
                <Button small kind="quiet" icon={r.enabled ? 'pause' : 'play'} label={r.enabled ? 'Disable' : 'Enable'} onClick={turn(r)} />
                <Button small kind="quiet" icon="trash" label="Delete the rule" onClick={remove(r)} />
              </div>
            ) },
          ]} />
        )}
      </Card>
      {rules.length > 0 && (
        <Card title="Test a request" lead="Paste a request: a curl command as browsers copy it, raw HTTP, or a URL.">
          <Request {...request} />
          <div><Button icon="check" onClick={test}>Test all rules</Button></div>
        </Card>
      )}
      <Note>If a page bypasses the room, let its images and scripts bypass it too: otherwise their requests start a wait of their own. The order of rules does not matter: one match is enough.</Note>
    </>
  )
}
