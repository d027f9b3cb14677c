import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { names } from '../core/kept'
import { useStore } from '../core/store'
import { Button } from './basic'
import { tell } from './toast'

/** What every field has. `name` is the member of the API, which is shown to whoever asks for names. */
export interface FieldProps {
  label: string
  name?: string
  help?: ComponentChildren
  error?: string
  required?: boolean
  disabled?: boolean
  /** Something behind the control, like a unit. */
  unit?: string
}

/** Shows and hides the names of the API, for whoever writes scripts. */
export function Names() {
  const shown = useStore(names) === 'shown'
  return <Button small kind="quiet" pressed={shown} title="The names that fields have in the API, in Terraform and in the file" onClick={() => { names.set(shown ? 'hidden' : 'shown') }}>API names</Button>
}

/** The name of a field in the API. */
export const Named = ({ name }: { name: string }) => <code class="name" hidden={useStore(names) !== 'shown'}>{name}</code>

/** Label, help and fault around a control, which gets the ids that tie them together. */
export function Field({ label, name, help, error, unit, required, children }: FieldProps & { children: (ids: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: true }) => ComponentChildren }) {
  const id = useId()
  const described = [help && id + 'h', error && id + 'e'].filter(Boolean).join(' ')
  return (
    <div class={'field' + (error ? ' wrong' : '')}>
      <div class="label">
        <label for={id}>{label}{required && <span class="required" title="required"> *</span>}</label>
        {name && <Named name={name} />}
      </div>
      <div class="control">
        {children({ id, 'aria-describedby': described || undefined, 'aria-invalid': error ? true : undefined })}
        {unit && <span class="unit">{unit}</span>}
      </div>
      {error && <p class="error" id={id + 'e'}>{error}</p>}
      {help && <p class="help" id={id + 'h'}>{help}</p>}
    </div>
  )
}

export function TextField({ value, onChange, type = 'text', placeholder, pattern, autofocus, maxLength, mono, list, ...f }: FieldProps & { value: string; onChange: (v: string) => void; type?: 'text' | 'search' | 'url' | 'password' | 'datetime-local'; placeholder?: string; pattern?: string; autofocus?: boolean; maxLength?: number; mono?: boolean; list?: string[] }) {
  const listID = useId()
  return (
    <Field {...f}>
      {(ids) => (
        <>
          <input {...ids} type={type as 'text'} value={value} placeholder={placeholder} pattern={pattern} autofocus={autofocus} maxLength={maxLength} disabled={f.disabled} required={f.required} class={mono ? 'mono' : undefined} autocomplete="off" spellcheck={false} list={list ? listID : undefined} onInput={(e) => onChange(e.currentTarget.value)} />
          {list && <datalist id={listID}>{list.map((v) => <option key={v} value={v} />)}</datalist>}
        </>
      )}
    </Field>
  )
}

/** A whole number. What is no number is kept as it was typed and given as null. */
export function NumberField({ value, onChange, min, max, step = 1, placeholder, ...f }: FieldProps & { value: number | null; onChange: (v: number | null) => void; min?: number; max?: number; step?: number; placeholder?: string }) {
  const [text, set] = useState(value == null ? '' : String(value))
  useEffect(() => {
    if ((text === '' ? null : Number(text)) !== value) set(value == null ? '' : String(value))
  }, [value])
  return (
    <Field {...f}>
      {(ids) => (
        <input {...ids} type="number" inputMode="numeric" value={text} min={min} max={max} step={step} placeholder={placeholder} disabled={f.disabled} required={f.required}
          onInput={(e) => {
            const t = e.currentTarget.value
            set(t)
            onChange(t === '' || Number.isNaN(Number(t)) ? null : Number(t))
          }} />
      )}
    </Field>
  )
}

export function SelectField<T extends string>({ value, onChange, options, ...f }: FieldProps & { value: T; onChange: (v: T) => void; options: { value: T; text: string; disabled?: boolean }[] }) {
  return (
    <Field {...f}>
      {(ids) => (
        <select {...ids} value={value} disabled={f.disabled} onChange={(e) => onChange(e.currentTarget.value as T)}>
          {options.map((o) => <option key={o.value} value={o.value} disabled={o.disabled} selected={o.value === value}>{o.text}</option>)}
        </select>
      )}
    </Field>
  )
}

export function TextArea({ value, onChange, rows = 4, maxLength, placeholder, mono, ...f }: FieldProps & { value: string; onChange: (v: string) => void; rows?: number; maxLength?: number; placeholder?: string; mono?: boolean }) {
  const ref = useRef<HTMLTextAreaElement>(null)
  return (
    <Field {...f}>
      {(ids) => <textarea {...ids} ref={ref} value={value} rows={rows} maxLength={maxLength} placeholder={placeholder} disabled={f.disabled} class={mono ? 'mono' : undefined} spellcheck={!mono} onInput={(e) => onChange(e.currentTarget.value)} />}
    </Field>
  )
}

/** A switch in a table: what it does is its name. A press is carried out before the switch moves; what that throws is told. */
export function Switch({ value, onChange, label, disabled }: { value: boolean; onChange: (v: boolean) => unknown; label: string; disabled?: boolean }) {
  const [busy, work] = useState(false)
  const press = async () => {
    work(true)
    try {
      await onChange(!value)
    } catch (e) {
      tell((e as Error).message, 'bad')
    } finally {
      work(false)
    }
  }
  return <button type="button" role="switch" class="switch" aria-checked={value} aria-label={label} title={label} aria-busy={busy || undefined} disabled={disabled || busy} onClick={press}><span /></button>
}

/** On or off, in force when pressed or with the form. */
export function Toggle({ value, onChange, label, name, help, disabled, error }: FieldProps & { value: boolean; onChange: (v: boolean) => void }) {
  const id = useId()
  return (
    <div class={'field toggle' + (error ? ' wrong' : '')}>
      <button type="button" role="switch" id={id} aria-checked={value} aria-labelledby={id + 'l'} aria-describedby={help ? id + 'h' : undefined} disabled={disabled} onClick={() => onChange(!value)}><span /></button>
      <div>
        <div class="label"><label id={id + 'l'} for={id}>{label}</label>{name && <Named name={name} />}</div>
        {error && <p class="error">{error}</p>}
        {help && <p class="help" id={id + 'h'}>{help}</p>}
      </div>
    </div>
  )
}
