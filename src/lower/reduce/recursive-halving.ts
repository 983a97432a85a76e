/**
 * Transposed reduction over lanes (recursive halving). Threads with n partial results exchange half of them per step, so each step moves
 * half as many elements as the one before, and the sums end in different lanes. With n = 8 and 8 lanes this takes 7 shuffles instead of
 * 24, and neighbouring lanes store neighbouring elements.
 */

import type { Names } from '../../ir/expressions/bound-names.ts'
import { add, binary, call, type Expr, int, type Load, load, lt, select } from '../../ir/expressions/expr.ts'
import type { Buffer, For, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { alloc, local, store, unflatten, when } from '../../ir/statements/statement-builders.ts'
import { type Body, stmt } from '../../ir/statements/tree.ts'
import { isPowerOfTwo } from '../../ir/values/numeric.ts'

/** Maximum number of partial results per thread, whose code is unrolled. */
const MOST = 32
/** Minimum number of lanes. With fewer lanes the two selects per element cost more than the saved shuffles. */
const LEAST_LANES = 4

/** The fields of `PartialResults` that recursive halving needs. */
interface LanePartials {
  readonly reduce: Reduce
  readonly roles: { readonly serial: readonly For[] }
  readonly registers: readonly Buffer[]
  readonly width: number
  readonly groups: number
  readonly scattered: boolean
  readonly lane: { readonly among: number; readonly together: boolean | undefined }
}

const constantExtents = ({ roles }: LanePartials): readonly number[] =>
  roles.serial.map((l) => (l.extent.kind === 'const' ? l.extent.value : 0))

const product = (extents: readonly number[]): number => extents.reduce((n, x) => n * x, 1)

/** Returns true if recursive halving applies: lanes alone combine the results, whose number is a power of two. */
export function hasHalves(partials: LanePartials): boolean {
  const n = product(constantExtents(partials))
  const isPower = n > 1 && n <= MOST && isPowerOfTwo(n)
  return isPower && partials.scattered && partials.groups === 1 && partials.width >= LEAST_LANES
}

export interface HalvesPhases {
  /** Builds a loop nest over the exchanging threads; `rank` is the thread's number among them. */
  readonly overThreads: (make: (rank: Expr, map: ReadonlyMap<string, Expr>) => Body) => Body
  /** Updates the element at indices `at` of the serial loops with the combined results. */
  readonly update: (at: readonly Expr[], values: readonly Load[], map: ReadonlyMap<string, Expr>) => Body
}

/** Returns the statements after the reduction loops. Element e of n ends in the lanes whose number is e modulo min(n, lanes). */
export function exchangeHalves(
  partials: LanePartials,
  names: Names,
  { overThreads, update }: HalvesPhases,
): Stmt[] {
  const { reduce, registers, width, lane } = partials
  const extents = constantExtents(partials)
  const n = product(extents)
  const apart = Math.min(n, width)
  const digits = (e: Expr): Expr[] => unflatten(e, extents.map(int))
  const registersAt = (k: number): Load[] => registers.map((b) => load(b.name, digits(int(k)), b.dtype))
  const sent = registers.map((b) => local(names.fresh(`${b.name}_sent`), b.dtype, [int(n / 2)]))
  const sentAt = (k: number): Load[] => sent.map((b) => load(b.name, [int(k / 2)], b.dtype))
  const exchange = (targets: readonly Load[], values: readonly Load[], first: number, to: number): Reduce => {
    const { among, together } = lane
    const lanes = { first, width: to, among, ...(together ? { together } : {}) }
    return stmt({ ...reduce, init: false, atomic: false, targets, values, lanes })
  }
  // Lanes whose number has the bit `xor` keep the elements whose number has it. The lane number goes through a register, so that no
  // pass hoists its bits out of the loops, where they would occupy registers.
  const step = (xor: number): Stmt[] => {
    const kept = Array.from({ length: n / (2 * xor) }, (_, k) => 2 * xor * k)
    const number = local(names.fresh('lane'), 'i32')
    const hasBit = binary('ne', call('bit_and', [load(number.name, [int(0)]), int(xor)]), int(0))
    const chosen = overThreads((rank) => [
      store(number.name, [int(0)], rank),
      ...kept.flatMap((a) => {
        const [low, high, out] = [registersAt(a), registersAt(a + xor), sentAt(a)]
        return low.flatMap((x, k) => [
          store(out[k]!.buffer, out[k]!.index, select(hasBit, x, high[k]!)),
          store(x.buffer, x.index, select(hasBit, high[k]!, x)),
        ])
      }),
    ])
    return [alloc(number), ...chosen, ...kept.map((a) => exchange(registersAt(a), sentAt(a), xor, 2 * xor))]
  }
  const steps = Array.from({ length: Math.log2(apart) }, (_, k) => step(2 ** k)).flat()
  const rest = n < width ? [exchange(registersAt(0), registersAt(0), n, width)] : []
  const end = overThreads((rank, map) => {
    const updates = Array.from({ length: n / apart }, (_, k) => {
      const first = k * apart
      return update(digits(add(rank, int(first))), registersAt(first), map)
    }).flat()
    return n < width ? [when(lt(rank, int(n)), updates)] : updates
  })
  return [...sent.map(alloc), ...steps, ...rest, ...end]
}
