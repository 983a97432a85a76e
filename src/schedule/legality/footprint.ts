/**
 * Footprints (bounds inference by cloned loops): the elements of a buffer that one iteration of a loop accesses, named
 * by one index expression over the inner loops. Caching copies exactly these elements, with clones of the loops, so
 * gathers need no interval analysis.
 */

import { linear, linearKey } from '../../analysis/integers/linear.ts'
import { type Expr, int, variable } from '../../ir/expressions/expr.ts'
import { buffersRead, freeVars, mentionsSome, substitute } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import type { Memory } from '../../ir/instructions/instr.ts'
import { printExpr } from '../../ir/print/print-stage2.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import type { LoopLocation } from '../../ir/statements/definitions.ts'
import type { Buffer, For, Stmt } from '../../ir/statements/loops.ts'
import { dropSingleIterations, isSingleIteration, loopsUsedBy } from '../../ir/statements/reductions.ts'
import { when } from '../../ir/statements/statement-builders.ts'
import { stmt } from '../../ir/statements/tree.ts'
import type { Context } from '../state/context.ts'
import type { CacheScope } from '../steps/arguments.ts'
import type { Use } from './buffer-uses.ts'
import { checkConstantExtent } from './checks.ts'

/** The maximum number of elements of a cached buffer, for a thread (registers) or a block (shared memory). */
export const SIZE_LIMIT: Readonly<Record<CacheScope, number>> = { register: 1024, shared: 65536 }

export interface Footprint {
  /** Thread-bound loops around, each a dimension of a shared copy. */
  readonly threads: readonly For[]
  /** Inner loops, each a dimension of the copy: the loops of the first use, which represents all uses. */
  readonly loops: readonly For[]
  readonly index: readonly Expr[]
  readonly shape: readonly number[]
  /** Conditions of a load outside of the loops that are not copied. */
  readonly conditions: readonly Expr[]
}

/** Returns the inner loops that determine the element of an index. */
export const neededBy = (use: Pick<Use, 'index' | 'path'>): readonly For[] => loopsUsedBy(use.path, use.index)

/** Returns a loop around a use that the copy does not have and that may have no iteration. */
export const hiddenLoop = ({ path }: Use, { loops }: Footprint): For | undefined =>
  path.find((l) => !loops.includes(l) && !(isSingleIteration(l) && l.guards.length === 0))

/** A key that is equal for uses of the same elements, whatever the loops' names, without single iterations. */
function signature(use: Use, around: readonly For[]): string {
  const loops = neededBy(use)
  const counting = loops.filter((l) => !isSingleIteration(l))
  const map = new Map<string, Expr>(counting.map((l, k) => [l.var, variable(`#${k}`)]))
  const placed = (e: Expr): Expr => substitute(dropSingleIterations(e, [...around, ...use.path]), map)
  const key = (e: Expr): string => keyOf(placed(e))
  const ranges = [...counting.map((l) => l.extent), ...loops.flatMap((l) => l.guards)]
  return [...use.index.map((e) => linearKey(linear(placed(e)))), ...ranges.map(key)].join(' ; ')
}

/** Returns the footprint's loops in terms of the loops of a use of the same elements; 0 for a single iteration. */
export function namedAlike(loops: readonly For[], use: Pick<Use, 'index' | 'path'>): readonly Expr[] {
  const own = [...neededBy(use)]
  return loops.map((l) => {
    while (!isSingleIteration(l) && own[0] && isSingleIteration(own[0])) own.shift()
    const same = own[0] && isSingleIteration(own[0]) === isSingleIteration(l) ? own.shift() : undefined
    return same ? variable(same.var) : int(0)
  })
}

/**
 * Returns the footprint of the uses. Throws `schedule/searched`, `schedule/different-elements`, `schedule/too-large` or
 * an error of a guard or extent unless all uses access one set of elements of constant size.
 */
export function footprint(
  cx: Context,
  at: LoopLocation,
  buffer: Buffer,
  uses: readonly Use[],
  { scope, memory }: { readonly scope: CacheScope; readonly memory?: Memory | undefined },
): Footprint {
  const first = uses[0]!
  const { loop } = at
  if (buffer.shape.length > 0 && uses.some((u) => u.index.length === 0))
    cx.refuse('schedule/searched', [loop], {
      message: `${buffer.name} is searched inside of ${loop.name}, not only indexed`,
      hint: `cache at a loop that only indexes ${buffer.name}, or do not cache ${buffer.name}`,
    })
  const outside = [...at.path, loop]
  const elements = signature(first, outside)
  const other = uses.find((u) => signature(u, outside) !== elements)
  if (other)
    cx.refuse('schedule/different-elements', [loop], {
      message: `accesses to ${buffer.name} inside of ${loop.name} touch different elements`,
      expected: `one index expression, where there are ${[...new Set(uses.map((u) => printIndex(buffer, u)))].join(' and ')}`,
      hint: 'cache further inside, where a single access is left',
    })
  const loops = neededBy(first)
  checkGuards(cx, loop, first, loops)
  const around = outside.filter((l) => boundIndex(l, 'thread'))
  const speaksOf = [...first.index, ...loops.flatMap((l) => l.guards)]
  const threads = scope === 'shared' ? around.filter((l) => speaksOf.some((e) => freeVars(e).has(l.var))) : []
  const why = `a copy in ${scope === 'shared' ? 'shared memory' : 'registers'} has constant size`
  const sizes = [...threads, ...loops].map((l) => Math.max(1, checkConstantExtent(cx, l, why)))
  // Registers are each thread's own (`lower/memory/tile-privatization.ts`).
  const others = scope === 'register' ? loops.filter((l) => boundIndex(l, 'thread')) : []
  const total = [...threads, ...loops].reduce((n, l, k) => (others.includes(l) ? n : n * sizes[k]!), 1)
  const limit = SIZE_LIMIT[scope] * (memory?.threads ?? 1)
  if (total > limit)
    cx.refuse('schedule/too-large', [loop, ...loops], {
      message: `a copy of ${sizes.join(' × ')} elements of ${buffer.name} is too large for ${scope} memory`,
      expected: `at most ${limit} elements`,
      hint: 'split the loops and cache further inside',
    })
  return { threads, loops, index: first.index, shape: sizes.length > 0 ? sizes : [1], conditions: [] }
}

const printIndex = (buffer: Buffer, u: Use): string =>
  `${buffer.name}[${u.index.map((e) => printExpr(e)).join(', ')}]`

/** Throws `schedule/different-elements` unless one loop nest reaches all targets of a tuple, combined together. */
export function checkSameLoops(
  cx: Context,
  loop: For,
  prints: readonly Footprint[],
  buffers: readonly Buffer[],
): void {
  const names = (p: Footprint): string => p.loops.map((l) => l.var).join(', ')
  const other = prints.findIndex((p) => names(p) !== names(prints[0]!))
  if (other >= 0)
    cx.refuse('schedule/different-elements', [loop], {
      message: `${buffers[0]!.name} and ${buffers[other]!.name} are reduced together but depend on different loops inside of ${loop.name}`,
      hint: 'cache further inside, where both depend on the same loops',
    })
}

/** Throws `schedule/moving-index` if statements from index `from` on write data that determine the elements. */
export function checkStable(cx: Context, loop: For, print: Footprint, from: number): void {
  const naming = [...print.index, ...print.loops.flatMap((l) => [l.extent, ...l.guards])]
  const written = writesOf(loop.body.slice(from))
  const by = [...written].find((name) => naming.some((e) => buffersRead(e).has(name)))
  if (by === undefined) return
  cx.refuse('schedule/moving-index', [loop], {
    message: `${loop.name} writes ${by}, which names the elements to copy`,
    hint: 'cache further inside',
  })
}

function checkGuards(cx: Context, loop: For, use: Use, loops: readonly For[]): void {
  const hidden = use.path.filter((l) => !loops.includes(l))
  for (const l of loops) {
    const by = hidden.find((h) => l.guards.some((g) => freeVars(g).has(h.var)))
    if (by)
      cx.refuse('schedule/guard-not-decidable', [loop, by, l], {
        message: `which iterations of ${l.name} run depends on ${by.name}, and the copy is outside of ${by.name}`,
        hint: `cache at ${by.name} instead`,
      })
  }
}

/** Returns the index in the copy of the element that an access uses. */
export function localIndex(print: Footprint, use: Pick<Use, 'index' | 'path'>): readonly Expr[] {
  const vars = [...print.threads.map((l) => variable(l.var)), ...namedAlike(print.loops, use)]
  return vars.length > 0 ? vars : [int(0)]
}

/** Returns a loop under another name in another loop nest, with the variables of `map` replaced. */
export const cloneLoop = (l: For, name: string, nest: string, map: ReadonlyMap<string, Expr>): For => ({
  ...l,
  var: name,
  nest,
  extent: substitute(l.extent, map),
  guards: l.guards.map((g) => substitute(g, map)),
})

/** Returns the loops, outermost first, around a statement. */
export const nestOf = (loops: readonly For[], core: Stmt): Stmt =>
  loops.reduceRight<Stmt>((inside, l) => stmt<For>({ ...l, body: [inside] }), core)

/**
 * Builds clones of the loops around the statement that `make` returns; `make` receives the index in the copy and a
 * function that moves expressions to the clones. Clones have the user's loop names under the copy's name (`Bs.f`). In
 * registers, a thread-bound loop stays bound, so that each thread fills its own copy. In shared memory, the loops are
 * serial, and lowering distributes them over threads.
 */
export function copyNest(
  cx: Context,
  print: Footprint,
  name: string,
  scope: CacheScope,
  make: (local: readonly Expr[], element: (e: Expr) => Expr) => Stmt,
): Stmt {
  const map = new Map<string, Expr>()
  const clones = print.loops.map((l): For => {
    const fresh = cx.fresh(l.name)
    map.set(l.var, variable(fresh))
    const mode = scope === 'register' && l.mode.kind === 'bind' ? l.mode : ({ kind: 'serial' } as const)
    return { ...cloneLoop(l, fresh, name, map), mode }
  })
  const vars = [...print.threads.map((l) => variable(l.var)), ...print.loops.map((l) => map.get(l.var)!)]
  const conditional = (conditions: readonly Expr[], inside: Stmt): Stmt =>
    conditions.reduceRight<Stmt>((s, cond) => when(substitute(cond, map), [s]), inside)
  const own = new Set(map.keys())
  const core = make(vars.length > 0 ? vars : [int(0)], (e) => substitute(e, map))
  const inside = print.conditions.filter((c) => mentionsSome(c, own))
  const nest = nestOf(clones, conditional(inside, core))
  return conditional(
    print.conditions.filter((c) => !mentionsSome(c, own)),
    nest,
  )
}
