import { useState } from 'preact/hooks'
import { Problem } from '../core/api'
import type { Room } from '../core/live'
import { Button, Card, Choice, confirm, curl, Note, Snippet, tell, TextArea, TextField } from '../ui'
import type { Values } from './model/fields'
import { type Condition, expressionOf, type Form, formOf, kindOf, operators, ruleFields, warnings } from './model/rule'
import { rulesInTerraform } from './model/snippet'
import { useUnsaved } from './parts'
import { Outcome, Request, type RequestState, useTried } from './rule-test'

interface Props {
  room: Room
  rule?: Values
  rules: readonly Values[]
  request: RequestState
  fixed: boolean
  path: string
  onClose: () => void
  save: (r: Values) => Promise<void>
}

const empty: Condition = { field: 'http.request.uri.path', key: '', op: 'starts_with', value: '' }

/** One rule, built or written, tried while it is typed. */
export function RuleForm({ room, rule, rules, request, fixed, path, onClose, save }: Props) {
  const [description, describe] = useState<string>(rule?.description ?? '')
  const [text, write] = useState<string>(rule?.expression ?? '')
  const [form, build] = useState<Form | null>(() => (rule ? formOf(rule.expression) : [[empty]]))
  const [way, go] = useState<'build' | 'text'>(form ? 'build' : 'text')
  const [fault, say] = useState('')
  const { tried, error } = useTried(text, room.id, request.value)
  const changed = text !== (rule?.expression ?? '') || description !== (rule?.description ?? '')
  useUnsaved(changed)

  const set = (f: Form) => {
    build(f)
    write(f.some((g) => g.some((c) => c.value || c.op === 'exists' || kindOf(c.field) === 'bool')) ? expressionOf(f) : '')
  }
  const toWay = (w: 'build' | 'text') => {
    if (w === 'build') {
      const f = text.trim() ? formOf(text) : [[empty]]
      if (!f) return tell('The form cannot show this expression. Edit it as text.', 'info')
      build(f)
    }
    go(w)
  }
  const notes = [...(tried?.wide ? ['Anyone with an ordinary browser would bypass the room, on any path.'] : []), ...(tried?.valid ? warnings(text) : [])]
  const keep = (enabled: boolean) => async () => {
    if (enabled && tried?.wide && !(await confirm({ title: 'Let nearly every visitor bypass the room?', danger: true, action: 'Enable the rule', body: <p>An ordinary visit matches this rule, so the room would protect nothing.</p> }))) return
    try {
      await save({ action: 'bypass_waiting_room', expression: text.trim(), description, enabled })
    } catch (e) {
      if (!(e instanceof Problem)) throw e
      say(e.fields.expression ?? e.message)
      tell(e.message, 'bad')
    }
  }
  const body = { action: 'bypass_waiting_room', expression: text.trim(), ...(description && { description }) }
  const after = rule ? rules.map((r) => (r === rule ? { ...r, ...body } : r)) : [...rules, body]

  return (
    <>
      <div class="row between">
        <Button kind="quiet" icon="left" onClick={onClose}>All rules</Button>
        {!fixed && (
          <div class="actions">
            <Button disabled={!text.trim() || tried?.valid === false} onClick={keep(false)}>Save as a draft</Button>
            <Button kind="main" disabled={!text.trim() || tried?.valid === false} onClick={keep(true)}>Save and enable</Button>
          </div>
        )}
      </div>
      <div class="grid wide">
        <Card title={rule ? 'Rule' : 'New rule'} actions={<Choice small label="Editor" value={way} onChange={toWay} options={[{ value: 'build', text: 'Form' }, { value: 'text', text: 'Text' }]} />}>
          <TextField label="Description" name="description" disabled={fixed} value={description} onChange={describe} />
          {way === 'build' && form
            ? <Builder form={form} fixed={fixed} set={set} />
            : <TextArea mono rows={6} label="Expression" name="expression" disabled={fixed} error={fault} maxLength={4096} value={text} onChange={(t) => { write(t); say('') }} help="Like: ip.src in {192.0.2.0/24} or starts_with(http.request.uri.path, &quot;/health&quot;)" />}
          {way === 'build' && text && <pre class="expression" aria-label="The expression">{text}</pre>}
          {notes.map((n) => <Note key={n} tone="warn" title="Matches many requests">{n}</Note>)}
        </Card>
        <Card title="Live test">
          <Outcome expression={text} tried={tried} error={error} />
          <Request {...request} />
        </Card>
      </div>
      {text.trim() && (
        <Card title="As code">
          <Snippet parts={[
            { title: 'curl', text: curl(rule ? 'PATCH' : 'POST', path + (rule ? `/${rule.id}` : ''), body) },
            { title: 'Terraform', text: rulesInTerraform(room.zone.id, room.id, room.name, after) },
          ]} />
        </Card>
      )}
    </>
  )
}

function Builder({ form, fixed, set }: { form: Form; fixed: boolean; set: (f: Form) => void }) {
  const put = (g: number, c: number, to: Partial<Condition>) => set(form.map((group, i) => (i === g ? group.map((x, j) => (j === c ? { ...x, ...to } : x)) : group)))
  const remove = (g: number, c: number) => {
    const left = form.map((group, i) => (i === g ? group.filter((_, j) => j !== c) : group)).filter((group) => group.length)
    set(left.length ? left : [[empty]])
  }
  return (
    <div class="builder">
      {form.map((group, g) => (
        <fieldset key={g} disabled={fixed}>
          <legend>{g ? 'or if' : 'A request bypasses the room if'}</legend>
          {group.map((c, i) => {
            const kind = kindOf(c.field)
            const sample = ruleFields.find((f) => f.name === c.field)?.sample
            const set = /(^|not )in$/.test(c.op)
            return (
              <div class="condition" key={i}>
                {i > 0 && <span class="and">and</span>}
                <select aria-label="Field" value={c.field} onChange={(e) => { const f = e.currentTarget.value; put(g, i, { field: f, key: '', op: operators[kindOf(f)][0].op, value: '' }) }}>
                  {ruleFields.map((f) => <option key={f.name} value={f.name} selected={f.name === c.field}>{f.label}</option>)}
                </select>
                {kind === 'map' && <input aria-label="Name" placeholder="name" value={c.key} onInput={(e) => put(g, i, { key: e.currentTarget.value })} />}
                <select aria-label="Comparison" value={c.op} onChange={(e) => put(g, i, { op: e.currentTarget.value })}>
                  {operators[kind].map((o) => <option key={o.op} value={o.op} selected={o.op === c.op}>{o.label}</option>)}
                </select>
                {kind !== 'bool' && c.op !== 'exists' && (
                  <input aria-label={set ? 'Values, with spaces between' : 'Value'} placeholder={set ? `${sample} …, or $list` : sample} value={c.value} onInput={(e) => put(g, i, { value: e.currentTarget.value })} />
                )}
                <Button small kind="quiet" icon="cross" label="Remove the condition" onClick={() => remove(g, i)} />
              </div>
            )
          })}
          {!fixed && <div><Button small icon="plus" onClick={() => set(form.map((x, i) => (i === g ? [...x, empty] : x)))}>And</Button></div>}
        </fieldset>
      ))}
      {!fixed && <div><Button small icon="plus" onClick={() => set([...form, [empty]])}>Or</Button></div>}
    </div>
  )
}
