/**
 * Transposed reduction over lanes (recursive halving): threads that hold n partial results each exchange halves of them, so that
 * every step moves half as many as the one before, and the sums end in different lanes. n = 8 over 8 lanes takes 7 shuffles
 * in place of 24, and neighbouring lanes store neighbouring elements.
 */

import type { Names } from '../ir/bound-names.ts'
import { add, binary, call, type Expr, int, type Load, load, lt, select } from '../ir/expr.ts'
import type { Buffer, For, Reduce, Stmt } from '../ir/loops.ts'
import { isPowerOfTwo } from '../ir/numeric.ts'
import { alloc, local, store, unflatten, when } from '../ir/statement-builders.ts'
import { type Body, stmt } from '../ir/tree.ts'

/** Partial results of a thread that are written out one by one. */
const MOST = 32
/** Fewer lanes save no instruction: a step costs two selections for each element that it keeps. */
const LEAST_LANES = 4

/** What `PartialResults` has of the results that lanes exchange. */
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

/** Whether lanes alone combine the results of a thread, of which there is a power of two. */
export function hasHalves(partials: LanePartials): boolean {
  const n = product(constantExtents(partials))
  const isPower = n > 1 && n <= MOST && isPowerOfTwo(n)
  return isPower && partials.scattered && partials.groups === 1 && partials.width >= LEAST_LANES
}

export interface HalvesPhases {
  /** A nest over the threads that exchange; `rank` is a thread's number among them. */
  readonly overThreads: (make: (rank: Expr, map: ReadonlyMap<string, Expr>) => Body) => Body
  /** The update of an element: where the serial loops are, and the combined results. */
  readonly update: (at: readonly Expr[], values: readonly Load[], map: ReadonlyMap<string, Expr>) => Body
}

/** The statements after the loops. Element e of n ends in the lanes with number e modulo the smaller of n and their count. */
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
  const own = (k: number): Load[] => registers.map((b) => load(b.name, digits(int(k)), b.dtype))
  const sent = registers.map((b) => local(names.fresh(`${b.name}_sent`), b.dtype, [int(n / 2)]))
  const sentAt = (k: number): Load[] => sent.map((b) => load(b.name, [int(k / 2)], b.dtype))
  const exchange = (targets: readonly Load[], values: readonly Load[], first: number, to: number): Reduce => {
    const { among, together } = lane
    const lanes = { first, width: to, among, ...(together ? { together } : {}) }
    return stmt({ ...reduce, init: false, atomic: false, targets, values, lanes })
  }
  // A lane whose number has the bit `xor` keeps the elements whose number has it. The number goes through a register that is written
  // here, so that no pass computes its bits before the loops, where they would take registers.
  const step = (xor: number): Stmt[] => {
    const kept = Array.from({ length: n / (2 * xor) }, (_, k) => 2 * xor * k)
    const number = local(names.fresh('lane'), 'i32')
    const hasBit = binary('ne', call('bit_and', [load(number.name, [int(0)], 'i32'), int(xor)]), int(0))
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
    return [alloc(number), ...chosen, ...kept.map((a) => exchange(own(a), sentAt(a), xor, 2 * xor))]
  }
  const steps = Array.from({ length: Math.log2(apart) }, (_, k) => step(2 ** k)).flat()
  const rest = n < width ? [exchange(own(0), own(0), n, width)] : []
  const end = overThreads((rank, map) => {
    const updates = Array.from({ length: n / apart }, (_, k) => {
      const first = k * apart
      return update(digits(add(rank, int(first))), own(first), map)
    }).flat()
    return n < width ? [when(lt(rank, int(n)), updates)] : updates
  })
  return [...sent.map(alloc), ...steps, ...rest, ...end]
}
