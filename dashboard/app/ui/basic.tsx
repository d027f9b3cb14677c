import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Problem } from '../core/api'
import type { Tone } from '../core/room'
import { Icon, type IconName } from './icons'
import { tell } from './toast'

type Children = { children?: ComponentChildren }

export interface ButtonProps extends Children {
  /** What a press does; while its promise is open the button is busy, and what it throws is told. */
  onClick?: () => unknown
  href?: string
  icon?: IconName
  kind?: 'plain' | 'main' | 'danger' | 'quiet'
  small?: boolean
  /** For a button with an icon alone. */
  label?: string
  title?: string
  disabled?: boolean
  pressed?: boolean
  type?: 'button' | 'submit'
  busy?: boolean
  /** Has the focus when the dialog that it is in opens. */
  autofocus?: boolean
  target?: string
  download?: boolean | string
  class?: string
}

export function Button(p: ButtonProps) {
  const [working, set] = useState(false)
  const busy = working || p.busy
  const cls = ['button', p.kind ?? 'plain', p.small && 'small', !p.children && 'alone', busy && 'busy', p.class].filter(Boolean).join(' ')
  const inside = (
    <>
      {p.icon && <Icon name={p.icon} size={p.small ? 16 : 18} />}
      {p.children && <span>{p.children}</span>}
    </>
  )
  if (p.href && !p.disabled)
    return (
      <a class={cls} href={p.href} title={p.title ?? p.label} aria-label={p.label} target={p.target} rel={p.target ? 'noopener' : undefined} download={p.download as string}>
        {inside}
      </a>
    )
  const press = async () => {
    if (busy) return
    const result = p.onClick?.()
    if (!(result instanceof Promise)) return
    set(true)
    try {
      await result
    } catch (e) {
      if ((e as Error).name !== 'AbortError') tell((e as Error).message, 'bad')
    } finally {
      set(false)
    }
  }
  return (
    <button type={p.type ?? 'button'} class={cls} onClick={p.onClick && press} autofocus={p.autofocus} disabled={p.disabled} title={p.title ?? p.label} aria-label={p.label} aria-pressed={p.pressed} aria-busy={busy || undefined}>
      {inside}
    </button>
  )
}

const marks: Record<Tone, string> = { ok: '●', busy: '◐', hold: 'Ⅱ', bad: '▲', off: '○', event: '◆' }

/** A state in a word. The sign before it says the tone to whoever sees no colors. */
export function Pill({ tone, children, title }: Children & { tone: Tone; title?: string }) {
  return (
    <span class={'pill ' + tone} title={title}>
      <span class="mark" aria-hidden="true">{marks[tone]}</span>
      {children}
    </span>
  )
}

/** How much of a limit is taken. */
export function Bar({ value, of, label, tone }: { value: number; of: number; label: string; tone?: Tone }) {
  const part = of > 0 ? Math.min(1, value / of) : value > 0 ? 1 : 0
  return (
    <span class={'bar ' + (tone ?? (part >= 1 ? 'full' : part >= 0.9 ? 'high' : ''))} role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={Math.max(of, value, 1)} aria-valuenow={value}>
      <span style={{ width: `${part * 100}%` }} />
    </span>
  )
}

export interface HeadProps extends Children {
  title: ComponentChildren
  /** A sentence below. */
  lead?: ComponentChildren
}

/** The head of a page: its one h1, with what can be done at the right. */
export function Head({ title, lead, children }: HeadProps) {
  return (
    <header class="head">
      <div>
        <h1 tabIndex={-1}>{title}</h1>
        {lead && <p class="lead">{lead}</p>}
      </div>
      {children && <div class="actions">{children}</div>}
    </header>
  )
}

/** A part of a page, on a surface of its own. */
export function Card({ title, lead, actions, children, class: cls, flush }: Children & { title?: ComponentChildren; lead?: ComponentChildren; actions?: ComponentChildren; class?: string; flush?: boolean }) {
  return (
    <section class={['card', flush && 'flush', cls].filter(Boolean).join(' ')}>
      {(title || actions) && (
        <header>
          <div>
            {title && <h2>{title}</h2>}
            {lead && <p class="lead">{lead}</p>}
          </div>
          {actions && <div class="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  )
}

/** What stands where there is nothing yet: what it is, and how to make it. */
export function Empty({ icon, title, children, action, page }: Children & { icon?: IconName; title: string; action?: ComponentChildren; /** It is the whole page. */ page?: boolean }) {
  return (
    <div class="empty">
      {icon && <span class="round"><Icon name={icon} size={24} /></span>}
      {page ? <h1 tabIndex={-1}>{title}</h1> : <h2>{title}</h2>}
      {children && <p>{children}</p>}
      {action && <div class="actions">{action}</div>}
    </div>
  )
}

/** Grey lines in the shape of what will come. */
export function Skeleton({ lines = 3, height }: { lines?: number; height?: string }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, i) => <span key={i} style={{ width: `${[92, 78, 85, 64][i % 4]}%`, height: height ?? undefined }} />)}
    </div>
  )
}

/** A sentence that must not be overlooked. */
export function Note({ tone = 'info', title, children, action }: Children & { tone?: 'info' | 'ok' | 'warn' | 'bad'; title?: string; action?: ComponentChildren }) {
  return (
    <div class={'note ' + tone} role={tone === 'bad' ? 'alert' : undefined}>
      <Icon name={tone === 'ok' ? 'check' : tone === 'info' ? 'info' : 'warning'} />
      <div>
        {title && <strong>{title}</strong>}
        <div>{children}</div>
      </div>
      {action && <div class="actions">{action}</div>}
    </div>
  )
}

/** What went wrong, with another try. */
export function Failed({ error, retry }: { error: Error; retry?: () => void }) {
  const denied = error instanceof Problem && error.status === 403
  return (
    <Note tone="bad" title={denied ? 'Your token cannot read this' : 'This could not be loaded'} action={retry && <Button small onClick={retry}>Try again</Button>}>
      {error.message}
    </Note>
  )
}

/** A link to a place of the dashboard among others; the one where the person is says so. */
export function Tabs({ items, label }: { items: { href: string; text: ComponentChildren; here: boolean }[]; label: string }) {
  const nav = useRef<HTMLElement>(null)
  const here = items.find((i) => i.here)?.href
  useLayoutEffect(() => { // on a phone it may stand beside the screen
    const all = nav.current!, a = all.querySelector<HTMLElement>('[aria-current]')
    if (a) all.scrollLeft += a.getBoundingClientRect().x + a.offsetWidth / 2 - all.getBoundingClientRect().x - all.clientWidth / 2
  }, [here])
  return (
    <nav ref={nav} class="tabs" aria-label={label}>
      {items.map((i) => <a key={i.href} href={i.href} aria-current={i.here ? 'page' : undefined}>{i.text}</a>)}
    </nav>
  )
}

/** One of a few, as buttons in a row. */
export function Choice<T extends string>({ value, options, onChange, label, small }: { value: T; options: { value: T; text: ComponentChildren }[]; onChange: (v: T) => void; label: string; small?: boolean }) {
  return (
    <div class={'choice' + (small ? ' small' : '')} role="group" aria-label={label}>
      {options.map((o) => (
        <button key={o.value} type="button" aria-pressed={o.value === value} onClick={() => onChange(o.value)}>{o.text}</button>
      ))}
    </div>
  )
}
