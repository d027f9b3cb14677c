/** What a piece of a template is: text, HTML, a string within HTML, a value, a section, or a comment. */
export type Kind = '' | 'tag' | 'string' | 'value' | 'section' | 'comment'
export type Piece = [kind: Kind, text: string]

/**
 * Splits a Mustache template into pieces to be colored; joined, they are the template again. It never refuses one:
 * what is not closed goes to the end.
 */
export function pieces(template: string): Piece[] {
  const all: Piece[] = []
  const add = (kind: Kind, text: string) => {
    const last = all[all.length - 1]
    if (last?.[0] === kind) last[1] += text
    else if (text) all.push([kind, text])
  }
  let at = 0
  let inside: Kind = '' // '', 'tag' or 'string'
  let quote = ''
  let raw = '' // the element whose text is no HTML
  const to = (end: string) => {
    const n = template.indexOf(end, at)
    return n < 0 ? template.length : n + end.length
  }
  const mark = /\{\{[{!#^/&]?|<!--|<\/?[a-z!][^\s<>"'{/]*|[>"']/gi
  for (let found = mark.exec(template); found; found = mark.exec(template)) {
    const [m] = found
    const markup = m[0] !== '{'
    const name = m.replace(/^<\/?/, '').toLowerCase()
    const opens = m[0] === '<'
    if (markup && (opens ? inside || (raw && m.toLowerCase() !== '</' + raw) : !inside || (inside === 'string' && m !== quote))) continue
    add(inside, template.slice(at, found.index))
    at = found.index
    let end = at + m.length
    if (!markup) {
      end = to(m === '{{{' ? '}}}' : '}}')
      add(m === '{{!' ? 'comment' : '#^/'.includes(m[2] || ' ') ? 'section' : 'value', template.slice(at, end))
    } else if (m === '<!--') {
      end = to('-->')
      add('comment', template.slice(at, end))
    } else if (opens) {
      inside = 'tag'
      raw = m[1] !== '/' && /^(script|style|textarea|title)$/.test(name) ? name : ''
      add('tag', m)
    } else if (m === '>') {
      inside = ''
      add('tag', m)
    } else {
      add('string', m)
      inside = inside === 'string' ? 'tag' : 'string'
      quote = m
    }
    at = mark.lastIndex = end
  }
  add(inside, template.slice(at))
  return all
}
