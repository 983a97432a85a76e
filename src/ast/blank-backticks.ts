/**
 * A source without what stands between its backticks, which is another language's: Ohm takes its time and 2 KB for each
 * character that it matches, and here there is nothing to match.
 */
import type { Scanned } from './lexical-scan.ts'

export interface WithoutCodes {
  readonly text: string
  /** The place in the source of a character of `text`; of a closing backtick, that one. */
  readonly at: (place: number) => number
}

export function withoutCodes(text: string, codes: Scanned['codes']): WithoutCodes {
  // Of each text left out: where it stood, and how many characters are left out up to it, with it.
  const cuts: { readonly place: number; readonly out: number }[] = []
  const kept: string[] = []
  let [from, out] = [0, 0]
  for (const { start, end } of codes) {
    kept.push(text.slice(from, start))
    cuts.push({ place: start - out, out: out + end - start })
    from = end
    out += end - start
  }
  kept.push(text.slice(from))
  return { text: kept.join(''), at: (place) => place + (cuts.findLast((c) => c.place <= place)?.out ?? 0) }
}
