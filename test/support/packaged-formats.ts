/** Standard formats by name, as text: what tests put formats of their own next to. */
import { readFileSync } from 'node:fs'

const files = ['formats.spt', 'formats-composed.spt', 'formats-tensors.spt'].map((f) =>
  readFileSync(new URL(`../../kernels/${f}`, import.meta.url), 'utf8'),
)
const known = new Map(
  files.flatMap((text) =>
    [...text.matchAll(/^format (\w+)[\s\S]*?^}\n/gm)].map((m) => [m[1], m[0]] as const),
  ),
)

/** `standard('csr', 'ell')`: their texts, one after the other. */
export function standard(...names: string[]): string {
  return names
    .map((name) => {
      const text = known.get(name)
      if (text === undefined) throw new Error(`no standard format ${name}`)
      return text
    })
    .join('')
}
