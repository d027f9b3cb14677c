import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { again, login, signIn } from '../core/login'
import type { Session } from '../core/session'
import { Problem } from '../core/api'
import { Button, Note } from '../ui/basic'
import { Field } from '../ui/field'

/** Over the page of a person whose session has ended before everything was saved. */
export function LoginAgain({ who }: { who: Session }) {
  const ref = useRef<HTMLDialogElement>(null)
  const show = () => ref.current?.showModal()
  useLayoutEffect(() => {
    show()
    addEventListener('focus', again)
    return () => removeEventListener('focus', again)
  }, [])
  return <dialog ref={ref} class="again" aria-label="Log in again" onCancel={(e) => e.preventDefault()} onClose={show}><Login who={who} /></dialog>
}

export function Login({ who }: { who?: Session }) {
  const [token, set] = useState('')
  const [error, fail] = useState<Error | null>(null)
  const [busy, work] = useState(false)
  const [provider, offer] = useState<string | null>(null)
  const [failed] = useState(() => new URLSearchParams(location.search).get('sign_in_failed'))
  useEffect(() => {
    signIn().then(offer, () => {}) // the token still works
  }, [])
  const enter = async (e: Event) => {
    e.preventDefault()
    work(true)
    fail(null)
    try {
      await login(token.trim())
    } catch (e) {
      fail(e as Error)
      work(false)
    }
  }
  const Page = who ? 'div' : 'main'
  return (
    <Page class="login">
      <form onSubmit={enter}>
        <Logo />
        <h1 tabIndex={-1}>Anteroom</h1>
        {who && <Note tone="warn" title="Your session has ended">Log in as {who.name} to go on where you were: your changes are not saved yet.</Note>}
        {failed && <Note tone="bad">The sign-in failed: {failed}.</Note>}
        {provider && <a class="button main" href="/dash/sign-in" target={who && '_blank'}>Sign in with {provider}</a>}
        <p class="lead">{provider ? 'Or log in with an API token.' : 'Log in with an API token.'}</p>
        <Field label="Token" help="The first start of the server printed one. Create others on the Tokens page or with: anteroom token create" error={error instanceof Problem && error.status === 401 ? 'Invalid token, or not allowed from this address.' : undefined}>
          {(ids) => <input {...ids} type="password" name="token" autocomplete="current-password" value={token} autofocus required spellcheck={false} onInput={(e) => set(e.currentTarget.value)} />}
        </Field>
        {error && !(error instanceof Problem && error.status === 401) && <Note tone="bad">{error.message}</Note>}
        <Button kind="main" type="submit" busy={busy} disabled={!token.trim()}>Log in</Button>
      </form>
    </Page>
  )
}

export function Logo({ size = 40 }: { size?: number }) {
  return (
    <svg class="logo" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="var(--accent-strong)" />
      <path d="M10 25V10.500a6 6 0 0 1 12 0V25" fill="none" stroke="#fff" stroke-width="2.600" stroke-linecap="round" />
      <circle cx="16" cy="21" r="2.200" fill="#fff" />
      <circle cx="16" cy="14" r="1.600" fill="#fff" opacity=".65" />
    </svg>
  )
}
