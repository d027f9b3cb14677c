import { useEffect, useRef, useState } from 'preact/hooks'
import { Store, useStore } from '../core/store'
import { Icon } from './icons'

interface Toast {
  id: number
  text: string
  tone: 'ok' | 'bad' | 'info'
  undo?: () => Promise<unknown>
  seconds: number
}

const toasts = new Store<Toast[]>([])
let last = 0

const drop = (id: number) => toasts.update((all) => all.filter((t) => t.id !== id))

/** Says something in a corner for a while. */
export function tell(text: string, tone: Toast['tone'] = 'ok') {
  toasts.update((all) => [...all.slice(-3), { id: ++last, text, tone, seconds: tone === 'bad' ? 15 : 6 }])
}

/** Says what was done, and offers for 30 seconds to take it back. */
export function done(text: string, undo: () => Promise<unknown>) {
  toasts.update((all) => [...all.slice(-3), { id: ++last, text, tone: 'ok', undo, seconds: 30 }])
}

function One({ toast }: { toast: Toast }) {
  const [left, set] = useState(toast.seconds)
  const [busy, work] = useState(false)
  const held = useRef(false)
  useEffect(() => {
    const timer = setInterval(() => !held.current && set((n) => n - 1), 1000)
    return () => clearInterval(timer)
  }, [])
  useEffect(() => {
    if (left <= 0 && !busy) drop(toast.id)
  }, [left, busy])
  const hold = (on: boolean) => () => {
    held.current = on
  }
  const undo = async () => {
    work(true)
    try {
      await toast.undo!()
      drop(toast.id)
      tell('Undone')
    } catch (e) {
      drop(toast.id)
      tell('Could not undo: ' + (e as Error).message, 'bad')
    }
  }
  return (
    <div class={'toast ' + toast.tone} onMouseEnter={hold(true)} onMouseLeave={hold(false)} onFocusIn={hold(true)} onFocusOut={hold(false)}>
      <Icon name={toast.tone === 'bad' ? 'warning' : toast.tone === 'ok' ? 'check' : 'info'} />
      <p>{toast.text}</p>
      {toast.undo && (
        <button type="button" class="button small" onClick={undo} disabled={busy}>
          <Icon name="undo" size={16} />
          <span>Undo <span class="left" aria-hidden="true">{left}</span></span>
        </button>
      )}
      <button type="button" class="button quiet small alone" aria-label="Dismiss" onClick={() => drop(toast.id)}><Icon name="cross" size={16} /></button>
    </div>
  )
}

/** Where they appear. */
export function Toasts() {
  const all = useStore(toasts)
  return (
    <div class="toasts" role="status" aria-label="Messages">
      {all.map((t) => <One key={t.id} toast={t} />)}
    </div>
  )
}
