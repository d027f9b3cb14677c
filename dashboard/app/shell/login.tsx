import { useEffect, useState } from 'preact/hooks'
import { login, signIn } from '../core/login'
import { Problem } from '../core/api'
import { Button, Note } from '../ui/basic'
import { Field } from '../ui/field'

export function Login() {
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
  return (
    <main class="login">
      <form onSubmit={enter}>
        <Logo />
        <h1 tabIndex={-1}>Anteroom</h1>
        {failed && <Note tone="bad">The sign-in failed: {failed}.</Note>}
        {provider && <a class="button main" href="/dash/sign-in">Sign in with {provider}</a>}
        <p class="lead">{provider ? 'Or log in with an API token.' : 'Log in with an API token.'}</p>
        <Field label="Token" help="The first start of the server printed one. Create others on the Tokens page or with: anteroom token create" error={error instanceof Problem && error.status === 401 ? 'Invalid token, or not allowed from this address.' : undefined}>
          {(ids) => <input {...ids} type="password" name="token" autocomplete="current-password" value={token} autofocus required spellcheck={false} onInput={(e) => set(e.currentTarget.value)} />}
        </Field>
        {error && !(error instanceof Problem && error.status === 401) && <Note tone="bad">{error.message}</Note>}
        <Button kind="main" type="submit" busy={busy} disabled={!token.trim()}>Log in</Button>
      </form>
    </main>
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
