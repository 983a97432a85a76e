/**
 * Dependence testing: data races between the threads of a block. The tests are conservative: two accesses conflict unless they are proved
 * to touch different elements, or to run in one thread.
 */

import { blockOf, type Space } from '../../analysis/dependence/subscript-injectivity.ts'
import { isWarpCollective, type Lanes } from '../../analysis/instructions/lane-groups.ts'
import { isIndex } from '../../analysis/integers/interval.ts'
import {
  coefficientOf,
  keepTerms,
  linear,
  linearKey,
  minus,
  termsWith,
} from '../../analysis/integers/linear.ts'
import { rangeOfSum, rangesOver } from '../../analysis/integers/ranges.ts'
import { type Expr, type ThreadAxis, variable } from '../../ir/expressions/expr.ts'
import { mentions, mentionsSome, substitute } from '../../ir/expressions/expr-tree.ts'
import { memoize } from '../../ir/memoize.ts'
import { type BufferAccess, targetsOf } from '../../ir/statements/accesses.ts'
import type { For } from '../../ir/statements/loops.ts'

export interface Block {
  /** Thread axes of the launch to which no loop around the accesses is bound. */
  readonly axes: readonly ThreadAxis[]
  /** Names of the buffers of which each thread has a private copy. */
  readonly registers: ReadonlySet<string>
  readonly shared: ReadonlySet<string>
  /** Names of the buffers that are validated to be monotone. */
  readonly indptr: ReadonlySet<string>
  /** The lanes of thread.x that execute tensor-core instructions together. */
  readonly lanes: Lanes
}

/**
 * The threads between which two accesses may conflict: no threads, those of one row of the block (equal thread.y and thread.z), or any.
 */
export type ConflictScope = 'none' | 'row' | 'block'

/**
 * Returns the threads between which accesses `x` and `y` may conflict: both touch one element of shared or global memory, and at least one
 * writes. The paths begin below the loops that enclose both accesses, because the variables of these loops have one value for both.
 */
export function conflictScope(x: BufferAccess, y: BufferAccess, block: Block): ConflictScope {
  if (x.buffer !== y.buffer || block.registers.has(x.buffer)) return 'none'
  if (x.mode === 'read' && y.mode === 'read') return 'none'
  if (sameAtomic(x, y)) return 'none'
  if (x.index.some((e, d) => distinctResidues(e, y.index[d], [...x.path, ...y.path]))) return 'none'
  if (isCooperative(x) || isCooperative(y)) {
    const along = [...block.axes, ...[...x.path, ...y.path].flatMap((l) => l.along ?? [])]
    return along.every((axis) => axis === 'thread.x') ? 'row' : 'block'
  }
  // Iterations of spatial loops write different elements; shared memory is reused in every iteration.
  if (x.stmt === y.stmt && !block.shared.has(x.buffer) && [...x.path, ...y.path].every((l) => !l.reduce))
    if (x.mode === 'write' && y.mode === 'write') return 'none'
  const proved = new Set<ThreadAxis>()
  const open = new Set<ThreadAxis>()
  let inRow = false
  for (const axis of block.axes) {
    const [a, b] = [loopOn(x, axis), loopOn(y, axis)]
    if (a && b) open.add(axis)
    else if (a || b || !byFirst(x, block) || !byFirst(y, block)) {
      if (axis !== 'thread.x') return 'block'
      inRow = true
    }
  }
  // If both accesses run in the same thread of one axis, the index of this axis is a constant for the other axes.
  for (let changed = true; changed; ) {
    changed = false
    for (const axis of open) {
      if (proved.has(axis)) continue
      const ownersOfX = owningThread(x, axis, proved, block)
      const ownersOfY = owningThread(y, axis, proved, block)
      if (!ownersOfX.some((text, d) => text !== undefined && text === ownersOfY[d])) continue
      proved.add(axis)
      changed = true
    }
  }
  const unproved = [...open].filter((axis) => !proved.has(axis))
  if (unproved.some((axis) => axis !== 'thread.x')) return 'block'
  return inRow || unproved.length > 0 ? 'row' : 'none'
}

/**
 * Returns true if two indices have different remainders modulo one constant, for example the stages of a pipelined buffer in one
 * iteration.
 */
function distinctResidues(a: Expr, b: Expr | undefined, own: readonly For[]): boolean {
  if (a.kind === 'const' && b?.kind === 'const') return a.value !== b.value
  if (a.kind !== 'binary' || a.op !== 'mod' || a.b.kind !== 'const') return false
  if (b?.kind !== 'binary' || b.op !== 'mod' || b.b.kind !== 'const' || b.b.value !== a.b.value) return false
  const away = minus(linear(a.a), linear(b.a))
  if (away.terms.size > 0 || away.constant % a.b.value === 0) return false
  return own.every((l) => !mentions(a, l.var))
}

/** Returns true if both accesses are atomic updates by the same reducer, whose order does not matter. */
const sameAtomic = (x: BufferAccess, y: BufferAccess): boolean => {
  const [a, b] = [atomicReducer(x), atomicReducer(y)]
  return a !== undefined && a === b
}

const atomicReducer = ({ mode, stmt }: BufferAccess): string | undefined =>
  mode === 'write' && stmt.kind === 'reduce' && stmt.atomic ? stmt.reducer.name : undefined

const isCooperative = (x: BufferAccess): boolean => x.path.some((l) => l.cooperative)

const loopOn = (x: BufferAccess, axis: ThreadAxis): For | undefined =>
  x.path.find((l) => l.mode.kind === 'bind' && l.mode.to === axis)

/**
 * Returns true if only the first thread of an axis without a loop runs the statement, because it changes shared or global memory. Other
 * statements run in all threads.
 */
const byFirst = (x: BufferAccess, block: Block): boolean => {
  const targets = targetsOf(x.stmt)
  const together = x.path.some((l) => l.mode.kind === 'instr') || isWarpCollective(x.stmt, block.lanes)
  return !together && targets.length > 0 && targets.every((t) => !block.registers.has(t.buffer))
}

type Owners = readonly (string | undefined)[]

/** Cache of `ownersOf` per access, because an access is compared with many others of its launch. */
const ownersByAccess = memoize((_: BufferAccess) => new Map<string, Owners>())

/**
 * Returns a key per dimension: two accesses with equal keys in a dimension touch one element only from one thread of `axis`. `undefined`:
 * no key is known.
 */
function owningThread(
  x: BufferAccess,
  axis: ThreadAxis,
  proved: ReadonlySet<ThreadAxis>,
  { indptr }: Block,
): Owners {
  const ownersByKey = ownersByAccess(x)
  const key = [axis, ...proved].join()
  const owners = ownersByKey.get(key) ?? ownersOf(x, axis, proved, indptr)
  ownersByKey.set(key, owners)
  return owners
}

function ownersOf(
  x: BufferAccess,
  axis: ThreadAxis,
  proved: ReadonlySet<ThreadAxis>,
  indptr: ReadonlySet<string>,
): Owners {
  const hardware = new Map<string, Expr>()
  const inner = new Map<string, For>()
  for (const l of x.path) {
    const to = l.mode.kind === 'bind' ? l.mode.to : undefined
    if (to === axis || (to && proved.has(to))) hardware.set(l.var, variable(to))
    else inner.set(l.var, l)
  }
  const extent = loopOn(x, axis)?.extent
  const space: Space = { inner, indptr }
  return x.index.map((e) => {
    const at = substitute(e, hardware)
    return blockOf(at, axis, space) ?? residueOf(at, axis, extent, space)
  })
}

/** Returns the key of an index `big·M + c·t + rest` with `0 <= c·t + rest < M`, so the thread number `t` is a digit of the index. */
function residueOf(e: Expr, axis: ThreadAxis, extent: Expr | undefined, space: Space): string | undefined {
  if (extent?.kind !== 'const') return undefined
  const sum = linear(e)
  const scale = coefficientOf(e, axis)
  if (scale < 1 || termsWith(sum, axis).length !== 1) return undefined
  const modulus = scale * extent.value
  const varies = (x: Expr): boolean => mentionsSome(x, space.inner)
  const others = keepTerms(sum, (t) => !mentions(t.term, axis))
  const rest = keepTerms(others, (t) => varies(t.term) && t.coefficient % modulus !== 0)
  if (!isIndex(rangeOfSum(rest, rangesOver(space.inner)), scale)) return undefined
  const { terms } = keepTerms(others, (t) => !varies(t.term))
  return `${scale}·${axis} mod ${modulus} + ${linearKey({ terms, constant: 0 })}`
}
