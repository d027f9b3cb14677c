import { NumberField, SelectField, TextArea, TextField, Toggle, Field as Labelled } from '../ui/field'
import { Button } from '../ui/basic'
import { type Field } from './model/fields'

interface Props {
  field: Field
  value: any
  onChange: (v: any) => void
  error?: string
  disabled?: boolean
}

/** The control that fits a field of the API. */
export function Input({ field: f, value, onChange, error, disabled }: Props) {
  const common = { label: f.label, name: f.name, help: f.help, error, disabled, required: f.required }
  switch (f.kind) {
    case 'bool':
      return <Toggle {...common} value={!!value} onChange={onChange} />
    case 'number':
      return <NumberField {...common} unit={f.unit} min={f.min} max={f.max} value={value ?? null} onChange={onChange} />
    case 'choice':
      return (
        <SelectField {...common} value={String(value ?? '')} options={f.options!.map((o) => ({ value: o, text: o }))}
          onChange={(v) => onChange(typeof f.initial === 'number' ? Number(v) : v)} />
      )
    case 'choices':
      return (
        <>
          {f.options!.map((o) => (
            <Toggle {...common} key={o} label={`${f.label}: ${o}`} value={(value ?? []).includes(o)}
              onChange={(on) => onChange(on ? [...(value ?? []), o] : (value ?? []).filter((x: string) => x !== o))} />
          ))}
        </>
      )
    case 'routes':
      return <Routes {...common} value={value ?? []} onChange={onChange} />
    case 'lanes':
      return <Lanes {...common} value={value ?? []} onChange={onChange} />
    case 'html':
      return <TextArea {...common} mono rows={6} value={value ?? ''} onChange={onChange} />
    default:
      return <TextField {...common} value={value ?? ''} onChange={onChange} />
  }
}

interface Route {
  host: string
  path: string
}

function Routes({ value, onChange, disabled, ...f }: { label: string; name: string; help: string; error?: string; value: Route[]; onChange: (v: Route[]) => void; disabled?: boolean }) {
  const put = (i: number, r: Partial<Route>) => onChange(value.map((x, j) => (j === i ? { ...x, ...r } : x)))
  return (
    <Labelled {...f}>
      {(ids) => (
        <div class="stack" role="group" {...ids} tabIndex={-1}>
          {value.map((r, i) => (
            <div class="line" key={i}>
              <input aria-label={`Host of route ${i + 2}`} placeholder="host" value={r.host} disabled={disabled} onInput={(e) => put(i, { host: e.currentTarget.value })} />
              <input aria-label={`Path of route ${i + 2}`} placeholder="/" value={r.path} disabled={disabled} onInput={(e) => put(i, { path: e.currentTarget.value })} />
              {!disabled && <Button small kind="quiet" icon="trash" label={`Remove route ${i + 2}`} onClick={() => onChange(value.filter((_, j) => j !== i))} />}
            </div>
          ))}
          {!disabled && <div><Button small icon="plus" onClick={() => onChange([...value, { host: '', path: '/' }])}>Add a route</Button></div>}
          {disabled && !value.length && <span class="quiet">none</span>}
        </div>
      )}
    </Labelled>
  )
}

type Lane = Record<string, string | number>

const laneParts = [
  ['name', 'Name', 'members'], ['priority', 'Priority, 0 to 100', '0'], ['share', 'Share of the turns in percent', '0'], ['reserved', 'Reserved part of both limits in percent', '0'],
  ['expression', 'Expression: which requests join it', 'ip.src in $members'], ['claim', 'Claim: which tokens join it', 'gold'],
] as const

const numbers = ['priority', 'share', 'reserved']

function Lanes({ value, onChange, disabled, ...f }: { label: string; name: string; help: string; error?: string; value: Lane[]; onChange: (v: Lane[]) => void; disabled?: boolean }) {
  const put = (i: number, part: string, to: string) => onChange(value.map((x, j) => (j === i ? { ...x, [part]: numbers.includes(part) && /^\d{1,9}$/.test(to) ? Number(to) : to } : x)))
  return (
    <Labelled {...f}>
      {(ids) => (
        <div class="stack" role="group" {...ids} tabIndex={-1}>
          {value.map((lane, i) => (
            <fieldset key={i} disabled={disabled}>
              <legend>Lane {i + 1}</legend>
              {laneParts.map(([part, label, example]) => (
                <label class="lane" key={part}><span class="quiet">{label}</span><input placeholder={example} value={lane[part] ?? ''} onInput={(e) => put(i, part, e.currentTarget.value)} /></label>
              ))}
              {!disabled && <Button small kind="quiet" icon="trash" label={`Remove lane ${i + 1}`} onClick={() => onChange(value.filter((_, j) => j !== i))} />}
            </fieldset>
          ))}
          {!disabled && <div><Button small icon="plus" onClick={() => onChange([...value, { name: '', priority: 0, share: 0, reserved: 0, expression: '', claim: '' }])}>Add a lane</Button></div>}
          {disabled && !value.length && <span class="quiet">none</span>}
        </div>
      )}
    </Labelled>
  )
}
