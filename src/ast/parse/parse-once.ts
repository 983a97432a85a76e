/**
 * Caches parse trees of texts that occur repeatedly: generated or edited programs share most declarations. Most other
 * texts occur once and are not kept, because retained trees burden the garbage collector.
 */
import type { Node } from 'ohm-js'
import type { SptGrammar } from '../../../grammar/spt.ohm-bundle.js'
import { TextCache } from '../latest.ts'

/** The failure of a text against a rule: its offset, and the tokens expected there. */
export interface Failure {
  readonly place: number
  readonly failures: readonly string[]
}

/** Matches a text against a rule; the tree does not depend on the text's location. */
export type Match = (text: string, rule: string) => Node | Failure

/** Limit in characters of texts with cached trees: a tree takes about 800 times as many bytes. */
const MAX_CACHED_LENGTH = 2 ** 15
/** Limit in characters of texts remembered as seen before. */
const MAX_SEEN_LENGTH = 2 ** 18

/** Ohm's description of a failed match; the method is documented but missing from its types. */
interface Failures {
  getRightmostFailures(): readonly { toString(): string }[]
}

export function cachedMatcher(
  grammar: SptGrammar,
  semantics: ReturnType<SptGrammar['createSemantics']>,
): Match {
  const trees = new TextCache<Node>(MAX_CACHED_LENGTH)
  const seenTexts = new TextCache<true>(MAX_SEEN_LENGTH)
  return (text, rule) => {
    const key = `${rule} ${text}`
    const cached = trees.get(key)
    if (cached) return cached
    const match = grammar.match(text, rule)
    if (match.failed())
      return {
        place: match.getRightmostFailurePosition(),
        failures: (match as unknown as Failures).getRightmostFailures().map(String),
      }
    const tree = semantics(match) as unknown as Node
    if (seenTexts.get(key)) {
      // Keeping the match result would keep Ohm's memo tables too.
      match.matcher.setInput('')
      trees.put(key, tree)
    } else seenTexts.put(key, true)
    return tree
  }
}
