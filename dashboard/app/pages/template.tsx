import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { RoomPageProps } from '../core/page'
import { call, post, Problem, putBack, useAsk } from '../core/api'
import { number, percent } from '../core/format'
import { publishedPath } from '../core/room'
import { setQuery } from '../core/router'
import { mayLeave } from '../core/unsaved'
import { Bar, Button, Card, Choice, curl, Dialog, done, Failed, Note, Pill, Skeleton, Snippet, tell } from '../ui'
import type { Values } from './model/fields'
import { roomInTerraform } from './model/snippet'
import { editable, saveAs, TextDiff, useUnsaved, WhyNot } from './parts'
import { example } from './model/example'
import { pieces } from './model/highlight'
import './template.css'

interface Checked {
  valid: boolean
  faults: { message: string; fix: string; line: number; column: number }[]
  bytes: number
  bytes_max: number
  bytes_gzip: number | null
  accessibility: { rule: string; message: string; line: number }[]
  states: string[]
  languages: string[]
  preview: Record<string, string> | null
}

/** The waiting page of a room or of one of its events: written, checked, and looked at in every state. */
export function Template({ room, query }: RoomPageProps) {
  const path = publishedPath(room)
  const settings = useAsk<Values>(path)
  const events = useAsk<Values[]>(path + '/events')
  const of = events.data?.find((e) => e.id === query.get('event'))
  if (settings.error && !settings.data) return <Failed error={settings.error} retry={settings.reload} />
  if (!settings.data || !events.data) return events.error ? <Failed error={events.error} retry={events.reload} /> : <Skeleton lines={8} />
  const own = events.data.filter((e) => e.custom_page_html !== null)
  const choose = async (select: HTMLSelectElement) => {
    const to = select.value
    if (await mayLeave()) setQuery({ event: to || null })
    else select.value = of?.id ?? ''
  }
  return (
    <>
      <WhyNot room={room} />
      {events.data.length > 0 && (
        <label class="inline">Page of
          <select value={of?.id ?? ''} onChange={(e) => choose(e.currentTarget)}>
            <option value="" selected={!of}>the room</option>
            {events.data.map((e) => <option key={e.id} value={e.id} selected={e === of}>the event {e.name}{own.includes(e) ? '' : ' (the room\'s)'}</option>)}
          </select>
        </label>
      )}
      {of
        ? <Editor key={of.id} room={room} settings={settings.data} path={`${path}/events/${of.id}`} of={of} put={() => events.reload()} />
        : <Editor key="room" room={room} settings={settings.data} path={path} of={settings.data} etag={settings.etag} put={settings.put} />}
    </>
  )
}

interface EditorProps {
  room: RoomPageProps['room']
  settings: Values
  path: string
  of: Values // the room or the event
  etag?: string
  put: (v: Values, etag: string) => void
}

function Editor({ room, settings, path, of, etag, put }: EditorProps) {
  const event = of !== settings
  const before: string = of.custom_page_html ?? (event ? settings.custom_page_html : '') ?? ''
  const [text, write] = useState(before)
  const [language, speak] = useState<string>(settings.default_template_language)
  const { checked, error, busy } = useCheck(text, language)
  const [reviewing, review] = useState(false)
  const [wrapped, wrap] = useState(false)
  const area = useRef<HTMLTextAreaElement>(null)
  const fixed = !editable(room)
  const changed = text !== before
  useUnsaved(changed)

  const send = (ifMatch: string) => call<Values>('PATCH', path, { custom_page_html: text }, { ifMatch })
  // What others have changed beside the page is no reason to hold it back. An event comes from a list, without a version.
  const sendOver = async () => {
    try {
      if (etag) return await send(etag)
    } catch (e) {
      if (!(e instanceof Problem) || e.status !== 412) throw e
    }
    const fresh = await call<Values>('GET', path)
    if (fresh.result.custom_page_html === of.custom_page_html) return send(fresh.etag)
    put(fresh.result, fresh.etag)
    throw new Problem(412, [{ code: 0, message: 'Someone else changed this page. Yours is still here: review what would change, and save again.' }])
  }
  const save = async () => {
    try {
      const a = await sendOver()
      put(a.result, a.etag)
      review(false)
      done('Page saved. Visitors see it at their next update.', async () => {
        const b = await putBack<Values>(path, { custom_page_html: of.custom_page_html }, a)
        put(b.result, b.etag)
        write(before)
      })
    } catch (e) {
      review(false)
      if (!(e instanceof Problem)) throw e
      tell(e.message, 'bad')
    }
  }
  const goTo = (line: number, column = 1) => {
    const lines = text.split('\n')
    const at = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0) + Math.max(0, column - 1)
    const t = area.current!
    wrap(false)
    t.wrap = 'off' // at once: a line of the text is a line of the field
    t.focus()
    t.setSelectionRange(at, at + Math.max(1, Math.min(12, (lines[line - 1] ?? '').length - column + 1)))
    t.scrollTop = Math.max(0, (line - 4) * parseFloat(getComputedStyle(t).lineHeight))
  }
  const insert = (name: string) => {
    area.current!.focus()
    document.execCommand('insertText', false, `{{${name}}}`) // unlike setRangeText, the browser can undo it
  }
  const load = async (f: File | undefined) => {
    if (!f) return
    if (f.size > (checked?.bytes_max ?? 1048576)) return tell(`This file has ${number(f.size)} bytes, more than allowed`, 'bad')
    write(await f.text())
  }

  return (
    <>
      <div class="grid editor">
        <Card title="The page" lead={text ? undefined : 'No custom page: visitors see the built-in page in their language.'} actions={!fixed && (
          <>
            <label class="button small file">Import<input type="file" accept=".html,.htm,.mustache,text/html" class="unseen" onChange={(e) => load(e.currentTarget.files?.[0])} /></label>
            <Button small icon="download" label="Download the page" disabled={!text} onClick={() => saveAs(`${of.name}.html`, 'text/html', text)} />
            <Button small onClick={() => write(example)}>Example</Button>
            <Button small disabled={!text} onClick={() => write('')}>Built-in</Button>
            <Button small pressed={wrapped} onClick={() => wrap(!wrapped)}>Wrap lines</Button>
          </>
        )}>
          <label class="unseen" for="template">Template</label>
          <div class={wrapped ? 'sheet wrapped' : 'sheet'}>
            <Colors text={text} of={area} />
            <textarea id="template" ref={area} class="mono code" rows={21} spellcheck={false} disabled={fixed} value={text} wrap={wrapped ? 'soft' : 'off'}
              onInput={(e) => write(e.currentTarget.value)} onDragOver={(e) => e.preventDefault()} onDrop={(e) => { if (e.dataTransfer?.files.length) { e.preventDefault(); load(e.dataTransfer.files[0]) } }} />
          </div>
          {checked && <Size {...checked} />}
          {error && <Note tone="bad" title="This page cannot be checked">{error}</Note>}
          {checked?.faults.map((f) => (
            <Note key={f.message + f.line} tone="bad" title={`Line ${f.line}, column ${f.column}`} action={<Button small onClick={() => goTo(f.line, f.column)}>Show</Button>}>
              {f.message}{f.fix && <span class="below">{f.fix}</span>}
            </Note>
          ))}
          <Names insert={fixed ? undefined : insert} />
          {!fixed && changed && (
            <div class="actions">
              <Button kind="main" disabled={!checked?.valid || busy} onClick={() => review(true)}>Review and save</Button>
              <Button kind="quiet" onClick={() => write(before)}>Discard</Button>
            </div>
          )}
        </Card>
        <Preview checked={checked} language={language} speak={speak} builtIn={!text} />
      </div>
      {checked && (
        <Card title="Accessibility" lead="Barriers for visitors who use a screen reader, a keyboard or magnification. You can save the page anyway.">
          {checked.accessibility.length === 0 ? <p><Pill tone="ok">No barriers found</Pill></p> : (
            <ul class="stack">
              {checked.accessibility.map((b) => <li key={b.rule + b.line} class="row between"><span>{b.message} <code>{b.rule}</code></span><Button small onClick={() => goTo(b.line)}>Line {b.line}</Button></li>)}
            </ul>
          )}
        </Card>
      )}
      {reviewing && (
        <Dialog wide title={`Save the page of ${of.name}?`} onClose={() => review(false)} actions={<><Button onClick={() => review(false)}>Keep editing</Button><Button kind="main" onClick={save}>Save</Button></>}>
          <TextDiff name="custom_page_html" before={before} after={text} />
          <h3>As code</h3>
          <Snippet parts={[{ title: 'curl', text: curl('PATCH', path, { custom_page_html: text }) }, ...(event ? [] : [{ title: 'Terraform', text: roomInTerraform(room.zone.id, { ...settings, custom_page_html: text }) }])]} />
        </Dialog>
      )}
    </>
  )
}

/** The longest template that is colored, in characters: it is split again at every key. */
const coloredMost = 100_000

/** The text of the field behind it, in colors, if there are any; it scrolls with the field. */
function Colors({ text, of }: { text: string; of: { current: HTMLTextAreaElement | null } }) {
  const colors = useRef<HTMLPreElement>(null)
  const shown = useMemo(() => (text.length <= coloredMost ? pieces(text) : []), [text])
  useEffect(() => {
    const area = of.current!
    const follow = () => {
      colors.current?.scrollTo(area.scrollLeft, area.scrollTop)
    }
    follow()
    area.addEventListener('scroll', follow)
    return () => area.removeEventListener('scroll', follow)
  })
  return shown.length > 0 && <pre ref={colors} class="mono code colors" aria-hidden="true">{shown.map(([kind, t]) => (kind ? <span class={kind}>{t}</span> : t))}{'\n'}</pre>
}

/** What the API says of a page, asked shortly after the last key. */
function useCheck(html: string, language: string) {
  const [state, set] = useState<{ checked?: Checked; error?: string; of?: string }>({})
  useEffect(() => {
    let gone = false
    const timer = setTimeout(() => post<Checked>('/anteroom/v1/templates/check', { html, language })
      .then((checked) => !gone && set({ checked, of: html }), (e) => !gone && set((s) => ({ ...s, of: html, error: (e as Error).message }))), state.checked ? 500 : 0)
    return () => {
      gone = true
      clearTimeout(timer)
    }
  }, [html, language])
  return { ...state, busy: state.of !== html }
}

function Size({ bytes, bytes_max, bytes_gzip }: Checked) {
  return (
    <div class="gauge">
      <Bar value={bytes} of={bytes_max} label="Size of the template" />
      <span class="quiet below">{bytes > 0 && `${number(bytes)} of ${number(bytes_max)} bytes (${percent(bytes / bytes_max)}). `}{bytes_gzip != null && `Each waiting visitor downloads ${number(bytes_gzip)} bytes, compressed${bytes_gzip > 30_000 ? ': a lot when many arrive together' : ''}.`}</span>
    </div>
  )
}

const devices = { phone: [360, 640], tablet: [768, 1024], desktop: [1280, 800] } as const
type Device = keyof typeof devices

const states: Record<string, string> = {
  line: 'Waiting', first: 'First visit', near: 'Nearly there', far: 'Far back', unknown: 'Wait unknown', draw: 'Random order', held: 'Paused or queue all', long: 'Longer than a day', full: 'Queue is full',
  closed: 'Closed (reject)', rejected: 'Closed (reject), with a place', prequeue: 'Before an event', shuffle: 'Before an event with a shuffle', event: 'During an event', sold: 'Closed by an event', drained: 'Draining', few: 'Few left', gone: 'Sold out', message: 'With your message',
  lost: 'Place lost', over: 'Session over', used: 'Ticket used', bound: 'Ticket of another network',
}
const stateWords = (s: string) => states[s] ?? s

function Preview({ checked, language, speak, builtIn }: { checked?: Checked; language: string; speak: (l: string) => void; builtIn: boolean }) {
  const [state, choose] = useState('')
  const [device, hold] = useState<Device>('phone')
  const box = useRef<HTMLDivElement>(null)
  const [room, measure] = useState(360)
  // What was good stays while the page is at fault.
  const last = useRef<Record<string, string> | undefined>(undefined)
  if (checked?.preview) last.current = checked.preview
  const shown = last.current
  const name = shown && (state in shown ? state : checked?.states[0] ?? Object.keys(shown)[0])
  const src = name && shown[name]
  useEffect(() => {
    const o = new ResizeObserver(() => box.current && measure(box.current.clientWidth))
    o.observe(box.current!)
    return () => o.disconnect()
  }, [])
  const [w, h] = devices[device]
  const scale = Math.min(1, room / w)
  const languages = useMemo(() => checked?.languages ?? [language], [checked])
  return (
    <Card title="Preview" lead={builtIn ? 'The built-in page' : undefined} actions={src && <Button small kind="quiet" icon="external" label="Open the preview" href={src} target="_blank" />}>
      <div class="row">
        <Choice small label="Device" value={device} onChange={hold} options={[{ value: 'phone', text: 'Phone' }, { value: 'tablet', text: 'Tablet' }, { value: 'desktop', text: 'Desktop' }]} />
        <label class="inline">State
          <select value={name} onChange={(e) => choose(e.currentTarget.value)}>{(checked?.states ?? []).map((s) => <option key={s} value={s} selected={s === name}>{stateWords(s)}</option>)}</select>
        </label>
        <label class="inline">Language
          <select value={language} onChange={(e) => speak(e.currentTarget.value)}>{languages.map((l) => <option key={l} value={l} selected={l === language}>{l}</option>)}</select>
        </label>
      </div>
      {checked && !checked.valid && shown && <Note tone="warn">The page has an error. This preview shows the last valid version.</Note>}
      <div ref={box} class="device" style={{ height: `${src ? h * scale : 120}px` }}>
        {src
          ? <iframe title={`Preview: ${stateWords(name!)}, ${device}`} src={src} sandbox="allow-scripts" width={w} height={h} style={{ transform: `scale(${scale})`, marginInlineStart: `${Math.max(0, (room - w * scale) / 2)}px` }} />
          : <p class="quiet">{checked ? (checked.valid ? 'Your token is read-only and cannot create previews.' : 'Fix the error to see the preview.') : 'Loading …'}</p>}
      </div>
    </Card>
  )
}

const values: [string, string][] = [
  ['ahead', 'visitors ahead; aheadKnown says whether that is known'], ['waitTime', 'estimated wait in minutes; waitTimeKnown says whether it is known'], ['waitTimeFormatted', 'the same in English'],
  ['queueIsFull', 'the estimated wait is longer than a day'], ['queueAll', 'all new visitors wait'], ['isEventPrequeueing', 'the event has not started'], ['timeUntilEventStart', 'minutes'],
  ['isRejectQueue', 'no visitor is admitted'], ['waitingUsers', 'visitors in the queue'], ['reference', 'the code by which you find the visitor'], ['message', 'your message to the queue'], ['refreshIntervalSeconds', 'seconds until the page refreshes'],
]

function Names({ insert }: { insert?: (name: string) => void }) {
  return (
    <details>
      <summary>Variables for the page</summary>
      <p class="quiet"><code>{'{{ahead}}'}</code> inserts a value, <code>{'{{#ahead}}…{{/ahead}}'}</code> shows a part if it is true, <code>{'{{^ahead}}…{{/ahead}}'}</code> if it is false.</p>
      <dl class="pairs">{values.map(([k, v]) => <div key={k}><dt>{insert ? <Button small kind="quiet" label={`Insert ${k}`} onClick={() => insert(k)}><code>{k}</code></Button> : <code>{k}</code>}</dt><dd>{v}</dd></div>)}</dl>
    </details>
  )
}
