/**
 * Tree reduction of the partial results of threads: warp shuffles, then shared memory. How the shares of threads meet: lanes
 * exchange registers; groups of lanes, in shared memory, are folded half by half or exchange once more; one thread of each
 * group updates the target. Each phase is a nest of its own over all threads, so that barriers fall between them.
 */

import type { Names } from '../ir/bound-names.ts'
import { copyNest } from '../ir/clone-loops.ts'
import { add, and, div, type Expr, eq, int, type Load, load, lt, mod, mul, variable } from '../ir/expr.ts'
import { mentions, substitute } from '../ir/expr-tree.ts'
import type { Buffer, For, Reduce, Stmt } from '../ir/loops.ts'
import { alloc, store, when, whenAll } from '../ir/statement-builders.ts'
import { type Body, stmt } from '../ir/tree.ts'
import { exchangeHalves, hasHalves } from './recursive-halving.ts'
import { vectorToUnroll } from './vector-to-unroll.ts'

/** The parts that loops play in a reduction over threads. */
export interface Roles {
  /** The outermost loop that is reduced over. */
  readonly root: For
  /** On threads, reduced over: their shares meet. Those in thread.x are last. */
  readonly folded: readonly For[]
  /** Inside of the root, over different elements: in a thread's share, and on threads. Without guards. */
  readonly serial: readonly For[]
  readonly threads: readonly For[]
  /** All loops on threads that run over different elements. */
  readonly others: readonly For[]
  /** Where the target is updated. */
  readonly conditions: readonly Expr[]
  /** Nothing else is combined into the target. */
  readonly alone: boolean
  /** Conditions on the way leave out elements, which have their identity all the same. */
  readonly startsApart: boolean
  /** Where there is an element at all, if that is asked. */
  readonly exists: Expr | undefined
}

export interface PartialResults {
  readonly reduce: Reduce
  readonly roles: Roles
  /** A thread's registers, and shared memory for those that lanes cannot exchange; one for each target. */
  readonly registers: readonly Buffer[]
  readonly scratch: readonly Buffer[]
  /** Lanes that exchange, the groups of them that are left over, and whether these are few enough for lanes. */
  readonly width: number
  readonly groups: number
  readonly lanesAgain: boolean
  /** All elements of a thread's share meet at once. */
  readonly atOnce: boolean
  /** In shared memory a thread's number among those that meet is the first index, and the element of its share the last. */
  readonly rankFirst: boolean
  /** Any of the threads may update an element: the targets are not in registers, of which each thread has its own. */
  readonly scattered: boolean
  readonly lane: { readonly among: number; readonly together: boolean | undefined }
}

type Vars = ReadonlyMap<string, Expr>

/** The element of a thread's share that the serial loops are at. */
export const elementOf = ({ serial }: Roles, map: Vars = new Map()): Expr[] =>
  serial.length > 0 ? serial.map((l) => substitute(variable(l.var), map)) : [int(0)]

/** The statements after the loops: what the threads have becomes the result. */
export function combinePartials(partials: PartialResults, names: Names): Stmt[] {
  const { reduce, roles, registers, scratch, width, groups, lanesAgain, atOnce, rankFirst, lane } = partials
  const { serial, threads, others, folded } = roles
  // The last phase is over those that update different elements: the first thread of each group does it.
  const nestOfPhase = (
    map: Vars,
    over: readonly For[],
    make: (rank: Expr, cell: (rank: Expr) => Expr[], inner: Vars) => Body,
  ): Body =>
    nest([...threads, ...over.map((l) => ({ ...l, reduce: false, guards: [] }))], names, (inner) => {
      const all = new Map([...map, ...inner])
      const at = (l: For): Expr => substitute(variable(l.var), all)
      const rank = over.reduce<Expr>((sum, l) => add(mul(sum, l.extent), at(l)), int(0))
      const row = atOnce ? serial.map(at) : []
      const place = others.map(at)
      return make(rank, (r) => (rankFirst ? [r, ...place, ...row] : [...row, ...place, r]), all)
    })
  const registersAt = (map: Vars): Load[] =>
    registers.map((b) => load(b.name, elementOf(roles, map), b.dtype))
  const cells = (index: Expr[]): Load[] => scratch.map((b) => load(b.name, index, b.dtype))
  const exchange = (map: Vars, count: number): Stmt => {
    const own = registersAt(map)
    const { among, together } = lane
    const lanes = { width: count, among, ...(together ? { together } : {}) }
    return stmt({ ...reduce, init: false, atomic: false, targets: own, values: own, lanes })
  }
  const updateAt = (values: readonly Load[], at: Vars): Body =>
    whenAll(
      roles.conditions.map((g) => substitute(g, at)),
      update(partials, values, at),
    )
  if (hasHalves(partials))
    return exchangeHalves(partials, names, {
      overThreads: (make) => nestOfPhase(new Map(), folded, (rank, _, all) => make(rank, all)),
      update: (at, values, all) =>
        updateAt(values, new Map([...all, ...serial.map((l, k): [string, Expr] => [l.var, at[k]!])])),
    })
  type Phase = (map: Vars) => Body
  const phases: Phase[] = width > 1 ? [(map) => [exchange(map, width)]] : []
  if (groups > 1)
    phases.push((map) =>
      nestOfPhase(map, folded, (rank, cell, all) => {
        const stores = scratch.map((b, k) => store(b.name, cell(div(rank, int(width))), registersAt(all)[k]!))
        return width > 1 ? [when(eq(mod(rank, int(width)), int(0)), stores)] : stores
      }),
    )
  if (lanesAgain)
    phases.push((map) => [
      ...nestOfPhase(map, folded, (rank, cell, all) => {
        const values = cells(cell(mod(rank, int(groups))))
        return registersAt(all).map((own, k) => store(own.buffer, own.index, values[k]!))
      }),
      exchange(map, groups),
    ])
  for (let stride = lanesAgain ? 0 : 2 ** Math.ceil(Math.log2(groups)) / 2; stride >= 1; stride /= 2)
    phases.push((map) =>
      nestOfPhase(map, folded, (rank, cell) => {
        const other = add(rank, int(stride))
        const [targets, values] = [cells(cell(rank)), cells(cell(other))]
        const fold = stmt<Stmt>({ ...reduce, init: false, atomic: false, targets, values })
        return [when(and(lt(rank, int(stride)), lt(other, int(groups))), [fold])]
      }),
    )
  phases.push((map) =>
    nestOfPhase(map, [], (_, cell, all) => {
      const values = groups > 1 && !lanesAgain ? cells(cell(int(0))) : registersAt(all)
      return updateAt(values, all)
    }),
  )
  return [
    ...scratch.map(alloc),
    ...(atOnce
      ? phases.flatMap((p) => nest(serial, names, p))
      : nest(serial.map(vectorToUnroll), names, (map) => phases.flatMap((p) => p(map)))),
  ]
}

/** Where nothing else is combined, what a target starts with changes nothing. */
function update({ reduce, roles }: PartialResults, values: readonly Load[], map: Vars): Body {
  const targets = reduce.targets.map((t) =>
    load(
      t.buffer,
      t.index.map((e) => substitute(e, map)),
      t.dtype,
    ),
  )
  if (!roles.alone) return [stmt<Stmt>({ ...reduce, targets, values })]
  return targets.map((t, k) => stmt({ ...store(t.buffer, t.index, values[k]!), span: reduce.span }))
}

/** Copies of loops, with the guards that speak of them. */
export const nest = (loops: readonly For[], names: Names, make: (map: Vars) => Body): Body =>
  copyNest(
    loops.map((l) => ({ ...l, guards: l.guards.filter((g) => mentions(g, l.var)) })),
    names,
    new Map(),
    make,
  )
