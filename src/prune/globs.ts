/** Names of layers by patterns: `*` is any text, `?` any one character, all else itself. */
import { fail } from '../ast/diagnostic.ts'

/** Whether all of a name is what the pattern says: a star is tried with less first, and only the last one again. */
export function matches(glob: string, name: string): boolean {
  let g = 0
  let n = 0
  let star = -1
  let from = 0
  while (n < name.length) {
    if (glob[g] === '*') {
      star = g++
      from = n
    } else if (g < glob.length && (glob[g] === '?' || glob[g] === name[n])) {
      g++
      n++
    } else if (star >= 0) {
      g = star + 1
      n = ++from
    } else return false
  }
  while (glob[g] === '*') g++
  return g === glob.length
}

/**
 * The names that it matches, by their place.
 * @throws SptError `prune/unknown-layer` where it matches none
 */
export function matched(option: string, glob: string, names: readonly string[]): readonly number[] {
  const found = names.flatMap((name, k) => (matches(glob, name) ? [k] : []))
  if (found.length === 0)
    fail({
      code: 'prune/unknown-layer',
      message: `${option}: no layer is called ${glob}`,
      lookup: { name: glob, candidates: names },
    })
  return found
}
