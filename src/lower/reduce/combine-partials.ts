/**
 * Tree reduction of the partial results of threads: warp shuffles, then shared memory. Lanes exchange registers. The results of groups of
 * lanes are combined in shared memory by recursive halving, or by another exchange. One thread of each group updates the target. Each
 * phase is a separate loop nest over all threads, so that barriers can be inserted between the phases.
 */
import type { Names } from '../../ir/expressions/bound-names.ts'
import {
  add,
  and,
  binary,
  call,
  div,
  type Expr,
  eq,
  int,
  type Load,
  load,
  lt,
  mod,
  mul,
  select,
  variable,
} from '../../ir/expressions/expr.ts'
import { mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import { copyNest } from '../../ir/statements/clone-loops.ts'
import type { Buffer, For, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { combineInto } from '../../ir/statements/reductions.ts'
import { alloc, local, store, unflatten, when, whenAll } from '../../ir/statements/statement-builders.ts'
import { type Body, stmt } from '../../ir/statements/tree.ts'
import { isPowerOfTwo } from '../../ir/values/numeric.ts'
import { vectorToUnroll } from '../loops/loop-unrolling.ts'

/** The roles of the loops of a cross-thread reduction. */
export interface Roles {
  /** The outermost reduction loop. */
  readonly root: For
  /** Reduction loops that are bound to threads. Loops on thread.x are last. */
  readonly folded: readonly For[]
  /** Spatial loops inside the root, without guards. `serial`: loops within one thread. `threads`: loops that are bound to threads. */
  readonly serial: readonly For[]
  readonly threads: readonly For[]
  /** All spatial loops that are bound to threads, inside and around the root. */
  readonly others: readonly For[]
  /** The target is updated only if all these conditions hold. */
  readonly conditions: readonly Expr[]
  /** True if no other loop or statement combines into the target. */
  readonly alone: boolean
  /** True if a condition may exclude elements, which still have to be initialised to the identity. */
  readonly startsApart: boolean
  /** Condition for the existence of the element; undefined if it always exists. */
  readonly exists: Expr | undefined
}

interface PartialResults {
  readonly reduce: Reduce
  readonly roles: Roles
  /** Buffers of partial results, one per target: `registers` of each thread, and `scratch` in shared memory. */
  readonly registers: readonly Buffer[]
  readonly scratch: readonly Buffer[]
  /** `width`: lanes per exchange. `groups`: number of groups of lanes. `lanesAgain`: the groups are few enough for a second exchange. */
  readonly width: number
  readonly groups: number
  readonly lanesAgain: boolean
  /** True if all elements of a thread are combined at once; false if they are combined one by one. */
  readonly atOnce: boolean
  /** True if the first index of `scratch` is the thread's rank, and the last index is the element. False for the opposite order. */
  readonly rankFirst: boolean
  /** True if any thread may update the target, because the target is not in registers. */
  readonly scattered: boolean
  readonly lane: { readonly among: number; readonly together: boolean | undefined }
}

type Vars = ReadonlyMap<string, Expr>

/** The current element of a thread's partial results, one per target. */
export function registersAt(registers: readonly Buffer[], { serial }: Roles, map: Vars = new Map()): Load[] {
  const index = serial.length > 0 ? serial.map((l) => substitute(variable(l.var), map)) : [int(0)]
  return registers.map((b) => load(b.name, index, b.dtype))
}

/** Combines values of lanes by a butterfly exchange over groups of `width` lanes, beginning with steps of `first`. */
function exchange(
  { reduce, lane: { among, together } }: PartialResults,
  targets: readonly Load[],
  values: readonly Load[],
  width: number,
  first?: number,
): Reduce {
  const lanes = { ...(first && { first }), width, among, ...(together && { together }) }
  return combineInto(reduce, targets, values, lanes)
}

/** Returns the statements after the reduction loops, which combine the partial results of the threads into the target. */
export function combinePartials(partials: PartialResults, names: Names): Stmt[] {
  const { reduce, roles, registers, scratch, width, groups, lanesAgain, atOnce, rankFirst } = partials
  const { serial, threads, others, folded } = roles
  // In the last phase, `over` is empty: the first thread of each group updates its elements.
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
  const own = (map: Vars): Load[] => registersAt(registers, roles, map)
  const cells = (index: Expr[]): Load[] => scratch.map((b) => load(b.name, index, b.dtype))
  const exchanged = (map: Vars, count: number): Stmt => exchange(partials, own(map), own(map), count)
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
  const phases: Phase[] = width > 1 ? [(map) => [exchanged(map, width)]] : []
  if (groups > 1)
    phases.push((map) =>
      nestOfPhase(map, folded, (rank, cell, all) => {
        const stores = scratch.map((b, k) => store(b.name, cell(div(rank, int(width))), own(all)[k]!))
        return width > 1 ? [when(eq(mod(rank, int(width)), int(0)), stores)] : stores
      }),
    )
  if (lanesAgain)
    phases.push((map) => [
      ...nestOfPhase(map, folded, (rank, cell, all) => {
        const values = cells(cell(mod(rank, int(groups))))
        return own(all).map((register, k) => store(register.buffer, register.index, values[k]!))
      }),
      exchanged(map, groups),
    ])
  for (let stride = lanesAgain ? 0 : 2 ** Math.ceil(Math.log2(groups)) / 2; stride >= 1; stride /= 2)
    phases.push((map) =>
      nestOfPhase(map, folded, (rank, cell) => {
        const other = add(rank, int(stride))
        const fold = combineInto(reduce, cells(cell(rank)), cells(cell(other)))
        return [when(and(lt(rank, int(stride)), lt(other, int(groups))), [fold])]
      }),
    )
  phases.push((map) =>
    nestOfPhase(map, [], (_, cell, all) => {
      const values = groups > 1 && !lanesAgain ? cells(cell(int(0))) : own(all)
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

/** Updates the target; a plain store suffices if nothing else combines into it. */
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

/** Copies loops around the body `make`. Of the guards, only those on the loop's own variable are copied. */
export const nest = (loops: readonly For[], names: Names, make: (map: Vars) => Body): Body =>
  copyNest(
    loops.map((l) => ({ ...l, guards: l.guards.filter((g) => mentions(g, l.var)) })),
    names,
    new Map(),
    make,
  )

// Transposed reduction over lanes (recursive halving). Threads with n partial results exchange half of them
// per step, so each step moves half as many elements as the one before, and the sums end in different lanes.
// With n = 8 and 8 lanes this takes 7 shuffles instead of 24, and neighbouring lanes store neighbouring
// elements.

/** Maximum number of partial results per thread, whose code is unrolled. */
const MOST = 32
/** Minimum number of lanes. With fewer lanes the two selects per element cost more than the saved shuffles. */
const LEAST_LANES = 4

const constantExtents = ({ roles }: PartialResults): readonly number[] =>
  roles.serial.map((l) => (l.extent.kind === 'const' ? l.extent.value : 0))

const product = (extents: readonly number[]): number => extents.reduce((n, x) => n * x, 1)

/** Returns true if recursive halving applies: lanes alone combine the results, whose number is a power of two. */
function hasHalves(partials: PartialResults): boolean {
  const n = product(constantExtents(partials))
  const isPower = n > 1 && n <= MOST && isPowerOfTwo(n)
  return isPower && partials.scattered && partials.groups === 1 && partials.width >= LEAST_LANES
}

interface HalvesPhases {
  /** Builds a loop nest over the exchanging threads; `rank` is the thread's number among them. */
  readonly overThreads: (make: (rank: Expr, map: ReadonlyMap<string, Expr>) => Body) => Body
  /** Updates the element at indices `at` of the serial loops with the combined results. */
  readonly update: (at: readonly Expr[], values: readonly Load[], map: ReadonlyMap<string, Expr>) => Body
}

/** Returns the statements after the reduction loops. Element e of n ends in the lanes whose number is e modulo min(n, lanes). */
function exchangeHalves(
  partials: PartialResults,
  names: Names,
  { overThreads, update }: HalvesPhases,
): Stmt[] {
  const { registers, width } = partials
  const extents = constantExtents(partials)
  const n = product(extents)
  const apart = Math.min(n, width)
  const digits = (e: Expr): Expr[] => unflatten(e, extents.map(int))
  const own = (k: number): Load[] => registers.map((b) => load(b.name, digits(int(k)), b.dtype))
  const sent = registers.map((b) => local(names.fresh(`${b.name}_sent`), b.dtype, [int(n / 2)]))
  const sentAt = (k: number): Load[] => sent.map((b) => load(b.name, [int(k / 2)], b.dtype))
  // Lanes whose number has the bit `xor` keep the elements whose number has it. The lane number goes through a register, so that no
  // pass hoists its bits out of the loops, where they would occupy registers.
  const step = (xor: number): Stmt[] => {
    const kept = Array.from({ length: n / (2 * xor) }, (_, k) => 2 * xor * k)
    const number = local(names.fresh('lane'), 'i32')
    const hasBit = binary('ne', call('bit_and', [load(number.name, [int(0)]), int(xor)]), int(0))
    const chosen = overThreads((rank) => [
      store(number.name, [int(0)], rank),
      ...kept.flatMap((a) => {
        const [low, high, out] = [own(a), own(a + xor), sentAt(a)]
        return low.flatMap((x, k) => [
          store(out[k]!.buffer, out[k]!.index, select(hasBit, x, high[k]!)),
          store(x.buffer, x.index, select(hasBit, high[k]!, x)),
        ])
      }),
    ])
    return [alloc(number), ...chosen, ...kept.map((a) => exchange(partials, own(a), sentAt(a), 2 * xor, xor))]
  }
  const steps = Array.from({ length: Math.log2(apart) }, (_, k) => step(2 ** k)).flat()
  const rest = n < width ? [exchange(partials, own(0), own(0), width, n)] : []
  const end = overThreads((rank, map) => {
    const updates = Array.from({ length: n / apart }, (_, k) => {
      const first = k * apart
      return update(digits(add(rank, int(first))), own(first), map)
    }).flat()
    return n < width ? [when(lt(rank, int(n)), updates)] : updates
  })
  return [...sent.map(alloc), ...steps, ...rest, ...end]
}
