/**
 * Glob patterns for layer names: `*` matches any text, `?` any one character, `\` quotes the next character; all others match
 * themselves.
 */
import { fail } from '../ast/diagnostics/diagnostic.ts'

/** True if the pattern matches the complete name. A star first matches as little as possible; only the last star backtracks. */
export function matches(glob: string, name: string): boolean {
  let g = 0
  let n = 0
  let star = -1
  let restart = 0
  while (n < name.length) {
    const escaped = glob[g] === '\\' && g + 1 < glob.length ? 1 : 0
    if (glob[g] === '*') {
      star = g++
      restart = n
    } else if (g < glob.length && (glob[g] === '?' || glob[g + escaped] === name[n])) {
      g += 1 + escaped
      n++
    } else if (star >= 0) {
      g = star + 1
      n = ++restart
    } else return false
  }
  while (glob[g] === '*') g++
  return g === glob.length
}

/** The pattern that matches one name; control characters, which command lines do not show, become `?`. */
export const globOf = (name: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is meant.
  name.replace(/[\\*?]/g, '\\$&').replace(/[\u0000-\u001f\u007f-\u009f]/g, '?')

/** Indices of the matching names. @throws SptError `prune/unknown-layer` if none matches */
export function matchingLayers(option: string, glob: string, names: readonly string[]): readonly number[] {
  const indices = names.flatMap((name, k) => (matches(glob, name) ? [k] : []))
  if (indices.length === 0)
    fail({
      code: 'prune/unknown-layer',
      message: `${option}: no layer is called ${glob}`,
      lookup: { name: glob, candidates: names },
    })
  return indices
}
