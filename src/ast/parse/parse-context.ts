/** Shared helpers of the parse actions: children, spans, slots for comments. */
import type { Node } from 'ohm-js'
import type { SptActionDict, SptGrammar } from '../../../grammar/spt.ohm-bundle.js'
import { invariant } from '../diagnostics/diagnostic.ts'
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
/** The items of an optional list. */
export const getList = <T>(n: Node): readonly T[] => get<readonly T[] | null>(n) ?? []
export const spanOf = (n: Node): Span => spanIn(cx.source, cx.at(n.source.startIdx), cx.at(n.source.endIdx))
export const between = (a: Span, b: Span): Span => spanIn(cx.source, a.start, b.end)
export const word = (n: Node): ast.Ident => ({ name: n.sourceString, span: spanOf(n) })

export interface Braces<T> {
  readonly items: readonly T[]
  readonly span: Span
}

/** True for signs and keywords, which have no node: in the grammar, `kw`, `semi` and the rules named `…Word`. */
const isToken = (n: Node): boolean => n.isTerminal() || /^kw$|^semi$|Word$/.test(n.ctorName)

/** Actions of rules without their own: lists, options (null if absent), names, and the only part that is not a token. */
export const defaults: Actions = {
  _iter(...children) {
    return this.isOptional() ? (children[0] ? get(children[0]) : null) : children.map(get)
  },
  _nonterminal(...children) {
    const [content, second] = children.filter((c) => !isToken(c))
    invariant(content && !second, () => `an action for ${this.ctorName}`)
    return get(content)
  },
  EmptyListOf: () => [],
  NonemptyListOf: (first, _, rest) => [get(first), ...get<unknown[]>(rest)],
  Braces: (open, items, close): Braces<unknown> => ({
    items: get(items),
    span: between(spanOf(open), spanOf(close)),
  }),
  Several: (_, first, _comma, others, _close) => [get(first), ...get<unknown[]>(others)],
  ident(_) {
    return word(this)
  },
  path(_open, text, _close): ast.Path {
    return { value: text.sourceString, span: spanOf(this) }
  },
  /** The code between backticks, with its span. */
  code(_open, _text, _close): ast.Ident {
    const span = spanOf(this)
    const [start, end] = [span.start + 1, span.end - 1]
    return { name: cx.text.slice(start, end), span: spanAt(span, start, end) }
  },
}

/** Registers a node that can carry comments, and returns it. */
export function item<T extends { readonly span: Span }>(node: T, blocks: readonly BlockSlot[] = []): T {
  cx.slots.set(node, { span: node.span, blocks, trivia: new Writable() })
  return node
}
export const slotsOf = (nodes: readonly object[]): Slot[] => nodes.map((node) => cx.slots.get(node)!)

export const block = (
  { items, span }: Braces<object>,
  owner: Writable,
  which: 'then' | 'else' = 'then',
): BlockSlot => ({ span, slots: slotsOf(items), owner, which })

/** Registers a node with one block, and returns it. */
export function blockItem<T extends { readonly span: Span }>(node: T, braces: Braces<object>): T {
  const trivia = new Writable()
  cx.slots.set(node, { span: node.span, blocks: [block(braces, trivia)], trivia })
  return node
}

// Nodes whose fields are the children of their rule ------------------------------------------------------------

export type Action = (this: Node, ...children: Node[]) => unknown

/** Ohm compares the length of an action with the number of children. */
const action = (length: number, run: (node: Node, children: readonly Node[]) => unknown): Action =>
  Object.defineProperty(
    function (this: Node, ...children: Node[]) {
      return run(this, children)
    },
    'length',
    { value: length },
  )

/**
 * The field for a child: `name`; `name*` for a list that may be absent; `name?` for its presence; `name=` for its text;
 * `{name}` for the items in braces; `...` for the fields of the child; empty for a keyword or sign.
 */
type Field<T> = '' | '...' | Key<T> | `${Key<T>}${'*' | '?' | '='}` | `{${Key<T>}}`
type Key<T> = T extends unknown ? keyof T & string : never

/** Fields with the same value in all nodes of a rule: the `kind`, or several; made for each node if they have lists. */
type Head<T> = KindOf<T> | Partial<T> | (() => Partial<T>) | null
type KindOf<T> = T extends { readonly kind: infer K } ? K : never

/**
 * An action that makes a node from its children, with its span. For `let x = e`, whose children are `let`, `x`, `=` and
 * `e`: `part<ast.Let>('let', '', 'name', '', 'value')`.
 */
export function part<T>(head: Head<T>, ...fields: readonly Field<T>[]): Action {
  const make = maker(head, fields)
  return action(fields.length, (own, children) => make(own, children).node)
}

/** `part` for a node that can carry comments, and may have one block. */
export function line<T>(head: Head<T>, ...fields: readonly Field<T>[]): Action {
  const make = maker(head, fields)
  return action(fields.length, (own, children) => {
    const { node, braces } = make(own, children)
    return braces ? blockItem(node, braces) : item(node)
  })
}

/** Passes the node of an action to a check. */
export const checked = <T>(make: Action, check: (node: T) => void): Action =>
  action(make.length, (own, children) => {
    const node = make.apply(own, [...children]) as T
    check(node)
    return node
  })

function maker(head: unknown, fields: readonly string[]) {
  const common = typeof head === 'string' ? { kind: head } : (head as object | null)
  const filled = fields.flatMap((field, k) =>
    field === '' ? [] : [{ k, name: field.replace(/\W/g, ''), mark: field.replace(/\w/g, '') }],
  )
  return (own: Node, children: readonly Node[]) => {
    const fieldsOfNode: Record<string, unknown> = { ...(typeof common === 'function' ? common() : common) }
    let braces: Braces<object> | undefined
    for (const { k, name, mark } of filled) {
      const child = children[k]!
      if (mark === '...') Object.assign(fieldsOfNode, get(child))
      else if (mark === '{}') {
        braces = get<Braces<object>>(child)
        fieldsOfNode[name] = braces.items
      } else if (mark === '*') fieldsOfNode[name] = getList(child)
      else if (mark === '?') fieldsOfNode[name] = child.sourceString !== ''
      else fieldsOfNode[name] = mark === '=' ? child.sourceString : get(child)
    }
    return { node: { ...fieldsOfNode, span: spanOf(own) }, braces }
  }
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
