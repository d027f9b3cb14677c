const quote = (s: string) => `'${s.replaceAll("'", `'\\''`)}'`

/** The line for a shell that makes the same call. The token is a variable: it is never shown. */
export function curl(method: string, path: string, body?: unknown): string {
  const lines = [`curl -s${method === 'GET' || (method === 'POST' && body !== undefined) ? '' : ' -X ' + method} ${quote(location.origin + path)}`, `-H "Authorization: Bearer $TOKEN"`]
  if (body !== undefined) lines.push(`--json ${quote(JSON.stringify(body, null, 2))}`)
  return lines.join(' \\\n  ')
}
