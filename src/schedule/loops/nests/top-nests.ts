/** Top-level loop nests that `merge` and `join` combine into one: lookup by name, and the place of the result. */

import type { Span } from '../../../ast/diagnostics/diagnostic.ts'
import { add, type Expr, int, lt, mul, sub, type ThreadAxis, variable } from '../../../ir/expressions/expr.ts'
import { sameExpr } from '../../../ir/expressions/structural-equality.ts'
import { directionOf } from '../../../ir/instructions/hardware-axes.ts'
import { substituteStmts } from '../../../ir/statements/bindings.ts'
import type { For, Stmt } from '../../../ir/statements/loops.ts'
import { forLoop, unflatten, when, whenAll } from '../../../ir/statements/statement-builders.ts'
import { type Body, stmt } from '../../../ir/statements/tree.ts'
import { inAnyOrder } from '../../legality/nest-dependence.ts'
import { among } from '../../refusals.ts'
import type { Context } from '../../state/context.ts'

/** A top-level loop nest, by name. */
export interface TopNest {
  readonly name: string
  readonly top: For
  /** Index of the loop nest in the kernel's body. */
  readonly at: number
}

/** Throws `schedule/nothing-to-merge` or `schedule/nothing-to-join` unless two loop nests or more are named. */
export function checkSeveral(cx: Context, word: 'merge' | 'join', nests: readonly string[]): void {
  if (nests.length >= 2 && new Set(nests).size === nests.length) return
  cx.refuse(`schedule/nothing-to-${word}`, [], {
    message:
      nests.length < 2
        ? `${word} is given ${nests.length === 0 ? 'no' : 'one'} loop nest`
        : `${word} is given a loop nest twice`,
    expected: 'at least two different loop nests',
  })
}

/** Returns the loop nest of this name. Throws `schedule/unknown-nest` or `schedule/ambiguous-nest`. */
export function topNest(cx: Context, name: string): TopNest {
  const tops = cx.kernel.body.flatMap((s, at) =>
    s.kind === 'for' && s.nest === name ? [{ top: s, at }] : [],
  )
  const [only, other] = tops
  if (!only) {
    const candidates = [...new Set(cx.kernel.body.flatMap((s) => (s.kind === 'for' ? [s.nest] : [])))]
    return cx.refuse('schedule/unknown-nest', [], {
      message: `there is no top-level loop nest ${name}`,
      ...among(name, candidates),
    })
  }
  if (other)
    return cx.refuse(
      'schedule/ambiguous-nest',
      tops.map((t) => t.top),
      {
        message: `${name} has ${tops.length} top-level loops`,
        expected: 'an iteration with a single top-level loop',
      },
    )
  return { name, ...only }
}

/** Returns the index of the first or the last loop nest, if all can be there. Throws `schedule/order-matters`. */
export function placeFor(cx: Context, members: readonly TopNest[]): number {
  const places = members.map((m) => m.at)
  const [first, last] = [Math.min(...places), Math.max(...places)]
  const others = cx.kernel.body.flatMap((s, at) =>
    at > first && at < last && !places.includes(at) ? [{ s, at }] : [],
  )
  let between: { member: TopNest; other: Stmt; buffer: string } | undefined
  for (const place of [first, last]) {
    const inTheWay = members.flatMap((member) =>
      others.flatMap(({ s, at }) => {
        const passes = place === first ? at < member.at : at > member.at
        const conflict = passes ? inAnyOrder(member.top, s) : undefined
        return conflict ? [{ member, other: s, buffer: conflict.buffer }] : []
      }),
    )
    if (inTheWay.length === 0) return place
    between ??= inTheWay[0]
  }
  return cx.refuse(
    'schedule/order-matters',
    [between!.member.top, ...(between!.other.kind === 'for' ? [between!.other] : [])],
    {
      message: `${between!.member.name} cannot be moved to the other loop nests: a statement in between also uses ${between!.buffer}`,
      expected: 'adjacent loop nests, or independent statements in between',
    },
  )
}

/** Returns an unused name: the common prefix of the names, up to a `_`, or `otherwise`. */
export const nestName = (cx: Context, nests: readonly string[], otherwise: string): string =>
  cx.freshNest((nameOf) => {
    const words = nests.map((n) => nameOf(n).split('_'))
    return words[0]!.slice(0, commonWords(words)).join('_') || otherwise
  })

/** Returns the number of words with which all lists of words begin. */
export function commonWords([first, ...others]: readonly (readonly string[])[]): number {
  const common = first!.findIndex((w, k) => others.some((other) => other[k] !== w))
  return common < 0 ? first!.length : common
}

// Block ranges of horizontal fusion: in one launch of several loop nests, their ranges of blocks are
// consecutive, and the index of a block determines its loop nest.

/** A loop nest by its block-bound loops, outermost first; the body of the last loop has its statements. */
interface Nest {
  readonly loops: readonly For[]
}

interface Part {
  readonly loops: readonly For[]
  /** The loops whose blocks are numbered on `block.x`, and the number of these blocks. */
  readonly own: readonly For[]
  readonly blocks: Expr
  /** The common variables in place of the other block-bound loops. */
  readonly shared: ReadonlyMap<string, Expr>
}

/** Returns a single loop nest named `name` that runs all these loop nests: one launch. */
export function launchOf(cx: Context, name: string, nests: readonly Nest[], span: Span | undefined): For {
  const block = cx.fresh(`${name}_block`)
  const axes = commonAxes(nests)
  const common = axes.map((to): For => {
    const loops = nests.map((m) => onAxis(m, to)!)
    return forLoop(cx.fresh(`${name}_block_${directionOf(to)}`), loops[0]!.extent, [], {
      name: `block_${directionOf(to)}`,
      nest: name,
      reduce: loops.some((l) => l.reduce),
      mode: { kind: 'bind', to },
      span,
    })
  })
  const parts = nests.map((m): Part => {
    const shared = new Map(common.map((c, k) => [onAxis(m, axes[k]!)!.var, variable(c.var)] as const))
    const own = m.loops.filter((l) => !shared.has(l.var))
    return { loops: m.loops, own, shared, blocks: own.map((l) => l.extent).reduce(mul, int(1)) }
  })
  const own = forLoop(block, parts.map((m) => m.blocks).reduce(add), select(parts, variable(block)), {
    name: 'block',
    nest: name,
    reduce: parts.some((m) => m.own.some((l) => l.reduce)),
    mode: { kind: 'bind', to: 'block.x' },
    span,
  })
  return common.reduceRight<For>((inside, c) => stmt({ ...c, body: [inside] }), own)
}

const onAxis = (m: Nest, to: ThreadAxis): For | undefined =>
  m.loops.find((l) => l.mode.kind === 'bind' && l.mode.to === to)

/** Returns the axes other than x that all loop nests use with the same extent, and which need no numbering. */
const commonAxes = (nests: readonly Nest[]): readonly ThreadAxis[] =>
  (['block.y', 'block.z'] as const).filter((to) => {
    const extents = nests.map((m) => onAxis(m, to)?.extent)
    return extents.every((e) => e !== undefined && extents[0] !== undefined && sameExpr(e, extents[0]))
  })

/** Returns the statements of all loop nests under a tree of comparisons of the block's index. */
function select(parts: readonly Part[], block: Expr): Body {
  const starts: Expr[] = [int(0)]
  for (const m of parts) starts.push(add(starts.at(-1)!, m.blocks))
  const go = (from: number, to: number): Body => {
    if (to - from === 1) return bodyOf(parts[from]!, sub(block, starts[from]!))
    const middle = (from + to) >> 1
    return [when(lt(block, starts[middle]!), go(from, middle), go(middle, to))]
  }
  return go(0, parts.length)
}

/** Returns the statements of block `rank` of a loop nest; x varies fastest, as in a grid. */
function bodyOf(m: Part, rank: Expr): Body {
  const axisOf = (l: For): string => (l.mode.kind === 'bind' ? l.mode.to : '')
  const inOrder = [...m.own].sort((a, b) => (axisOf(a) < axisOf(b) ? 1 : -1))
  const digits = unflatten(
    rank,
    inOrder.map((l) => l.extent),
  )
  const map = new Map<string, Expr>([...m.shared, ...inOrder.map((l, k) => [l.var, digits[k]!] as const)])
  const guards = m.loops.flatMap((l) => l.guards)
  const { body } = m.loops.at(-1)!
  return substituteStmts(whenAll(guards, body), map)
}
