/** The zones that a host could belong to, the most likely first. */
export function zonesOf(host: string): string[] {
  const h = host.trim().toLowerCase().replace(/^\*\./, '')
  if (!h) return []
  const labels = h.split('.')
  if (h === '*' || labels.length < 3 || /^[\d.]+$|:/.test(h)) return [h]
  // Names like example.co.uk have short labels at their end.
  const usual = labels.at(-2)!.length <= 3 && labels.at(-1)!.length === 2 ? 3 : 2
  const all = labels.slice(0, -1).map((_, i) => labels.slice(i).join('.'))
  return all.toSorted((a, b) => Math.abs(a.split('.').length - usual) - Math.abs(b.split('.').length - usual))
}
