import { useRef, useState } from 'preact/hooks'
import { Button, Choice } from './basic'
import { tell } from './toast'

/** Text to be taken elsewhere: commands, JSON, Terraform. */
export function Snippet({ parts }: { parts: { title: string; text: string }[] }) {
  const [shown, set] = useState(parts[0].title)
  const ref = useRef<HTMLPreElement>(null)
  const part = parts.find((p) => p.title === shown) ?? parts[0]
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(part.text)
      tell('Copied')
    } catch {
      // Browsers let pages copy over TLS and from localhost only.
      getSelection()?.selectAllChildren(ref.current!)
      tell('Selected. Copy it with the keyboard', 'info')
    }
  }
  return (
    <div class="snippet">
      <header>
        {parts.length > 1 ? <Choice small label="Form" value={part.title} options={parts.map((p) => ({ value: p.title, text: p.title }))} onChange={set} /> : <span>{part.title}</span>}
        <Button small kind="quiet" icon="copy" onClick={copy}>Copy</Button>
      </header>
      <pre ref={ref} tabIndex={0} aria-label={part.title}><code>{part.text}</code></pre>
    </div>
  )
}
