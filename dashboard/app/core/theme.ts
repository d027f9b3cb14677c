import { Store } from './store'

export type Theme = 'system' | 'light' | 'dark'

const stored = () => {
  try {
    const t = localStorage.getItem('anteroom.theme')
    return t === 'light' || t === 'dark' ? t : 'system'
  } catch {
    return 'system'
  }
}

export const theme = new Store<Theme>(stored())

/** Counts up whenever the colors change: charts draw themselves anew. */
export const colors = new Store(0)

function show() {
  if (theme.value === 'system') document.documentElement.removeAttribute('data-theme')
  else document.documentElement.dataset.theme = theme.value
  colors.update((n) => n + 1)
}

export function setTheme(t: Theme) {
  theme.set(t)
  try {
    if (t === 'system') localStorage.removeItem('anteroom.theme')
    else localStorage.setItem('anteroom.theme', t)
  } catch {}
  show()
}

export function followTheme() {
  show()
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', show)
}

let probe: HTMLElement | undefined

/** A color of style/tokens.css as it is at the moment, for canvases; with an opacity from 0 to 1. */
export function color(name: string, opacity = 1): string {
  if (!probe) {
    probe = document.createElement('span')
    probe.hidden = true
    document.body.append(probe)
  }
  probe.style.color = `var(${name})`
  const c = getComputedStyle(probe).color
  return opacity === 1 ? c : c.replace(/^rgba?\((\d+), (\d+), (\d+).*$/, `rgba($1, $2, $3, ${opacity})`)
}
