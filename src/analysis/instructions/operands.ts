/** Checks of the buffers in place of an instruction's operands: their memories, whole tiles, and alignment. */

import type { Advice, Refusal } from '../../ast/diagnostics/diagnostic.ts'
import { type Expr, type Load, variable } from '../../ir/expressions/expr.ts'
import { mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import { keyOf, sameData } from '../../ir/expressions/structural-equality.ts'
import type { Instr, Memory, Operand } from '../../ir/instructions/instr.ts'
import { coordinateName, tileSteps } from '../../ir/instructions/instr.ts'
import { memoize } from '../../ir/memoize.ts'
import { printExpr } from '../../ir/print/print-stage2.ts'
import type { Buffer, For } from '../../ir/statements/loops.ts'
import { coordinatesAt } from '../../ir/values/arrays.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import type { Facts } from '../integers/facts.ts'
import { coefficientOf, linear } from '../integers/linear.ts'
import { notInRuns } from '../integers/mixed-radix.ts'
import { alongDimensions, digitsOf } from './operand-digits.ts'

export interface Mismatch {
  readonly kind: 'mismatch'
  readonly refusal: Refusal
}

export interface Around {
  readonly buffer: (name: string) => Buffer | undefined
  readonly facts: Facts
}

export const no = (code: string, message: string, advice: Advice): Mismatch => ({
  kind: 'mismatch',
  refusal: { ...advice, code, message },
})

export function bodyText(instr: Instr): string {
  const b = instr.body
  if (b.kind === 'store')
    return `${b.buffer}[${b.index.map((e) => printExpr(e)).join(', ')}] = ${printExpr(b.value)}`
  return `${printExpr(b.targets[0]!)} ${b.reducer.name}= ${printExpr(b.values[0]!)}`
}

export function operandProblem(
  o: Operand,
  element: Load,
  instr: Instr,
  loops: readonly For[],
  around: Around,
  bound: ReadonlyMap<string, Load>,
): Mismatch | undefined {
  const b = around.buffer(element.buffer)
  if (!b)
    return no('schedule/not-matching', `there is no buffer ${element.buffer}`, {
      expected: `a buffer of ${o.dtype}`,
    })
  if (b.packed !== o.packed)
    return no(
      'schedule/wrong-type',
      `${b.name} holds coordinates of ${b.packed ?? 32} bits, and operand ${o.name} of ${instr.name} is ${o.dtype}${o.packed === undefined ? '' : ` packed ${o.packed}`}`,
      { expected: o.packed === undefined ? `elements of type ${o.dtype}` : `fields of ${o.packed} bits` },
    )
  const allowed = [...(o.memory ? [o.memory] : []), ...(o.alternatives ?? [])]
  const wanted = allowed.map((m) => m.name).join(' or ') || o.scope
  const found = b.memory?.name ?? b.scope
  const right =
    b.scope === o.scope &&
    (o.memory
      ? allowed.some((m) => b.memory !== undefined && sameMemory(m, b.memory))
      : o.scope !== 'register' || !b.memory)
  if (!right || b.dtype !== o.dtype)
    return no(
      right ? 'schedule/wrong-type' : 'schedule/wrong-memory',
      right
        ? `${b.name} holds ${b.dtype}, and operand ${o.name} of ${instr.name} is ${o.dtype}`
        : `${b.name} is in ${found}, and operand ${o.name} of ${instr.name} in ${wanted}`,
      right ? { expected: `elements of type ${o.dtype}` } : { hint: `cache ${b.name} in ${wanted} first` },
    )
  if (o.below !== undefined && !(b.below?.kind === 'const' && b.below.value <= o.below))
    return no(
      'schedule/not-matching',
      `elements of ${b.name} say which are meant of another operand, and are not known to be below ${o.below}`,
      { expected: `coordinates that a format stores, of an axis whose extent is at most ${o.below}` },
    )
  const along = alongDimensions(o, element, instr, loops, bound)
  if (!along)
    return no(
      'schedule/not-matching',
      `${printExpr(element)} does not go along operand ${o.name}, whose dimensions have several loops each`,
      { expected: bodyText(instr) },
    )
  const { load: l, own } = along
  const ofDigits = new Set(digitsOf(o, instr).flatMap((ds) => ds.map((d) => d.name)))
  const inOwn = (x: For): boolean => ofDigits.has(instr.iters[loops.indexOf(x)]!.name)
  const runs = (x: For): boolean => x.extent.kind !== 'const' || x.extent.value > 1
  const foreign = loops.find((x) => !inOwn(x) && runs(x) && l.index.some((e) => mentions(e, x.var)))
  if (foreign)
    return no(
      'schedule/not-matching',
      `the element of ${b.name} changes with ${foreign.name}, and that of operand ${o.name} does not`,
      { expected: bodyText(instr) },
    )
  const placed: Placed = { o, b, l, own, around }
  const unknown = o.ascending === undefined ? undefined : ascendingProblem(o.ascending, placed)
  if (unknown) return unknown
  if (o.scope === 'register') return registerProblem(placed)
  if (o.mapped) return mappedProblem(placed)
  if (o.memory && b.memory) {
    const at = l.index.length - b.memory.shape.length
    const first = l.index.length - own.length
    const turned = own.find(
      (x, d) => runs(x) && l.index.some((e, k) => k !== first + d && mentions(e, x.var)),
    )
    if (turned)
      return no(
        'schedule/not-matching',
        `${turned.name} does not go along the dimension of ${b.name} that it has in operand ${o.name}, a tile of ${b.memory.name}`,
        {
          expected: bodyText(instr),
          hint: 'give the copy the layout of the operand, or use an instruction for this layout',
        },
      )
    for (const [d, t] of b.memory.shape.entries()) {
      const unit = Math.min(t, o.shape[o.shape.length - b.memory.shape.length + d] ?? 1)
      const base = substitute(l.index[at + d]!, new Map(own.map((x) => [x.var, ZERO])))
      if (!around.facts.isMultiple(base, unit))
        return no(
          'schedule/not-aligned',
          `operand ${o.name} of ${instr.name} begins at ${printExpr(base)} of ${b.name}, inside of a tile of ${b.memory.name}`,
          { expected: `a multiple of ${unit}` },
        )
    }
  }
  return o.align > 0 ? alignProblem(placed) : undefined
}

const ZERO: Expr = { kind: 'const', value: 0, dtype: 'index' }

export const sameMemory = (a: Memory, b: Memory): boolean => sameData(a, b)

/** An operand `o` in the buffer `b`: its element `l` over a loop for each dimension. */
interface Placed {
  readonly o: Operand
  readonly b: Buffer
  readonly l: Load
  readonly own: readonly For[]
  readonly around: Around
}

/** Checks an operand in registers: it must consist of whole tiles, or of neighbouring registers of a thread. */
function registerProblem({ o, b, l, own }: Placed): Mismatch | undefined {
  const at = l.index.length - o.shape.length
  const steps = o.memory ? tileSteps(o, o.memory) : []
  const bad = (e: Expr): Mismatch =>
    no('schedule/not-matching', `${b.name}[…, ${printExpr(e)}] is not along operand ${o.name}`, {
      expected: `a tile of ${o.shape.join(' × ')}`,
    })
  for (const [d, e] of l.index.entries()) {
    const loop = own[d - at]
    if (!loop) {
      if (own.some((x) => mentions(e, x.var))) return bad(e)
      continue
    }
    const sum = linear(e)
    const term = sum.terms.get(keyOf(variable(loop.var)))
    const unit = steps[d - at] ?? 1
    const rest = [...sum.terms.values()].filter((t) => t !== term)
    const whole = rest.every((t) => t.coefficient % unit === 0 && !own.some((x) => mentions(t.term, x.var)))
    if (term?.coefficient !== 1 || !whole || sum.constant % unit !== 0) return bad(e)
  }
  return undefined
}

/** Checks that neighbours along the last dimension are runs in which the buffer is known to ascend. */
function ascendingProblem(run: number, { o, b, l, own, around }: Placed): Mismatch | undefined {
  const known = b.ascending !== undefined && b.ascending % run === 0
  const why = known ? notInRuns(l.index, own.at(-1), run, around.facts) : 'nothing says so'
  if (why === undefined) return undefined
  return no(
    'schedule/not-ascending',
    `each ${run} neighbours of operand ${o.name} ascend, and of ${b.name} ${why}`,
    {
      expected: `coordinates of an axis \`sparse_fixed(…, ${run}) compact\`, of whose positions each holds an element`,
    },
  )
}

/** Checks that runs of `align` bytes along the last dimension are contiguous and aligned. */
function alignProblem({ o, b, l, own, around }: Placed): Mismatch | undefined {
  const run = (o.align * 8) / (o.packed ?? 8 * DTYPE_BYTES[o.dtype])
  const bad = (why: string): Mismatch =>
    no(
      'schedule/not-aligned',
      `operand ${o.name} needs ${run} neighbouring elements of ${b.name} aligned to ${o.align} bytes, and ${why}`,
      { hint: 'require sizes that are multiples of the tile, or change the layout of the copy' },
    )
  const { facts } = around
  const why = notInRuns(l.index, own.at(-1), run, facts)
  if (why !== undefined) return bad(why)
  if (l.index.length > 1 && !facts.isMultiple(b.shape.at(-1)!, run))
    return bad(`rows of ${printExpr(b.shape.at(-1)!)} elements follow each other`)
  if (b.memory?.scope === 'shared' && !runsIn(b.memory, run)) return bad(`${b.memory.name} takes them apart`)
  return undefined
}

/**
 * Checks a box of the matrix in a buffer: the columns are its last dimension, the rows all other dimensions, and boxes
 * begin at whole chunks.
 */
function mappedProblem({ o, b, l, own, around }: Placed): Mismatch | undefined {
  const along = l.index.slice(-own.length)
  const lost = own.find(
    (x, d) =>
      along.length !== own.length ||
      coefficientOf(along[d]!, x.var) !== 1 ||
      l.index.some((e, k) => k !== l.index.length - own.length + d && mentions(e, x.var)),
  )
  if (lost)
    return no(
      'schedule/not-matching',
      `${lost.name} does not go along a dimension of ${b.name} alone, as operand ${o.name} does`,
      { expected: `neighbouring rows and columns of ${b.name}` },
    )
  const columns = b.shape.at(-1)!
  if ((around.facts.divisor(columns) * DTYPE_BYTES[o.dtype]) % MAPPED_BYTES !== 0)
    return no(
      'schedule/not-aligned',
      `rows of operand ${o.name} begin at multiples of ${MAPPED_BYTES} bytes, and those of ${b.name} have ${printExpr(columns)} elements`,
      { hint: 'require sizes that are multiples of the tile' },
    )
  const first = substitute(along.at(-1)!, new Map(own.map((x) => [x.var, ZERO])))
  if ((around.facts.divisor(first) * DTYPE_BYTES[o.dtype]) % MAPPED_BYTES !== 0)
    return no(
      'schedule/not-aligned',
      `boxes of operand ${o.name} begin at multiples of ${MAPPED_BYTES} bytes, and this one at column ${printExpr(first)} of ${b.name}`,
      { expected: `a column that is a multiple of ${MAPPED_BYTES / DTYPE_BYTES[o.dtype]}` },
    )
  return undefined
}

/**
 * The number of bytes that must divide the row length of a matrix with boxes, and the offset of a box in a row. (On an
 * H200, a box elsewhere is an illegal instruction.)
 */
export const MAPPED_BYTES = 16

/** Returns whether a memory stores runs of elements of the last dimension contiguously. */
function runsIn(m: Memory, run: number): boolean {
  const known = runLengths(m)
  const holds = known.get(run) ?? standTogether(m, run)
  known.set(run, holds)
  return holds
}

const runLengths = memoize((_: Memory) => new Map<number, boolean>())

function standTogether(m: Memory, run: number): boolean {
  const { address, shape } = m
  if (!address || shape.at(-1)! % run !== 0 || m.size % run !== 0) return false
  const total = shape.reduce((x, y) => x * y, 1)
  let first = 0
  for (let flat = 0; flat < total; flat++) {
    const at = evaluate(address, new Map(coordinatesAt(flat, shape).map((c, d) => [coordinateName(d), c])))
    if (flat % run === 0) first = at
    if (first % run !== 0 || at !== first + (flat % run)) return false
  }
  return true
}
