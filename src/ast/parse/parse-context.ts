/** Shared helpers of the parse actions: children, spans, slots for comments. */
import type { IterationNode, Node } from 'ohm-js'
import type { SptActionDict, SptGrammar } from '../../../grammar/spt.ohm-bundle.js'
import { type Source, type Span, spanAt, spanIn } from '../diagnostics/span.ts'
import { TextCache } from '../latest.ts'
import type * as ast from '../nodes/nodes.ts'
import type { Heights } from './checks.ts'
import { type BlockSlot, type Slot, Writable } from './comments.ts'

export type Actions = SptActionDict<unknown>

/** State of the parse actions besides their node; one for each call of `parse`, which is synchronous. */
interface Context {
  /** The source that spans refer to; for an excerpt of a file, that file, if its text is available. */
  readonly source: Pick<Source, 'name'> & Partial<Source>
  /** The parsed text, and the map from condensed offsets to source offsets. */
  readonly text: string
  readonly at: (place: number) => number
  readonly slots: Map<object, Slot>
  readonly heights: Heights
}
let cx: Context

/** Runs `run` with the given context. */
export function inContext<T>(context: Context, run: () => T): T {
  const previous = cx
  cx = context
  try {
    return run()
  } finally {
    cx = previous
  }
}

/** Registers the slot that receives a node's comments. */
export function register(node: object, slot: Slot): void {
  cx.slots.set(node, slot)
}

/** Registers the height of an expression over its operands. */
export const withHeight = <T extends ast.Expr>(e: T, ...parts: readonly ast.Expr[]): T =>
  cx.heights.recordHeight(e, parts)

// Reading children ---------------------------------------------------------------------------------------------

export const get = <T>(n: Node): T => n.ast() as T
export const all = <T>(n: Node): T[] => n.children.map((c) => get<T>(c))
export const list = <T>(n: Node): T[] => all(n.asIteration())
export const maybe = <T>(n: IterationNode): T | null => (n.children[0] ? get<T>(n.children[0]) : null)
export const maybeList = <T>(n: IterationNode): T[] => (n.children[0] ? get<T[]>(n.children[0]) : [])
export const spanOf = (n: Node): Span => spanIn(cx.source, cx.at(n.source.startIdx), cx.at(n.source.endIdx))
/** A path in quotes. */
export const pathOf = (n: Node): ast.Path => ({ value: n.sourceString.slice(1, -1), span: spanOf(n) })
/** The code between backticks, with its span. */
export function codeOf(n: Node): ast.Ident {
  const span = spanOf(n)
  const [start, end] = [span.start + 1, span.end - 1]
  return { name: cx.text.slice(start, end), span: spanAt(span, start, end) }
}
export const between = (a: Span, b: Span): Span => spanIn(cx.source, a.start, b.end)
export const word = (n: Node): ast.Ident => ({ name: n.sourceString, span: spanOf(n) })

/** Registers a node that can carry comments, and returns it. */
export function item<T extends { readonly span: Span }>(node: T, blocks: readonly BlockSlot[] = []): T {
  cx.slots.set(node, { span: node.span, blocks, trivia: new Writable() })
  return node
}
const slotOf = (node: object): Slot => cx.slots.get(node)!
export const slotsOf = (nodes: readonly object[]): Slot[] => nodes.map(slotOf)

export interface Braces {
  readonly open: Node
  readonly close: Node
}
export function block(
  { open, close }: Braces,
  slots: readonly Slot[],
  owner: Writable,
  which: 'then' | 'else' = 'then',
): BlockSlot {
  return { span: between(spanOf(open), spanOf(close)), slots, owner, which }
}
/** Registers a node with one block, and returns it. */
export function blockItem<T extends { readonly span: Span }>(
  node: T,
  braces: Braces,
  slots: readonly Slot[],
): T {
  const trivia = new Writable()
  cx.slots.set(node, { span: node.span, blocks: [block(braces, slots, trivia)], trivia })
  return node
}

// Caches parse trees of texts that occur repeatedly: generated or edited programs share most declarations.
// Most other texts occur once and are not kept, because retained trees burden the garbage collector.

/** The failure of a text against a rule: its offset, and the tokens expected there. */
interface Failure {
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
