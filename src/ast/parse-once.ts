/**
 * Matches no text a third time: programs that are generated, or are being written, have most of their declarations in common.
 * Most others come once, and are not kept: trees that stay cost the garbage collector more than they are worth.
 */
import type { Node } from 'ohm-js'
import type { SptGrammar } from '../../grammar/spt.ohm-bundle.js'
import { Latest } from './latest.ts'

/** How a text fails a rule: where, and what would have let it go on. */
export interface Failure {
  readonly place: number
  readonly failures: readonly string[]
}

/** The tree of a text by a rule, which knows nothing of where the text stands. */
export type Match = (text: string, rule: string) => Node | Failure

/** Characters of texts whose trees are kept: a tree takes some eight hundred times as many bytes. */
const KEPT = 2 ** 15
/** Characters of texts of which it is known that they came before. */
const KNOWN = 2 ** 18

/** What Ohm knows of a failed match; the method is public in its documentation and absent from its types. */
interface Failures {
  getRightmostFailures(): readonly { toString(): string }[]
}

export function matchOnce(grammar: SptGrammar, semantics: ReturnType<SptGrammar['createSemantics']>): Match {
  const trees = new Latest<Node>(KEPT)
  const before = new Latest<true>(KNOWN)
  return (text, rule) => {
    const key = `${rule} ${text}`
    const known = trees.get(key)
    if (known) return known
    const match = grammar.match(text, rule)
    if (match.failed())
      return {
        place: match.getRightmostFailurePosition(),
        failures: (match as unknown as Failures).getRightmostFailures().map(String),
      }
    const tree = semantics(match) as unknown as Node
    if (before.get(key)) {
      // Its tables of what matches where would stay, too.
      match.matcher.setInput('')
      trees.keep(key, tree)
    } else before.keep(key, true)
    return tree
  }
}
