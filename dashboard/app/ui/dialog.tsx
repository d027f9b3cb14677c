import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Store, useStore } from '../core/store'
import { Button } from './basic'

/** A dialog over the page. The browser keeps the focus in it and gives it back; Escape closes, unless only its actions may. */
export function Dialog({ title, onClose, children, actions, wide }: { title: ComponentChildren; onClose?: () => void; children?: ComponentChildren; actions?: ComponentChildren; wide?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  useLayoutEffect(() => { // before the next key: what is typed first would go elsewhere
    const d = ref.current!
    const before = document.activeElement as HTMLElement | null
    d.showModal()
    return () => {
      d.close()
      before?.focus?.()
    }
  }, [])
  return (
    <dialog ref={ref} class={wide ? 'wide' : undefined} aria-labelledby={id} onCancel={(e) => { e.preventDefault(); onClose?.() }} onMouseDown={(e) => e.target === ref.current && onClose?.()}
      onClose={() => ref.current?.showModal() /* a second Escape closes it, whatever the page says */}>
      <div class="inside">
        <header>
          <h2 id={id}>{title}</h2>
          {onClose && <Button kind="quiet" small icon="cross" label="Close" onClick={onClose} />}
        </header>
        <div class="body">{children}</div>
        {actions && <footer>{actions}</footer>}
      </div>
    </dialog>
  )
}

interface Question {
  title: string
  body?: ComponentChildren
  /** What the button says: the deed, like "Drain the room". */
  action: string
  /** What the other button says instead of Cancel. */
  keep?: string
  danger?: boolean
  /** What has to be typed first: the name of what is lost. */
  typed?: string
  answer: (yes: boolean) => void
}

const question = new Store<Question | null>(null)

/** Asks before something is done. */
export function confirm(q: Omit<Question, 'answer'>): Promise<boolean> {
  question.value?.answer(false)
  return new Promise((answer) => question.set({ ...q, answer }))
}

function Ask({ q }: { q: Question }) {
  const [text, set] = useState('')
  const close = (yes: boolean) => {
    question.set(null)
    q.answer(yes)
  }
  const ready = !q.typed || text.trim() === q.typed
  return (
    <Dialog
      title={q.title}
      onClose={() => close(false)}
      actions={
        <>
          <Button onClick={() => close(false)} autofocus={q.danger && !q.typed}>{q.keep ?? 'Cancel'}</Button>
          <Button kind={q.danger ? 'danger' : 'main'} disabled={!ready} autofocus={!q.danger && !q.typed} onClick={() => close(true)}>{q.action}</Button>
        </>
      }
    >
      {q.body}
      {q.typed && (
        <form onSubmit={(e) => { e.preventDefault(); if (ready) close(true) }}>
          <label class="field">
            <span class="label">Type <strong>{q.typed}</strong> to confirm</span>
            <input value={text} onInput={(e) => set(e.currentTarget.value)} autocomplete="off" spellcheck={false} autofocus />
          </label>
        </form>
      )}
    </Dialog>
  )
}

/** Where questions appear. */
export function Questions() {
  const q = useStore(question)
  return q && <Ask key={q.title} q={q} />
}
